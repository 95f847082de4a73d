package processes

import (
	"bytes"
	"io"
	"os"
)

// tailSize is how much of a log an error shows, in bytes.
const tailSize = 2048

// tail is the end of a file, from the beginning of a line on. What can't be read
// is empty: it only goes with another error.
func tail(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	from := max(info.Size()-tailSize, 0)
	b, err := io.ReadAll(io.NewSectionReader(f, from, tailSize))
	if err != nil {
		return ""
	}
	if from > 0 {
		if _, rest, ok := bytes.Cut(b, []byte{'\n'}); ok {
			b = rest
		}
	}
	return string(bytes.TrimSpace(b))
}

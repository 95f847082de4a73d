package wholefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// JSON is a file that holds a value. With a name it is ready. It is for one goroutine at
// a time, and for one process.
type JSON[T any] struct {
	Name string
	kept []byte // what the file is known to hold
}

// Read returns what the file holds; false if there is none.
func (f *JSON[T]) Read() (v T, some bool, err error) {
	b, err := os.ReadFile(f.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return v, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil {
		return v, false, fmt.Errorf("%s: %w", f.Name, err)
	}
	return v, true, nil
}

// Keep puts a value into the file, readable by its owner alone, unless it is the one
// that was kept last: it may be called as often as one likes.
func (f *JSON[T]) Keep(v T) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	if bytes.Equal(b, f.kept) {
		return nil
	}
	if err := Write(f.Name, b, 0o600); err != nil {
		return err
	}
	f.kept = b
	return nil
}

package stage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Clear makes an empty folder. What an earlier demonstration left there is removed,
// and nothing else: it left a file with a name whose first line is that of text.
// ErrFolder.
func Clear(dir, name, text string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(list) == 0 {
		return os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	head, _, _ := bytes.Cut([]byte(text), []byte("\n"))
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil || !bytes.HasPrefix(b, head) {
		return fmt.Errorf("%s holds something else than an earlier demonstration; %w", dir, ErrFolder)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	return os.MkdirAll(dir, 0o755)
}

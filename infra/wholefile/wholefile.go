// Package wholefile writes files that are never seen half written: a reader, and a
// process that is started after a crash, finds the old content or the new one.
//
// States: there are none, but that a [JSON] knows what it has kept. Failures: Write and
// Keep return what the system says, and the file has its old content then, if it had any.
package wholefile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write puts content in the place of a file's. It is written beside it first, under a
// name that begins with a dot, and is on disk before it takes the place: a crash right
// after may bring the old content back, never a part of the new one. A crash before
// leaves the file with the dot behind.
func Write(name string, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err = f.Write(content)
	for _, step := range [...]func() error{func() error { return f.Chmod(mode) }, f.Sync} {
		if err == nil {
			err = step()
		}
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

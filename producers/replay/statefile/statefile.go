// Package statefile replaces small JSON files of a run's state folder as a whole:
// by a temporary file, a sync and a rename, so that a crash leaves the old one or
// the new one.
package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Write replaces the file by the JSON of v. After an error the old file is still
// there.
func Write(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	// One process owns a state folder, so that one temporary name is enough; what
	// a crash left under it is written over.
	f, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	_, err = f.Write(append(data, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // It may be there or not; the first error tells.
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}

// Package statefile replaces small JSON files of a run's state folder as a whole:
// by a temporary file, a sync and a rename, so that a crash leaves the old one or
// the new one. Where the system can swap two names, the old file becomes the next
// temporary one: a window is marked many times a second, and making a file takes
// longer than to write one and sync it.
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
	data = append(data, '\n')
	f, err := open(path+".tmp", len(data))
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = swap(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // It may be there or not; the first error tells.
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}

// sector is what a disk writes whole or not at all.
const sector = 512

// open opens the temporary file for so many bytes. One process owns a state
// folder, so that one name is enough; what a crash left under it is of no use.
//
// What has the name may be the version before the last. The swap that took its
// name away need not be on disk yet, so that it is only written over where a
// failing power supply leaves it old or new: within a sector and at its length.
func open(name string, bytes int) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil && bytes <= sector && info.Mode().IsRegular() && info.Size() == int64(bytes) {
		return os.OpenFile(name, os.O_WRONLY, 0)
	}
	_ = os.Remove(name) // If it is still there, the next line says so.
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

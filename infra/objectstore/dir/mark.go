package dir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"penstock/infra/objectstore"
)

// readMark returns the mark of the copy in a folder. A folder whose data was
// deleted, and which only foreign files keep, is marked absent.
func readMark(path string) (objectstore.Mark, error) {
	var m objectstore.Mark
	b, err := os.ReadFile(filepath.Join(path, markFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return m, nil
	case err != nil:
		return m, fmt.Errorf("read mark: %w", err)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("read mark of %s: %w: %w", path, objectstore.ErrCorrupt, err)
	}
	return m, nil
}

// setMark writes the mark of the locked folder.
func (f *folder) setMark(m objectstore.Mark) error {
	path := filepath.Join(f.path, markFile)
	if m.State == objectstore.Unmarked {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("take mark off: %w", err)
		}
	} else {
		b, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("write mark: %w", err)
		}
		tmp := filepath.Join(f.path, tmpFile+"mark")
		if err := writeFile(tmp, b, f.s.sync); err != nil {
			return fmt.Errorf("write mark: %w", err)
		}
		if err := os.Rename(tmp, path); err != nil {
			return fmt.Errorf("write mark: %w", err)
		}
	}
	if f.s.sync {
		if err := f.dir.Sync(); err != nil {
			return fmt.Errorf("write mark: %w", err)
		}
	}
	f.mark = m
	return nil
}

// change is compare-and-set of the mark.
func (f *folder) change(from, to objectstore.Mark) error {
	if f.mark != from {
		return &objectstore.MarkedError{Owner: f.owner, Have: f.mark, Want: from}
	}
	if to.State == objectstore.Incoming && !f.made {
		// Nobody else writes to an incoming copy: what is half-written is old.
		if err := f.sweep(); err != nil {
			return err
		}
	}
	return f.setMark(to)
}

func writeFile(path string, b []byte, sync bool) error {
	w, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	if err == nil && sync {
		err = w.Sync()
	}
	return errors.Join(err, w.Close())
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}

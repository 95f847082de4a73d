package dir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"penstock/infra/objectstore"
)

// Remove removes the file of an object and the folders that it leaves empty.
func (s *Store) Remove(ctx context.Context, owner, name string, as objectstore.Mark) error {
	if err := objectstore.CheckName(name); err != nil {
		return err
	}
	f, err := s.lock(ctx, owner, false)
	if err != nil {
		return err
	}
	defer f.unlock()
	if err := f.admit(as); err != nil {
		return err
	}
	path := filepath.Join(f.path, filepath.FromSlash(name))
	if info, err := os.Lstat(path); missingOr(err) || err == nil && !info.Mode().IsRegular() {
		return nil // not there, or foreign
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove object %.80q: %w", name, err)
	}
	for p := filepath.Dir(path); len(p) > len(f.path); p = filepath.Dir(p) {
		if os.Remove(p) != nil {
			break
		}
	}
	if s.sync {
		if err := f.dir.Sync(); err != nil {
			return fmt.Errorf("remove object %.80q: %w", name, err)
		}
	}
	return nil
}

func missingOr(err error) bool { return err != nil && missing(err) }

// delete removes the copy if it bears the mark. Until the objects are gone the
// copy is still what its mark says, closed to writers, and the deletion can be
// repeated. Then folder and mark go at once, by a rename: nobody ever sees an
// unmarked copy that looks alive. A folder that foreign files keep stays, marked
// absent.
func (f *folder) delete(as objectstore.Mark) error {
	if f.mark != as {
		return &objectstore.MarkedError{Owner: f.owner, Have: f.mark, Want: as}
	}
	foreign, err := removeAll(f.path)
	if err != nil {
		return fmt.Errorf("delete owner %.80q: %w", f.owner, err)
	}
	if foreign {
		return f.setMark(objectstore.Mark{State: objectstore.Absent})
	}
	info, err := f.dir.Stat()
	if err != nil {
		return fmt.Errorf("delete owner %.80q: %w", f.owner, err)
	}
	gone := filepath.Join(f.s.root, fmt.Sprintf("%s%d", goneFolder, inode(info)))
	if err := os.Rename(f.path, gone); err != nil {
		return fmt.Errorf("delete owner %.80q: %w", f.owner, err)
	}
	f.mark = objectstore.Mark{State: objectstore.Absent}
	removeGone(gone)
	if parent := filepath.Dir(f.path); parent != f.s.root {
		f.path = parent
		f.removeFolder()
	}
	if f.s.sync {
		return syncDir(f.s.root)
	}
	return nil
}

// removeGone removes a deleted copy's folder; one that a crash left is removed
// when the store is opened.
func removeGone(path string) {
	_ = os.Remove(filepath.Join(path, markFile))
	_ = os.Remove(path)
}

// removeAll removes objects and our temporary files below a folder, and the
// folders that are empty then. It reports whether anything foreign was left.
func removeAll(path string) (foreign bool, err error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		switch {
		case e.IsDir():
			left, err := removeAll(name)
			if err != nil {
				return true, err
			}
			if left {
				foreign = true
			} else if err := os.Remove(name); err != nil {
				return true, err
			}
		case !e.Type().IsRegular():
			foreign = true
		case e.Name() == markFile:
		default:
			if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
				return true, err
			}
		}
	}
	return foreign, nil
}

// sweep removes temporary files that a crash left.
func (f *folder) sweep() error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tmpFile) {
			if err := os.Remove(filepath.Join(f.path, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("sweep: %w", err)
			}
		}
	}
	return nil
}

func removeAllGone(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), goneFolder) {
			removeGone(filepath.Join(root, e.Name()))
		}
	}
	return nil
}

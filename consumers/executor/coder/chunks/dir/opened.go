package dir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// opened is the folder as it was found.
type opened struct {
	root *os.Root
	id   string   // begins the names of files that are written here
	lock *os.File // its name is the id; it is locked as long as they are
	made made
}

// open opens a folder that is there, and removes what was being written by those who
// have gone.
func open(folder string) (_ *opened, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	o := &opened{root: root}
	defer func() {
		if err != nil {
			_ = o.close()
		}
	}()
	if err := root.Mkdir(incoming, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	for range attempts {
		if err = o.begin(); !errors.Is(err, errTaken) {
			break
		}
	}
	if err == nil {
		err = o.sweep()
	}
	if err == nil {
		err = o.sync(".")
	}
	return o, err
}

// errTaken is the failure to lock a file that somebody else takes for left over.
var errTaken = errors.New("file is locked or gone")

// begin makes and locks a file of an id of its own.
func (o *opened) begin() error {
	o.id = strings.ToLower(rand.Text())
	f, err := o.root.OpenFile(o.lockName(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return err
	}
	if err := locked(o.root, f, o.lockName()); err != nil {
		return errors.Join(err, f.Close())
	}
	o.lock = f
	return nil
}

func (o *opened) lockName() string { return path.Join(incoming, o.id) }

// locked locks a file, and sees that it is still the one of that name. It returns
// errTaken.
func locked(root *os.Root, f *os.File, name string) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // G115: a descriptor is small
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errTaken
	}
	if err != nil {
		return err
	}
	have, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(have, named) {
		return errTaken
	}
	return err
}

// sweep removes what was being written by those whose file nobody has locked.
func (o *opened) sweep() error {
	f, err := o.root.Open(incoming)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	of := make(map[string][]string)
	for _, e := range entries {
		id, _, _ := strings.Cut(e.Name(), ".")
		of[id] = append(of[id], e.Name())
	}
	for id, names := range of {
		if id == o.id {
			continue
		}
		if err := o.remove(path.Join(incoming, id), names); err != nil {
			return err
		}
	}
	return nil
}

// remove removes files that are left over, the one that says so last.
func (o *opened) remove(lock string, names []string) error {
	f, err := o.root.Open(lock)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it went in a crash of who removed the others
	case err != nil:
		return err
	default:
		defer f.Close()
		if err := locked(o.root, f, lock); errors.Is(err, errTaken) {
			return nil
		} else if err != nil {
			return err
		}
	}
	for _, name := range names {
		if name = path.Join(incoming, name); name != lock {
			if err := o.root.RemoveAll(name); err != nil {
				return err
			}
		}
	}
	return o.root.RemoveAll(lock)
}

// close gives the folder back.
func (o *opened) close() error {
	var err error
	if o.lock != nil {
		if err = o.root.Remove(o.lockName()); errors.Is(err, fs.ErrNotExist) {
			err = nil // the folder is gone
		}
		err = errors.Join(err, o.lock.Close())
	}
	return errors.Join(err, o.root.Close())
}

// in calls f with the folder, and again if f finds nothing because the folder is another
// one by now. It gives the folder that f was called with last. Its error is not that
// nothing was found if the folder is gone.
func (s *Store) in(f func(*opened) error) (*opened, error) {
	o := s.now.Load()
	err := f(o)
	if !errors.Is(err, fs.ErrNotExist) {
		return o, err
	}
	again, gone := s.again(o)
	switch {
	case gone != nil:
		return o, gone
	case again != o:
		return again, f(again)
	}
	return o, err
}

// again gives the folder that has the store's name now, if it is another one than o or
// was emptied.
func (s *Store) again(o *opened) (*opened, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now.Load(); now != o || s.closed {
		return now, nil
	}
	was, err := o.root.Stat(".")
	if err != nil {
		return nil, err
	}
	is, err := os.Stat(s.folder)
	if err != nil {
		return nil, fmt.Errorf("folder of the store is gone: %v", err) //nolint:errorlint // it isn't a blob that isn't there
	}
	if _, err := o.root.Lstat(o.lockName()); err == nil && os.SameFile(was, is) {
		return o, nil
	}
	now, err := open(s.folder)
	if err != nil {
		return nil, fmt.Errorf("folder of the store is another one: %v", err) //nolint:errorlint // as above
	}
	_ = o.close() // nobody can find what is left there
	s.now.Store(now)
	return now, nil
}

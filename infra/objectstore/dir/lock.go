package dir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"penstock/infra/objectstore"
)

// registry hands out one lock per owner within this process, so that waiting
// here costs nothing and only another process has to be polled for.
type registry struct {
	mu    sync.Mutex
	owner map[string]*entry
}

type entry struct {
	sem  chan struct{} // holds one token while locked
	uses int           // who holds it or waits for it
}

func (r *registry) lock(ctx context.Context, owner string) error {
	r.mu.Lock()
	e := r.owner[owner]
	if e == nil {
		e = &entry{sem: make(chan struct{}, 1)}
		r.owner[owner] = e
	}
	e.uses++
	r.mu.Unlock()
	select {
	case e.sem <- struct{}{}:
		return nil
	default:
	}
	select {
	case e.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		r.drop(owner, e)
		return ctx.Err()
	}
}

func (r *registry) unlock(owner string) {
	r.mu.Lock()
	e := r.owner[owner]
	r.mu.Unlock()
	<-e.sem
	r.drop(owner, e)
}

func (r *registry) drop(owner string, e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.uses--; e.uses == 0 {
		delete(r.owner, owner)
	}
}

// folder is an owner's folder while it is locked, in this process and in others.
type folder struct {
	s     *Store
	owner string
	path  string
	dir   *os.File
	made  bool // by this lock
	mark  objectstore.Mark
}

const (
	pollFirst = time.Millisecond
	pollMost  = 16 * time.Millisecond
)

// lock locks an owner's folder and reads its mark. A folder that isn't there is
// made if create, else it is ErrNoOwner.
func (s *Store) lock(ctx context.Context, owner string, create bool) (*folder, error) {
	path, err := ownerPath(s.root, owner)
	if err != nil {
		return nil, err
	}
	if err := s.locks.lock(ctx, owner); err != nil {
		return nil, fmt.Errorf("lock owner %.80q: %w", owner, err)
	}
	f := &folder{s: s, owner: owner, path: path}
	if err := f.open(ctx, create); err != nil {
		s.locks.unlock(owner)
		return nil, err
	}
	if f.mark, err = readMark(path); err != nil {
		f.unlock()
		return nil, err
	}
	if f.made && f.empty() {
		f.mark = objectstore.Mark{State: objectstore.Absent}
	}
	if f.mark.State == objectstore.Absent && !create {
		f.unlock()
		return nil, fmt.Errorf("owner %.80q: %w", owner, objectstore.ErrNoOwner)
	}
	return f, nil
}

// open opens and flocks the folder, until the one that is locked is also the one
// that stands at the path: a deleter may have removed it meanwhile.
func (f *folder) open(ctx context.Context, create bool) error {
	wait := pollFirst
	for {
		dir, err := os.Open(f.path)
		switch {
		case errors.Is(err, os.ErrNotExist) && create:
			if err := f.create(); err != nil {
				return err
			}
			continue
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("owner %.80q: %w", f.owner, objectstore.ErrNoOwner)
		case err != nil:
			return fmt.Errorf("open owner's folder: %w", err)
		}
		ok, err := tryLock(dir)
		if err != nil {
			_ = dir.Close()
			return fmt.Errorf("lock owner's folder: %w", err)
		}
		if ok && same(dir, f.path) {
			f.dir = dir
			return nil
		}
		_ = dir.Close()
		if ok {
			f.made = false
			continue
		}
		if err := f.s.clock.Sleep(ctx, wait); err != nil {
			return fmt.Errorf("lock owner %.80q: %w", f.owner, err)
		}
		wait = min(2*wait, pollMost)
	}
}

// create makes the owner's folder. Whoever else makes it at the same time, in
// another process, made it: then it isn't ours and its mark is read.
func (f *folder) create() error {
	parent := filepath.Dir(f.path)
	if parent != f.s.root {
		if err := os.MkdirAll(parent, 0o755); err != nil {
			return fmt.Errorf("make owner's folder: %w", err)
		}
	}
	err := os.Mkdir(f.path, 0o755)
	switch {
	case err == nil:
		f.made = true
	case errors.Is(err, os.ErrExist), errors.Is(err, os.ErrNotExist):
		return nil // another made it, or removed a parent: look again
	default:
		return fmt.Errorf("make owner's folder: %w", err)
	}
	if !f.s.sync {
		return nil
	}
	for p := parent; len(p) >= len(f.s.root); p = filepath.Dir(p) {
		if err := syncDir(p); err != nil {
			return err
		}
	}
	return nil
}

func (f *folder) unlock() {
	_ = f.dir.Close() // which gives the flock back
	f.s.locks.unlock(f.owner)
}

// admit checks that the copy bears the mark that the caller needs. A copy that
// is absent becomes an unmarked one if as is zero: the folder is there by now.
func (f *folder) admit(as objectstore.Mark) error {
	if as == (objectstore.Mark{}) {
		if f.mark.Writable() {
			return nil
		}
		if f.mark.State == objectstore.Absent {
			return f.setMark(objectstore.Mark{})
		}
	}
	if f.mark == as {
		return nil
	}
	return &objectstore.MarkedError{Owner: f.owner, Have: f.mark, Want: as}
}

// abandon unlocks, and removes the folder again if this lock made it.
func (f *folder) abandon() {
	if f.made && f.mark.State == objectstore.Absent {
		f.removeFolder()
	}
	f.unlock()
}

// empty reports that nobody put anything into the folder between its making and
// its locking.
func (f *folder) empty() bool {
	names, err := f.dir.Readdirnames(1)
	return len(names) == 0 && errors.Is(err, io.EOF)
}

// removeFolder removes the owner's folder and the pieces above it, as far as
// they are empty.
func (f *folder) removeFolder() {
	for p := f.path; len(p) > len(f.s.root); p = filepath.Dir(p) {
		if os.Remove(p) != nil {
			return
		}
	}
}

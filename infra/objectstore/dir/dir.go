package dir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"penstock/infra/clock"
	"penstock/infra/objectstore"
)

// Options of a folder.
type Options struct {
	// Clock paces the polling of another process's lock and stamps objects.
	// Defaults to the machine's.
	Clock clock.Clock
	// NoSync leaves out the syncs that make a write survive the death of the
	// machine. A replay does, whose data can be made again.
	NoSync bool
}

// Store is a folder as an object store. It implements objectstore.Store and
// objectstore.Records. It holds no resources while idle and needs no closing.
type Store struct {
	root  string
	sync  bool
	clock clock.Clock
	locks registry
	tails tails
}

var (
	_ objectstore.Store   = (*Store)(nil)
	_ objectstore.Records = (*Store)(nil)
)

// Open makes the folder if need be and returns it as a store.
func Open(root string, o Options) (*Store, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := removeAllGone(root); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return &Store{
		root: root, sync: !o.NoSync, clock: o.Clock,
		locks: registry{owner: map[string]*entry{}},
		tails: tails{known: map[tailKey]tail{}},
	}, nil
}

// Root is the folder.
func (s *Store) Root() string { return s.root }

// Capabilities are a barrier where the system has flock, and durability when
// synced.
func (s *Store) Capabilities() objectstore.Capabilities {
	return objectstore.Capabilities{Barrier: barrier, Durable: s.sync}
}

// Owners walks the folders in the order of their encoded names.
func (s *Store) Owners(ctx context.Context, fn func(string, objectstore.Mark) error) error {
	return walkOwners(s.root, "", func(owner, path string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := readMark(path)
		if err != nil {
			return err
		}
		if m.State == objectstore.Absent {
			return nil
		}
		return fn(owner, m)
	})
}

// Stat reads the mark without waiting for a lock.
func (s *Store) Stat(_ context.Context, owner string) (objectstore.Mark, error) {
	path, err := ownerPath(s.root, owner)
	if err != nil {
		return objectstore.Mark{}, err
	}
	m, err := readMark(path)
	if err != nil || m.State != objectstore.Unmarked {
		return m, err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		m.State = objectstore.Absent
	} else if err != nil {
		return m, fmt.Errorf("stat owner's folder: %w", err)
	}
	return m, nil
}

// Create makes the folder of an owner.
func (s *Store) Create(ctx context.Context, owner string, as objectstore.Mark) error {
	f, err := s.lock(ctx, owner, true)
	if err != nil {
		return err
	}
	if err := f.admit(as); err != nil {
		f.abandon()
		return err
	}
	f.unlock()
	return nil
}

// Mark changes the mark under the owner's lock.
func (s *Store) Mark(ctx context.Context, owner string, from, to objectstore.Mark) error {
	f, err := s.lock(ctx, owner, from.State == objectstore.Absent)
	if errors.Is(err, objectstore.ErrNoOwner) {
		have := objectstore.Mark{State: objectstore.Absent}
		return &objectstore.MarkedError{Owner: owner, Have: have, Want: from}
	}
	if err != nil {
		return err
	}
	if err := f.change(from, to); err != nil {
		f.abandon()
		return err
	}
	f.unlock()
	return nil
}

// Delete removes the owner's objects, then the mark, then the folder.
func (s *Store) Delete(ctx context.Context, owner string, as objectstore.Mark) error {
	f, err := s.lock(ctx, owner, false)
	if errors.Is(err, objectstore.ErrNoOwner) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.unlock()
	return f.delete(as)
}

// Hold locks the owner's folder until it is released.
func (s *Store) Hold(ctx context.Context, owner, version string) (objectstore.Held, error) {
	if !barrier {
		return nil, objectstore.ErrNoBarrier
	}
	f, err := s.lock(ctx, owner, false)
	if err != nil {
		return nil, err
	}
	if version != "" {
		l, err := list(f.path)
		if err == nil && l.Version != version {
			err = fmt.Errorf("owner %.80q: %w", owner, objectstore.ErrChanged)
		}
		if err != nil {
			f.unlock()
			return nil, err
		}
	}
	return &held{folder: f}, nil
}

type held struct{ folder *folder }

func (h *held) Mark(_ context.Context, from, to objectstore.Mark) error {
	return h.folder.change(from, to)
}

func (h *held) Delete(_ context.Context, as objectstore.Mark) error { return h.folder.delete(as) }

func (h *held) Release() {
	if h.folder != nil {
		h.folder.unlock()
		h.folder = nil
	}
}

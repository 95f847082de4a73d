package manifest

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"penstock/infra/objectstore"
)

// Store is an objectstore.Store over a Backend. Close it.
type Store struct {
	b         Backend
	o         Options
	locks     registry
	collector *collector
}

var _ objectstore.Store = (*Store)(nil)

// New returns a Store over a backend.
func New(b Backend, o Options) *Store {
	o.complete()
	return &Store{
		b: b, o: o, locks: registry{owner: map[string]*turn{}},
		collector: newCollector(b, o),
	}
}

// Close ends what goes on in the background. Blobs that wait for their deletion
// are left for a later sweep. Leases that are held lapse. It may be called
// twice; the store is not to be used afterwards.
func (s *Store) Close() error {
	s.collector.close()
	return nil
}

// Capabilities are the backend's.
func (s *Store) Capabilities() objectstore.Capabilities { return s.b.Capabilities() }

// snapshot is a document as it was read.
type snapshot struct {
	*document
	revision string // empty: there is none
}

// load reads an owner's document. Where there is none, plain objects make one up
// that the next change writes; without any the copy is absent.
func (s *Store) load(ctx context.Context, owner string) (snapshot, error) {
	body, revision, err := s.b.Get(ctx, owner)
	switch {
	case err == nil:
		d, err := decode(body)
		if err != nil {
			return snapshot{}, fmt.Errorf("owner %.80q: %w: %w", owner, objectstore.ErrCorrupt, err)
		}
		return snapshot{d, revision}, nil
	case !errors.Is(err, objectstore.ErrNoOwner):
		return snapshot{}, fmt.Errorf("read document of %.80q: %w", owner, cause(ctx, err))
	}
	var entries []entry
	err = s.b.Plain(ctx, owner, func(name, id string, size int64, version string) error {
		if objectstore.CheckName(name) == nil {
			entries = append(entries, entry{name: name, blob: id, size: size, version: version})
		}
		return nil
	})
	switch {
	case err != nil:
		return snapshot{}, fmt.Errorf("list plain objects of %.80q: %w", owner, cause(ctx, err))
	case len(entries) == 0:
		return snapshot{document: absentDocument()}, nil
	}
	return snapshot{document: adopt(entries)}, nil
}

// cause makes sure that an error that came because ctx ended says so.
func cause(ctx context.Context, err error) error {
	if e := ctx.Err(); err != nil && e != nil && !errors.Is(err, e) {
		return fmt.Errorf("%w: %w", e, err)
	}
	return err
}

// present is load for those who need a copy.
func (s *Store) present(ctx context.Context, owner string) (snapshot, error) {
	if err := objectstore.CheckOwner(owner); err != nil {
		return snapshot{}, err
	}
	d, err := s.load(ctx, owner)
	if err == nil && d.absent() {
		err = noOwner(owner)
	}
	return d, err
}

func noOwner(owner string) error { return fmt.Errorf("owner %.80q: %w", owner, objectstore.ErrNoOwner) }

// ownersBatch is how many documents Owners reads at a time.
const ownersBatch = 16

// Owners reads the documents of all owners, several at a time.
func (s *Store) Owners(ctx context.Context, fn func(string, objectstore.Mark) error) error {
	var batch []string
	flush := func() error {
		marks := make([]objectstore.Mark, len(batch))
		g, ctx := errgroup.WithContext(ctx)
		for i, owner := range batch {
			g.Go(func() error {
				d, err := s.load(ctx, owner)
				if err == nil {
					marks[i] = d.Mark
				}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for i, owner := range batch {
			if marks[i].State == objectstore.Absent {
				continue
			}
			if err := fn(owner, marks[i]); err != nil {
				return err
			}
		}
		batch = batch[:0]
		return nil
	}
	err := s.b.Owners(ctx, func(owner string) error {
		if batch = append(batch, owner); len(batch) < ownersBatch {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// Stat reads the mark in the document.
func (s *Store) Stat(ctx context.Context, owner string) (objectstore.Mark, error) {
	if err := objectstore.CheckOwner(owner); err != nil {
		return objectstore.Mark{}, err
	}
	d, err := s.load(ctx, owner)
	if err != nil {
		return objectstore.Mark{}, err
	}
	return d.Mark, nil
}

// List returns what the document says, which is one moment's truth. Its version
// is the copy's identity and the number of changes since.
func (s *Store) List(ctx context.Context, owner string) (objectstore.Listing, error) {
	d, err := s.present(ctx, owner)
	if err != nil {
		return objectstore.Listing{}, err
	}
	return d.listing(), nil
}

package locations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"penstock/infra/objectstore"
)

// StoreRows are rows by what the stores hold: an owner is where its copy is that
// may be written to. They are ascending by owner, and their lines count them.
type StoreRows struct {
	stores map[string]objectstore.Store
	found  map[string]*inStores
	owners []string
	at     int
	// Closed is how many copies are closed to writers, incoming or retired: they
	// say nothing of where an owner is.
	Closed int
}

// inStores is an owner's copy that may be written to.
type inStores struct {
	site    string
	version uint64
	second  string // another site with one
	bytes   int64  // of its objects; 0 unless measured
}

// listers is how many owners are listed at a time.
const listers = 16

// FromStores lists the stores. It keeps some 150 bytes an owner in memory.
func FromStores(ctx context.Context, stores map[string]objectstore.Store) (*StoreRows, error) {
	s := &StoreRows{stores: stores, found: map[string]*inStores{}}
	for _, site := range slices.Sorted(maps.Keys(stores)) {
		err := stores[site].Owners(ctx, func(owner string, m objectstore.Mark) error {
			if !m.Writable() {
				s.Closed++
				return nil
			}
			if f := s.found[owner]; f != nil {
				f.second = site
			} else {
				s.found[owner] = &inStores{site: site, version: m.Version}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list the store at %s: %w", site, err)
		}
	}
	s.owners = slices.Sorted(maps.Keys(s.found))
	return s, nil
}

// Measure lists each owner's objects, several owners at a time, so that its row
// says how much is stored of it. It takes as long as listing all objects does.
// progress, if set, is called with the owners that are done, of how many, from
// one goroutine at a time. An owner that is gone meanwhile has 0 bytes. Call it
// before Next.
func (s *StoreRows) Measure(ctx context.Context, progress func(done, of int)) error {
	var mu sync.Mutex
	done := 0
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(listers)
	for _, owner := range s.owners {
		if inner.Err() != nil {
			break
		}
		group.Go(func() error {
			if f := s.found[owner]; f.second == "" { // One at two sites is not imported.
				l, err := s.stores[f.site].List(inner, owner)
				if err != nil && !errors.Is(err, objectstore.ErrNoOwner) {
					return fmt.Errorf("list owner %.80q at %s: %w", owner, f.site, err)
				}
				for i := range l.Objects {
					f.bytes += l.Objects[i].Size
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if done++; progress != nil {
				progress(done, len(s.owners))
			}
			return nil
		})
	}
	return cmp.Or(group.Wait(), ctx.Err())
}

// Next returns the next owner. One with copies that may be written to at two
// sites is at neither, and an error of its row: whose writes are the right ones
// is for a person to say.
func (s *StoreRows) Next() (Row, int, error) {
	if s.at == len(s.owners) {
		return Row{}, 0, io.EOF
	}
	owner := s.owners[s.at]
	s.at++
	f := s.found[owner]
	if f.second != "" {
		return Row{}, s.at, fmt.Errorf("owner %.80q has copies that may be written to at %s and at %s: %w", owner, f.site, f.second, ErrRow)
	}
	return Row{Owner: owner, Site: f.site, Version: f.version, Bytes: f.bytes}, s.at, nil
}

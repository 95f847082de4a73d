package shipping

import (
	"context"
	"fmt"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/chunks"
)

// Claim makes the catalog the stores' owner, before anything is served or shipped: it
// reads the markers, writes its own where there is none or one of a term before, and reads
// again. It returns ErrOwned if the stores belong to another instance, or hold a log and
// the catalog is a fresh one: Rebuild takes over. It returns ErrStores if too few answer.
func (s *Shipper) Claim(ctx context.Context) error {
	ours := s.o.Catalog.Identity()
	fresh := ours.Term == 1 && s.o.Catalog.Seq() == 0
	markers := ask(ctx, s.o.Stores, s.o.Patience, func(ctx context.Context, store chunks.Store) (catalog.Identity, error) {
		marker, err := owner(ctx, store, ours.Coder)
		if err != nil || !fresh || marker != (catalog.Identity{}) {
			return marker, err
		}
		list, err := store.List(ctx, logPrefix(ours.Coder), "", 1)
		if err == nil && len(list) > 0 {
			err = fmt.Errorf("%w: %s has a log and no marker", ErrOwned, store.Name())
		}
		return marker, err
	})
	if err := verdict(markers, ours, s.o.Need); err != nil {
		return err
	}
	return mark(ctx, s.o.Stores, s.o.Need, s.o.Patience, ours)
}

// mark writes a marker into all stores and sees to it that nobody else's came after.
func mark(ctx context.Context, stores []chunks.Store, need int, patience time.Duration, id catalog.Identity) error {
	markers := ask(ctx, stores, patience, func(ctx context.Context, store chunks.Store) (catalog.Identity, error) {
		// A store that answers late must not lose another's marker for that.
		marker, err := owner(ctx, store, id.Coder)
		if err != nil || marker == id || supersedes(marker, id) {
			return marker, err
		}
		if err := putOwner(ctx, store, id); err != nil {
			return marker, err
		}
		return owner(ctx, store, id.Coder)
	})
	return verdict(markers, id, need)
}

// verdict returns ErrOwned if a marker is of an instance that supersedes ours, and
// ErrStores if too few answered.
func verdict(markers []answer[catalog.Identity], ours catalog.Identity, need int) error {
	for _, m := range markers {
		if m.err == nil && supersedes(m.value, ours) {
			return fmt.Errorf("%w: %s is of %s in term %d, this is %s in term %d",
				ErrOwned, m.store.Name(), m.value.Instance, m.value.Term, ours.Instance, ours.Term)
		}
	}
	return quorum(markers, need)
}

// check looks at all markers. Stores that don't answer are counted.
func (s *Shipper) check(ctx context.Context) error {
	ours := s.o.Catalog.Identity()
	for _, m := range ask(ctx, s.o.Stores, s.o.Patience, func(ctx context.Context, store chunks.Store) (catalog.Identity, error) {
		return owner(ctx, store, ours.Coder)
	}) {
		switch {
		case m.err != nil:
			s.failed(m.store, "owner", m.err)
		case supersedes(m.value, ours):
			return s.replaced(m.store, m.value)
		}
	}
	return nil
}

func (s *Shipper) replaced(store chunks.Store, by catalog.Identity) error {
	return fmt.Errorf("%w: %s is of %s in term %d", ErrReplaced, store.Name(), by.Instance, by.Term)
}

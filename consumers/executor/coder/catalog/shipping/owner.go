package shipping

import (
	"context"
	"errors"
	"fmt"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/chunks"
)

// Claim makes the catalog the stores' owner, before anything is served or shipped: it
// reads the markers, writes its own where there is none or one of a term before, and reads
// again. It returns ErrOwned if the stores belong to another instance, or hold a log and
// the catalog is a fresh one: Rebuild takes over. It returns ErrBehind if they have
// changes that the catalog lacks, and ErrStores if too few answer.
func (s *Shipper) Claim(ctx context.Context) error {
	ours, seq := s.o.Catalog.Identity(), s.o.Catalog.Seq()
	markers := ask(ctx, s.o.Stores, s.o.Patience, func(ctx context.Context, store chunks.Store) (catalog.Identity, error) {
		marker, err := owner(ctx, store, ours.Coder)
		if err != nil || supersedes(marker, ours) {
			return marker, err
		}
		names, others, err := listing(ctx, store, ours.Coder)
		if err != nil {
			return marker, err
		}
		return marker, lacking(store, ours, marker, seq, names, others)
	})
	for _, m := range markers {
		if errors.Is(m.err, ErrOwned) || errors.Is(m.err, ErrBehind) {
			return m.err
		}
	}
	if err := verdict(markers, ours, s.o.Need); err != nil {
		return err
	}
	return mark(ctx, s.o.Stores, s.o.Need, s.o.Patience, ours, &s.o)
}

// lacking returns an error if a store that nobody else owns has a log that the catalog
// can't go on from.
func lacking(store chunks.Store, ours, marker catalog.Identity, seq uint64, names []name, others int) error {
	if marker == (catalog.Identity{}) && ours.Term == 1 && seq == 0 && len(names)+others > 0 {
		return fmt.Errorf("%w: %s has a log and no marker", ErrOwned, store.Name())
	}
	for _, n := range names {
		if n.term == ours.Term && max(n.first, n.last) > seq {
			return fmt.Errorf("%w: %s has %s, the catalog's last is %d", ErrBehind, store.Name(), n.key(ours.Coder), seq)
		}
	}
	return nil
}

// mark writes a marker into all stores, but for bare ones that the options, if any, don't
// take in, and sees to it that nobody else's came after.
func mark(ctx context.Context, stores []chunks.Store, need int, patience time.Duration, id catalog.Identity, o *Options) error {
	markers := ask(ctx, stores, patience, func(ctx context.Context, store chunks.Store) (catalog.Identity, error) {
		// A store that answers late must not lose another's marker for that.
		marker, err := owner(ctx, store, id.Coder)
		if err != nil || marker == id || supersedes(marker, id) {
			return marker, err
		}
		if marker == (catalog.Identity{}) && o != nil && o.Bare != nil && !o.Bare(store) {
			return marker, nil // it has answered, and is nobody else's
		}
		if err := putOwner(ctx, store, id); err != nil {
			return marker, err
		}
		return owner(ctx, store, id.Coder)
	})
	for _, m := range markers {
		if m.err == nil && m.value == id && o != nil {
			o.marked(m.store)
		}
	}
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
		if m.err != nil {
			s.failed(m.store, "owner", m.err)
		} else if err := s.judge(ctx, m.store, m.value); errors.Is(err, ErrReplaced) {
			return err
		}
	}
	return nil
}

// judge says what a marker means: ErrReplaced, or ErrBare if the store isn't taken in.
func (s *Shipper) judge(ctx context.Context, store chunks.Store, marker catalog.Identity) error {
	switch {
	case supersedes(marker, s.o.Catalog.Identity()):
		return s.replaced(store, marker)
	case marker == (catalog.Identity{}):
		return s.bare(ctx, store)
	}
	s.o.marked(store)
	return nil
}

func (o *Options) marked(store chunks.Store) {
	if o.Marked != nil {
		o.Marked(store)
	}
}

// Look looks at the marker of one store, as Run does with all now and then. It returns
// ErrReplaced, ErrBare, and the store's errors; Options.Bare and Marked are called.
func (s *Shipper) Look(ctx context.Context, store chunks.Store) error {
	marker, err := owner(ctx, store, s.o.Catalog.Identity().Coder)
	if err != nil {
		return err
	}
	return s.judge(ctx, store, marker)
}

// TakeIn gives a store a marker that has none, whatever Options.Bare says. It returns
// ErrReplaced for one that has another's, and the store's errors.
func (s *Shipper) TakeIn(ctx context.Context, store chunks.Store) error {
	marker, err := owner(ctx, store, s.o.Catalog.Identity().Coder)
	if err != nil {
		return err
	}
	if marker != (catalog.Identity{}) {
		return s.judge(ctx, store, marker)
	}
	return s.take(ctx, store)
}

// bare takes a store in again that has no marker, though it had one or didn't answer
// Claim, unless the options say otherwise.
func (s *Shipper) bare(ctx context.Context, store chunks.Store) error {
	if s.o.Bare != nil && !s.o.Bare(store) {
		return fmt.Errorf("%w: %s", ErrBare, store.Name())
	}
	err := s.take(ctx, store)
	if err != nil && ctx.Err() == nil {
		s.failed(store, "owner", err)
	}
	return err // the next look at it finds it so again
}

// take writes our marker into a store that has lost what it held, or is another one in its
// place. What it lacks of the log others may lose next, so that all of it is looked at again.
func (s *Shipper) take(ctx context.Context, store chunks.Store) error {
	if err := patient(ctx, s.o.Patience, func(ctx context.Context) error {
		return putOwner(ctx, store, s.o.Catalog.Identity())
	}); err != nil {
		return err
	}
	s.o.marked(store)
	s.o.Logger.Warn().Str("store", store.Name()).Msg("store has lost the catalog's log, which is shipped to it anew if others lack it, too")
	s.change(func() { s.emptied = true })
	token(s.snaps)
	return nil
}

func (s *Shipper) replaced(store chunks.Store, by catalog.Identity) error {
	return fmt.Errorf("%w: %s is of %s in term %d", ErrReplaced, store.Name(), by.Instance, by.Term)
}

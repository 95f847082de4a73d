package manifest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"penstock/infra/objectstore"
)

// Hold writes a lease into the document. Who changes an owner waits while there
// is one. The lease is renewed until it is released.
func (s *Store) Hold(ctx context.Context, owner, version string) (objectstore.Held, error) {
	if !s.Capabilities().Barrier {
		return nil, objectstore.ErrNoBarrier
	}
	l := lease{ID: newID(), TTLMillis: s.o.Lease.Milliseconds()}
	var changes uint64
	err := s.change(ctx, owner, l.ID, nil, func(d *document) (bool, error) {
		if d.absent() {
			return false, noOwner(owner)
		}
		if version != "" && d.version() != version {
			return false, fmt.Errorf("owner %.80q: %w", owner, objectstore.ErrChanged)
		}
		mine := l
		d.Lease = &mine
		changes = d.Changes + 1
		return true, nil
	})
	h := &held{
		s: s, owner: owner, id: l.ID, changes: changes,
		turn: s.locks.use(owner), sem: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if err != nil {
		if maybe(err) {
			h.giveUp() // it may be held, and by nobody
		}
		s.locks.drop(owner, h.turn)
		return nil, err
	}
	renewing, stop := context.WithCancel(s.collector.ctx)
	h.stop = stop
	go h.renew(renewing)
	return h, nil
}

// held is a lease in a document.
type held struct {
	s     *Store
	owner string
	id    string
	turn  *turn
	sem   chan struct{} // the renewal and the holder take turns
	stop  context.CancelFunc
	done  chan struct{} // closed when no renewal runs any more
	// gone: there is nothing to release any more. Guarded by sem.
	gone bool
	// changes is how often the document had been written when the lease was.
	changes uint64
}

// renew shows signs of life until ctx ends or the lease is lost.
func (h *held) renew(ctx context.Context) {
	defer close(h.done)
	tick := h.s.o.Clock.NewTicker(max(h.s.o.Lease/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
		within, cancel := h.s.within(ctx, h.s.o.Lease)
		err := h.change(within, func(*document) error { return nil })
		cancel()
		if errors.Is(err, objectstore.ErrHoldLost) {
			h.s.o.Count("lease-lost", 1)
			return
		}
	}
}

// change changes the held document: only while it bears the lease.
func (h *held) change(ctx context.Context, f func(d *document) error) error {
	select {
	case h.sem <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-h.sem }()
	if h.gone {
		return fmt.Errorf("owner %.80q: %w", h.owner, objectstore.ErrHoldLost)
	}
	op := newID()
	var last error
	for try := range failures + 1 {
		if try > 0 {
			if err := h.s.o.Clock.Sleep(ctx, jitter(h.s.o.Poll<<min(2*try, 8))); err != nil {
				return errors.Join(err, last)
			}
		}
		now, err := h.s.load(ctx, h.owner)
		if err != nil {
			last = err
			continue
		}
		if slices.Contains(now.Ops, op) {
			return nil
		}
		if now.Changes < h.changes {
			last = fmt.Errorf("owner %.80q: read back an older document", h.owner)
			continue
		}
		if now.Lease == nil || now.Lease.ID != h.id {
			h.gone = true
			return fmt.Errorf("owner %.80q: %w", h.owner, objectstore.ErrHoldLost)
		}
		now.Lease.Beat++
		if err := f(now.document); err != nil {
			return err
		}
		if last = h.set(ctx, now, op); last == nil {
			return nil
		}
	}
	return last
}

func (h *held) set(ctx context.Context, now snapshot, op string) error {
	now.did(op)
	body, err := now.encode()
	if err != nil {
		return err
	}
	revision, err := h.s.b.Set(ctx, h.owner, body, now.revision)
	if err != nil {
		return fmt.Errorf("write document of %.80q: %w", h.owner, cause(ctx, err))
	}
	h.s.locks.wrote(h.turn, revision)
	return nil
}

// Mark changes the mark while the lease stands.
func (h *held) Mark(ctx context.Context, from, to objectstore.Mark) error {
	if to.State == objectstore.Absent {
		return errAbsent
	}
	return h.change(ctx, func(d *document) error { return d.mark(h.owner, from, to) })
}

// Delete ends the copy, and the lease with it.
func (h *held) Delete(ctx context.Context, as objectstore.Mark) error {
	left, err := h.s.blobs(ctx, h.owner, time.Time{})
	if err != nil {
		return err
	}
	var condemned []string
	err = h.change(ctx, func(d *document) error {
		_, err := d.remove(h.owner, as, left)
		condemned = d.Condemned
		return err
	})
	if err != nil {
		return err
	}
	h.end()
	h.gone = true
	h.s.locks.release(h.turn)
	return h.s.execute(ctx, h.owner, condemned)
}

// Release takes the lease out of the document. If that can't be done the lease
// lapses.
func (h *held) Release() {
	if h.stop == nil {
		return
	}
	h.end()
	h.stop = nil
	h.giveUp()
	h.s.locks.release(h.turn)
	h.s.locks.drop(h.owner, h.turn)
}

// Abandon lets the hold of a Store lapse instead of releasing it, as the death of
// its process does. It is for tests.
func Abandon(h objectstore.Held) {
	if h, ok := h.(*held); ok {
		h.end()
	}
}

// end ends the renewal.
func (h *held) end() {
	h.stop()
	<-h.done
}

// giveUp takes the lease out of the document if it is there, within the time in
// which it would lapse.
func (h *held) giveUp() {
	if h.gone {
		return
	}
	ctx, cancel := h.s.within(context.Background(), h.s.o.Lease)
	defer cancel()
	err := h.change(ctx, func(d *document) error {
		d.Lease = nil
		return nil
	})
	h.gone = true
	if err != nil && !errors.Is(err, objectstore.ErrHoldLost) {
		h.s.o.Count("lease-left", 1)
	}
}

// within is ctx with an end after d by the store's clock.
func (s *Store) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	timer := s.o.Clock.NewTimer(d)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer timer.Stop()
		select {
		case <-timer.C():
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); <-done }
}

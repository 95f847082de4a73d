package gate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"penstock/infra/objectstore"
	"penstock/schemas/subject"
)

const (
	// askWithin bounds one request to an entry point, which answers at once or
	// after replyWithin.
	askWithin = 250 * time.Millisecond
	askAgain  = 20 * time.Millisecond
)

// Store is a site's store behind the site's entry points: see [Barrier.Store].
type Store struct {
	objectstore.Store
	b      *Barrier
	site   string
	always bool
}

// Close closes the store if it can be.
func (s *Store) Close() error {
	if c, ok := s.Store.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Capabilities are the store's own. A barrier counts as there also while entry
// points are registered that hold for it; then all must write through them.
func (s *Store) Capabilities() objectstore.Capabilities {
	c := s.Store.Capabilities()
	c.Barrier = c.Barrier || len(s.b.names(s.site)) > 0
	return c
}

// Hold asks the site's entry points to hold the owner's writes, waits until none is
// running, and holds the store itself if it can be. ErrNoBarrier if the store can't
// and no entry point is registered; a *SilentError if one of them does not answer.
func (s *Store) Hold(ctx context.Context, owner, version string) (objectstore.Held, error) {
	own := s.Store.Capabilities().Barrier
	if own && !s.always {
		return s.Store.Hold(ctx, owner, version)
	}
	l, err := s.List(ctx, owner)
	if err != nil {
		return nil, err
	}
	if version != "" && l.Version != version {
		return nil, fmt.Errorf("owner %.80q: %w", owner, objectstore.ErrChanged)
	}
	h := &held{
		s: s, own: own, told: map[string]time.Time{},
		slot: slot{ID: rand.Text(), Owner: owner, Data: l.Mark.Writable() && len(l.Objects) > 0},
	}
	if h.claimed, err = s.b.claim(ctx, s.site, h.slot); err != nil {
		h.over()
		return nil, err
	}
	names := s.b.names(s.site)
	if len(names) == 0 {
		h.over()
		return s.Store.Hold(ctx, owner, version)
	}
	h.renewing(ctx)
	err = h.all(ctx, names)
	if err == nil {
		err = h.inner(ctx, version)
	}
	if err == nil {
		err = h.check() // Some may have waited long for others.
	}
	if err != nil {
		h.over()
		return nil, err
	}
	return h, nil
}

// held is an owner that entry points hold.
type held struct {
	s    *Store
	own  bool // the store has a barrier
	slot slot
	in   objectstore.Held // the store's own; nil: it has none

	claimed *claimed           // nil: none was
	stop    context.CancelFunc // of the renewal; nil: there is none
	done    chan struct{}      // closed when that has ended
	once    sync.Once

	mu   sync.Mutex
	told map[string]time.Time // when each entry point was last asked that said held
	lost string               // an entry point that holds no more
}

// all asks entry points until each has said that it holds the owner.
func (h *held) all(ctx context.Context, names []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(names))
	for _, name := range names {
		go func() {
			err := h.until(ctx, name)
			if err != nil {
				cancel()
			}
			errs <- err
		}()
	}
	var first error
	for range names {
		err := <-errs
		var silent *SilentError
		if err != nil && (first == nil || errors.As(err, &silent)) {
			first = err
		}
	}
	return first
}

// until asks one until it holds, and goes on asking while writes are running there:
// that renews the lease.
func (h *held) until(ctx context.Context, name string) error {
	clk := h.s.b.o.Clock
	heard := clk.Now()
	for {
		began := clk.Now()
		a, err := h.ask(ctx, name, opHold, nil)
		switch {
		case err == nil && a.State == stateHeld:
			h.note(name, began)
			return nil
		case err == nil && a.State == stateWaiting:
			heard = clk.Now()
		case ctx.Err() != nil:
			return ctx.Err()
		case !h.s.b.registered(h.s.site, name):
			return nil // It has drained: it lets nothing in any more.
		case clk.Now().Sub(heard) >= h.s.b.o.Silence:
			h.s.b.o.Count(Silent, 1)
			return &SilentError{h.s.site, name}
		}
		if clk.Sleep(ctx, askAgain) != nil {
			return ctx.Err()
		}
	}
}

func (h *held) note(name string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told[name] = at
}

func (h *held) ask(ctx context.Context, name, op string, w *where) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	b, err := h.s.b.o.link.ask(ctx, subject.Gate(h.s.site, name), encode(request{
		Op: op, ID: h.slot.ID, Owner: h.slot.Owner, Data: h.slot.Data, LeaseMS: h.s.b.o.Lease.Milliseconds(), Where: w,
	}))
	if err != nil {
		return answer{}, err
	}
	return decode[answer](b)
}

// inner holds the store too, or makes sure that nothing has changed until the entry
// points held.
func (h *held) inner(ctx context.Context, version string) (err error) {
	if h.own {
		h.in, err = h.s.Store.Hold(ctx, h.slot.Owner, version)
		return err
	}
	if version == "" {
		return nil
	}
	l, err := h.s.List(ctx, h.slot.Owner)
	if err == nil && l.Version != version {
		err = fmt.Errorf("owner %.80q: %w", h.slot.Owner, objectstore.ErrChanged)
	}
	return err
}

// renewing begins to show signs of life.
func (h *held) renewing(ctx context.Context) {
	ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	h.done = make(chan struct{})
	go h.renew(ctx)
}

// renew shows the entry points that hold signs of life until ctx ends.
func (h *held) renew(ctx context.Context) {
	defer close(h.done)
	tick := h.s.b.o.Clock.NewTicker(h.s.b.o.Lease / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
		var asking sync.WaitGroup
		for _, name := range h.names() {
			asking.Go(func() {
				began := h.s.b.o.Clock.Now()
				a, err := h.ask(ctx, name, opHold, nil)
				switch {
				case err == nil && a.State == stateHeld:
					h.note(name, began)
				case err == nil && a.State == stateLost:
					h.lose(name)
				}
			})
		}
		asking.Wait()
	}
}

// names are the entry points that have said that they hold.
func (h *held) names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]string, 0, len(h.told))
	for name := range h.told {
		out = append(out, name)
	}
	return out
}

func (h *held) lose(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost == "" {
		h.lost = name
		h.s.b.o.Count(HoldLost, 1)
	}
}

// check says whether all entry points are known to hold still.
func (h *held) check() error {
	now := h.s.b.o.Clock.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, at := range h.told {
		if h.lost == "" && now.Sub(at) >= h.s.b.o.Lease && h.s.b.registered(h.s.site, name) {
			h.lost = name
			h.s.b.o.Count(HoldLost, 1)
		}
	}
	if h.lost != "" {
		return fmt.Errorf("entry point %s of %s: %w", h.lost, h.s.site, objectstore.ErrHoldLost)
	}
	return nil
}

// Mark changes the mark of the held copy. objectstore.ErrHoldLost.
func (h *held) Mark(ctx context.Context, from, to objectstore.Mark) error {
	if err := h.check(); err != nil {
		return err
	}
	if h.in != nil {
		return h.in.Mark(ctx, from, to)
	}
	return h.s.Store.Mark(ctx, h.slot.Owner, from, to)
}

// Delete deletes the held copy. objectstore.ErrHoldLost.
func (h *held) Delete(ctx context.Context, as objectstore.Mark) error {
	if err := h.check(); err != nil {
		return err
	}
	if h.in != nil {
		return h.in.Delete(ctx, as)
	}
	return h.s.Store.Delete(ctx, h.slot.Owner, as)
}

// Release lets writers in again, the store's first, and tells the entry points where
// the owner is now. It takes as long as they need to answer, the lease at most; who
// was not told asks.
func (h *held) Release() {
	h.once.Do(func() {
		h.end()
		ctx, cancel := context.WithTimeout(context.Background(), h.s.b.o.Lease)
		defer cancel()
		w, err := h.s.b.firm(ctx, question{h.slot.Owner, h.s.site, h.slot.Data})
		if err != nil {
			// It can't be known yet whether there was a flip. The slot stays, for who
			// starts now.
			h.s.b.o.Count(Undelivered, int64(len(h.names())))
			h.s.b.o.Logger.Warn().Err(err).Str("owner", h.slot.Owner).Str("site", h.s.site).
				Msg("cannot find out how a move ended: entry points will ask")
			h.s.b.leave(h.claimed)
			return
		}
		h.tellAll(ctx, w)
		h.s.b.clear(ctx, h.claimed)
	})
}

// overWithin bounds the telling of a hold that came to nothing. Who doesn't hear of
// it asks when the lease is over.
const overWithin = 500 * time.Millisecond

// over ends a hold that nobody was given, so that nothing can have been flipped.
func (h *held) over() {
	h.end()
	if h.claimed == nil {
		return // Nobody was asked.
	}
	ctx, cancel := context.WithTimeout(context.Background(), overWithin)
	defer cancel()
	h.tellAll(ctx, nil)
	h.s.b.clear(ctx, h.claimed)
}

// end ends the renewal and the store's own barrier.
func (h *held) end() {
	if h.stop != nil {
		h.stop()
		<-h.done
	}
	if h.in != nil {
		h.in.Release()
	}
}

// tellAll tells the entry points that the hold is over: those that hold until each
// has heard it, the others once, for it may be that only their answer was lost.
func (h *held) tellAll(ctx context.Context, w *where) {
	var telling sync.WaitGroup
	for _, name := range h.s.b.names(h.s.site) {
		again := slices.Contains(h.names(), name)
		telling.Go(func() { h.tell(ctx, name, w, again) })
	}
	telling.Wait()
}

func (h *held) tell(ctx context.Context, name string, w *where, again bool) {
	for {
		a, err := h.ask(ctx, name, opRelease, w)
		if err == nil && a.State == stateReleased || !h.s.b.registered(h.s.site, name) {
			return
		}
		if !again || h.s.b.o.Clock.Sleep(ctx, askAgain) != nil {
			h.s.b.o.Count(Undelivered, 1)
			return
		}
	}
}

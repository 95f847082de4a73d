package gate

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/infra/objectstore"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// movers is the group of those who tell where an owner is.
const movers = "movers"

// BarrierOptions says for which mover entry points are asked.
type BarrierOptions struct {
	// Client is the connection to the bus.
	Client *bus.Client
	// Clock paces retries and leases. Defaults to the system's.
	Clock clock.Clock
	// Count, if set, is told what happens, by the constants of this package. It must
	// not block.
	Count func(what string, n int64)
	// Lease is how long entry points hold without a sign of life, at most and by
	// default DefaultLease.
	Lease time.Duration
	// Logger gets what is worth knowing.
	Logger zerolog.Logger
	// Name is the mover's. Two movers of one bus have different names; one that
	// comes back has the one it had.
	Name string
	// Silence is how long an entry point may say nothing before it counts as silent.
	// Defaults to half a second.
	Silence time.Duration

	link link
}

func (o *BarrierOptions) complete() error {
	if o.Client == nil && o.link == nil || o.Name == "" {
		return fmt.Errorf("a client and a name are needed: %w", ErrOptions)
	}
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.Silence = cmp.Or(o.Silence, 500*time.Millisecond)
	if o.Lease < 0 || o.Lease > DefaultLease || o.Silence < 0 {
		return fmt.Errorf("a lease of %s, silence after %s: %w", o.Lease, o.Silence, ErrOptions)
	}
	if o.link == nil {
		o.link = onBus{o.Client}
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Count == nil {
		o.Count = func(string, int64) {}
	}
	return nil
}

// Barrier asks entry points to hold owners, and tells them where owners are. It is
// safe for concurrent use.
type Barrier struct {
	o       BarrierOptions
	grumble grumble

	mu      sync.Mutex
	seen    uint64                       // revision up to which the register is known
	entries map[string]map[string]string // instance by site and name
	left    map[string]*claimed          // slots to be cleared: of a life before, or of holds whose end is not known
	ready   bool                         // those of a life before are
	used    map[string][]bool            // slots in use, by site
	changed chan struct{}                // closed and made anew at each change
}

// NewBarrier checks the options. Holds wait until Run has read the register.
func NewBarrier(o BarrierOptions) (*Barrier, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return &Barrier{
		o: o, entries: map[string]map[string]string{}, left: map[string]*claimed{},
		used: map[string][]bool{}, changed: make(chan struct{}),
	}, nil
}

// Run follows the register of entry points and answers those that ask where an
// owner is, until the context ends (nil). Trouble with the bus is waited out.
func (b *Barrier) Run(ctx context.Context) error {
	var working sync.WaitGroup
	defer working.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	working.Go(func() {
		for ctx.Err() == nil {
			if err := b.follow(ctx); err != nil {
				b.failed(ctx, err, "cannot follow the register of entry points")
			}
			_ = b.o.Clock.Sleep(ctx, tryAgain) // Its end ends the loop.
		}
	})
	working.Go(func() { b.tidy(ctx) })
	for ctx.Err() == nil {
		stop, err := b.o.link.serve(subject.GateWhere, movers, func(body []byte) []byte { return b.tell(ctx, body) })
		if err == nil {
			<-ctx.Done()
			stop()
			return nil
		}
		b.failed(ctx, err, "cannot listen to entry points")
		_ = b.o.Clock.Sleep(ctx, tryAgain) // Its end ends the loop.
	}
	return nil
}

func (b *Barrier) failed(ctx context.Context, err error, what string) {
	if ctx.Err() == nil {
		b.o.Count(Failed, 1)
		b.o.Logger.WithLevel(b.grumble.level(b.o.Clock.Now())).Err(err).Msg(what)
	}
}

// follow takes in the register, from its beginning on.
func (b *Barrier) follow(ctx context.Context) error {
	return b.o.link.follow(ctx, func(c change) bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.note(c)
		b.seen = max(b.seen, c.revision)
		close(b.changed)
		b.changed = make(chan struct{})
		return true
	})
}

// note takes in a change. The lock is held.
func (b *Barrier) note(c change) {
	kind, names, ok := parseKey(c.key)
	if !ok {
		b.o.Count(Unreadable, 1)
		return
	}
	switch {
	case kind == entryKind && c.value == nil:
		delete(b.entries[names[0]], names[1])
	case kind == entryKind:
		r, err := decode[registration](c.value)
		if err != nil {
			b.o.Count(Unreadable, 1) // It is one all the same, and is asked.
		}
		if b.entries[names[0]] == nil {
			b.entries[names[0]] = map[string]string{}
		}
		b.entries[names[0]][names[1]] = r.Instance
	case kind == holdKind && names[1] == b.o.Name && !b.ready:
		delete(b.left, c.key)
		if s, err := decode[slot](c.value); c.value != nil && err == nil && s.ID != "" {
			b.left[c.key] = &claimed{site: names[0], key: c.key, slot: s}
		}
	}
}

// tidyEvery is how often slots whose end is not known are looked at.
const tidyEvery = time.Second

// tidy makes this mover ready, then clears slots whose end was not known.
func (b *Barrier) tidy(ctx context.Context) {
	begun := false
	for ctx.Err() == nil {
		var err error
		if !begun {
			err = b.begin(ctx)
			begun = err == nil
		} else {
			err = b.settle(ctx)
		}
		pause := tidyEvery
		if err != nil {
			pause = tryAgain
			b.failed(ctx, err, "cannot clear slots")
		}
		_ = b.o.Clock.Sleep(ctx, pause) // Its end ends the loop.
	}
}

// begin makes this mover ready: it knows the register up to now, and what was held
// in a life before is over for sure.
func (b *Barrier) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	revision, err := b.o.link.put(ctx, moverKey(b.o.Name), encode(registration{rand.Text()}))
	if err != nil {
		return err
	}
	if err := b.await(ctx, func() bool { return b.seen >= revision }); err != nil {
		return err
	}
	if err := b.settle(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = true
	close(b.changed)
	b.changed = make(chan struct{})
	return nil
}

// settle makes sure where the owners of slots that were left are, and clears them.
func (b *Barrier) settle(ctx context.Context) error {
	b.mu.Lock()
	left := slices.Collect(maps.Values(b.left))
	b.mu.Unlock()
	for _, c := range left {
		within, cancel := context.WithTimeout(ctx, tryWithin)
		_, err := b.firm(within, question{c.slot.Owner, c.site, c.slot.Data})
		if err == nil {
			err = b.empty(within, c)
		}
		cancel()
		if err != nil {
			return err
		}
		b.mu.Lock()
		delete(b.left, c.key)
		b.mu.Unlock()
		c.free()
	}
	return nil
}

// leave leaves a slot to settle.
func (b *Barrier) leave(c *claimed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left[c.key] = c
}

// clear empties a slot whose hold is over.
func (b *Barrier) clear(ctx context.Context, c *claimed) {
	if err := b.empty(ctx, c); err != nil {
		b.failed(ctx, err, "a slot is not cleared")
		b.leave(c)
		return
	}
	c.free()
}

func (b *Barrier) empty(ctx context.Context, c *claimed) error {
	_, err := b.o.link.put(ctx, c.key, encode(slot{}))
	return err
}

// await waits until something is so. The lock is held when it is asked.
func (b *Barrier) await(ctx context.Context, so func() bool) error {
	for {
		b.mu.Lock()
		done, changed := so(), b.changed
		b.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// names are the entry points of a site that are registered now.
func (b *Barrier) names(site string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.entries[site]))
}

func (b *Barrier) registered(site, name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.entries[site][name]
	return ok
}

// claimed is a slot in use.
type claimed struct {
	site, key string
	slot      slot
	unused    func() // nil: of a life before
}

// free lets the slot be used again.
func (c *claimed) free() {
	if c.unused != nil {
		c.unused()
	}
}

// claim writes a slot. Whoever registers after that finds it, and whoever has
// registered before is known when it returns. After an error it may be written: it is
// to be cleared unless it is nil.
func (b *Barrier) claim(ctx context.Context, site string, s slot) (*claimed, error) {
	if err := b.await(ctx, func() bool { return b.ready }); err != nil {
		return nil, err
	}
	b.mu.Lock()
	n := slices.Index(b.used[site], false)
	if n < 0 {
		n = len(b.used[site])
		b.used[site] = append(b.used[site], true)
	}
	b.used[site][n] = true
	b.mu.Unlock()
	c := &claimed{site: site, key: holdKey(site, b.o.Name, n), slot: s, unused: func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.used[site][n] = false
	}}
	revision, err := b.o.link.put(ctx, c.key, encode(s))
	if err == nil {
		err = b.await(ctx, func() bool { return b.seen >= revision })
	}
	return c, err
}

// tell answers an entry point that asks where an owner is.
func (b *Barrier) tell(ctx context.Context, body []byte) []byte {
	q, err := decode[question](body)
	if err != nil || q.Owner == "" || q.Site == "" {
		b.o.Count(Unreadable, 1)
		return encode(word{})
	}
	ctx, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	w, err := b.firm(ctx, q)
	if err != nil {
		b.failed(ctx, err, "cannot tell where an owner is")
		return encode(word{})
	}
	return encode(word{OK: true, Where: w})
}

// firm returns where an owner is, nil if nobody ever moved it. If that is the given
// site, locations is written once more under a new revision, so that it stays so: a
// flip that is under way was meant for the old one.
func (b *Barrier) firm(ctx context.Context, q question) (*where, error) {
	for {
		l, revision, err := b.o.link.location(ctx, q.Owner)
		if err != nil {
			return nil, err
		}
		switch {
		case revision == 0 && !q.Data:
			return nil, nil // No copy here that could be moved away.
		case revision == 0:
			l = control.Location{Site: q.Site, State: control.Live, Since: b.o.Clock.Now().UTC()}
		case l.Site != q.Site:
			return &where{l.Site, l.Version}, nil
		}
		err = b.o.link.relocate(ctx, q.Owner, l, revision)
		if err == nil {
			b.o.Count(Firmed, 1)
			return &where{l.Site, l.Version}, nil
		}
		if !errors.Is(err, errConflict) {
			return nil, err
		}
	}
}

// Store is a site's store whose Hold also keeps the site's entry points from letting
// writes in. Where the store has a barrier of its own, that is left to do it, unless
// always is set: for services that write past it, so that it alone protects nothing,
// and an entry point that doesn't answer fails the move all the same.
func (b *Barrier) Store(site string, s objectstore.Store, always bool) *Store {
	return &Store{Store: s, b: b, site: site, always: always}
}

package shares

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"penstock/infra/clock"
)

// Options of a Router.
type Options struct {
	// Clock paces the waiting of Drain. Defaults to the machine's.
	Clock clock.Clock
	// Name is the router in outcomes. Defaults to "router".
	Name string
	// Sites are the sites that there are; a table that names another is rejected.
	// Empty: any.
	Sites []string
}

// Router is the table in force inside a process: the executor puts tables in and
// requests look up where to go. Look-ups take no lock and allocate nothing. All
// methods are safe for concurrent use.
type Router struct {
	o     Options
	sites map[string]bool
	force atomic.Pointer[force]

	mu       sync.Mutex // of those who change what is in force
	tables   map[string]Table
	newest   map[string]uint64 // the greatest epoch ever put, by calling component
	down     map[Replica]bool
	draining map[Replica]bool
	turns    map[Link]*atomic.Uint64
	probed   map[Link]*atomic.Uint64
	visits   map[Replica]*atomic.Int64
	changed  map[string]chan struct{} // by calling component, closed at its next table
}

// force is everything in force at one moment. It is never changed.
type force struct {
	links  map[Link]*choice
	probes map[Link]*probing
}

// Choice is where a request goes.
type Choice struct {
	Site string
	// Epoch is that of the table that said so; 0 is the default's.
	Epoch uint64
	// Known is false if no table has the link: the site is the caller's own.
	Known bool

	running *atomic.Int64
}

// New returns a router with nothing in force: all calls stay at their site.
func New(o Options) *Router {
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Name == "" {
		o.Name = "router"
	}
	r := &Router{
		o: o, sites: map[string]bool{}, tables: map[string]Table{}, newest: map[string]uint64{},
		down: map[Replica]bool{}, draining: map[Replica]bool{},
		turns: map[Link]*atomic.Uint64{}, probed: map[Link]*atomic.Uint64{}, visits: map[Replica]*atomic.Int64{},
		changed: map[string]chan struct{}{},
	}
	for _, s := range o.Sites {
		r.sites[s] = true
	}
	r.force.Store(&force{})
	return r
}

// Name is the router in outcomes.
func (r *Router) Name() string { return r.o.Name }

// Pick chooses the site for a request. With a key (a session, a user) it is the
// same site for the same key as long as the shares allow; without, sites take
// turns, so that after any number of picks each has had its share to within one
// request, if that many are made under one table.
func (r *Router) Pick(l Link, key string) Choice {
	c := r.force.Load().links[l]
	if c == nil {
		return Choice{Site: l.FromSite}
	}
	return c.at(c.pick(key))
}

// Stay confirms the site that a session is at, as its cookie says: false if the
// session has to be given another by Pick, because the site is down or draining,
// or has no share any more.
func (r *Router) Stay(l Link, site string) (Choice, bool) {
	c := r.force.Load().links[l]
	if c == nil {
		return Choice{Site: l.FromSite}, site == l.FromSite
	}
	return c.stay(site)
}

// Writes is Pick for a request that writes: the site that the row has for writes,
// whatever its shares and health, since no other may take them; where it has none,
// they go as reads do.
func (r *Router) Writes(l Link, key string) Choice {
	c := r.force.Load().links[l]
	if c == nil {
		return Choice{Site: l.FromSite}
	}
	return c.enter(key, "", true)
}

// Enter is Pick, or Stay where site is given and the session may stay, or Writes
// for a request that writes, which no session keeps from there; for a request that
// Drain is to wait for. The request ends with Choice.Leave.
func (r *Router) Enter(l Link, key, site string, write bool) Choice {
	for {
		f := r.force.Load()
		c := f.links[l]
		if c == nil {
			return Choice{Site: l.FromSite}
		}
		choice := c.enter(key, site, write)
		if r.begin(f, choice) {
			return choice
		}
	}
}

// begin counts a request in, unless what it was chosen by is no longer in force. A
// drain swaps what is in force and then looks at the number: it has seen this
// request, or this sees the swap.
func (r *Router) begin(by *force, c Choice) bool {
	c.running.Add(1)
	if r.force.Load() == by {
		return true
	}
	c.running.Add(-1)
	return false
}

// Leave ends a request that Enter began.
func (c Choice) Leave() {
	if c.running != nil {
		c.running.Add(-1)
	}
}

// Put brings a table into force, whole, between two look-ups. ErrOlder, ErrTable,
// ErrShares, ErrTooFine, ErrAbsent: the one before stays.
func (r *Router) Put(_ context.Context, t Table) (changes int, err error) {
	if err := t.Check(); err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.Epoch != 0 && t.Epoch < r.newest[t.From] {
		return 0, fmt.Errorf("epoch %d of %.80q, epoch %d is known: %w", t.Epoch, t.From, r.newest[t.From], ErrOlder)
	}
	for _, site := range t.sites() {
		if len(r.sites) > 0 && !r.sites[site] {
			return 0, fmt.Errorf("table of %.80q: site %.80q: %w", t.From, site, ErrAbsent)
		}
	}
	now, has := r.tables[t.From]
	if has && now.Epoch == t.Epoch && SameRows(now.Rows, t.Rows) && slices.Equal(now.Probes, t.Probes) {
		return 0, nil
	}
	next, changes, err := r.build(t)
	if err != nil {
		return 0, err
	}
	if !slices.Equal(now.Probes, t.Probes) {
		changes++
	}
	r.tables[t.From] = t
	r.newest[t.From] = max(r.newest[t.From], t.Epoch)
	r.swap(t.From, next)
	r.tell(t.From)
	if !has {
		r.tell(arrivals)
	}
	return changes, nil
}

// Clear takes the table of a component out of force: its calls stay at their
// site.
func (r *Router) Clear(_ context.Context, from string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, has := r.tables[from]; !has {
		return nil
	}
	delete(r.tables, from)
	r.swap(from, force{})
	r.tell(from)
	return nil
}

// build makes the rows and the probes of a table ready; changes is how many rows
// are not what is in force.
func (r *Router) build(t Table) (next force, changes int, err error) {
	next = force{links: make(map[Link]*choice, len(t.Rows)), probes: map[Link]*probing{}}
	before := r.force.Load()
	for _, row := range t.Rows {
		l := Link{t.From, row.FromSite, row.To}
		old := before.links[l]
		c, err := r.ready(l, row, t.Epoch, old)
		if err != nil {
			return force{}, 0, fmt.Errorf("table of %.80q: from %.80q to %.80q: %w", t.From, row.FromSite, row.To, err)
		}
		if old == nil || old.epoch != t.Epoch || !same(old.row, row) {
			changes++
		}
		next.links[l] = c
	}
	for l, probes := range t.byLink() {
		draining := func(site string) bool { return r.draining[Replica{l.To, site}] }
		p, err := newProbing(probes, draining, of(r.probed, l), before.probes[l])
		if err != nil {
			return force{}, 0, fmt.Errorf("table of %.80q: probes from %.80q to %.80q: %w", t.From, l.FromSite, l.To, err)
		}
		if p != nil {
			next.probes[l] = p
		}
	}
	return next, changes, nil
}

// ready makes a row ready. One that is as it was is used on.
func (r *Router) ready(l Link, row Row, epoch uint64, old *choice) (*choice, error) {
	down, draining := make([]bool, len(row.Ratios)), make([]bool, len(row.Ratios))
	visits := make([]*atomic.Int64, len(row.Ratios))
	for i, ratio := range row.Ratios {
		replica := Replica{row.To, ratio.Site}
		down[i], draining[i] = r.down[replica], r.draining[replica]
		visits[i] = of(r.visits, replica)
	}
	if old != nil && same(old.row, row) && slices.Equal(old.down, down) && slices.Equal(old.draining, draining) {
		c := *old
		c.epoch = epoch
		return &c, nil
	}
	c, err := newChoice(row, epoch, down, draining)
	if err != nil {
		return nil, err
	}
	c.visits, c.turn = visits, of(r.turns, l)
	if row.WritesAt != "" {
		c.writes = of(r.visits, Replica{row.To, row.WritesAt})
	}
	c.follow(old)
	return c, nil
}

// swap replaces what is in force of one calling component.
func (r *Router) swap(from string, next force) {
	now := r.force.Load()
	r.force.Store(&force{links: replaced(now.links, from, next.links), probes: replaced(now.probes, from, next.probes)})
}

// replaced returns a map without what it has of a calling component, and with what
// it is to have.
func replaced[C any](all map[Link]C, from string, next map[Link]C) map[Link]C {
	left := maps.Clone(all)
	if left == nil {
		left = make(map[Link]C, len(next))
	}
	maps.DeleteFunc(left, func(l Link, _ C) bool { return l.From == from })
	maps.Copy(left, next)
	return left
}

// Up says whether a replica can take requests, as health checks find. Those that
// can't aren't chosen while another has a share.
func (r *Router) Up(replica Replica, up bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mark(r.down, replica, !up)
}

// mark notes that a replica is down or draining, or no longer is.
func (r *Router) mark(in map[Replica]bool, replica Replica, set bool) {
	if in[replica] == set {
		return
	}
	if set {
		in[replica] = true
	} else {
		delete(in, replica)
	}
	now := r.force.Load()
	all := force{links: maps.Clone(now.links), probes: maps.Clone(now.probes)}
	for _, t := range r.tables {
		if !t.concerns(replica.Component) {
			continue
		}
		next, _, err := r.build(t)
		if err != nil {
			continue // it was built before, and marks make no share less possible
		}
		maps.Copy(all.links, next.links)
		maps.DeleteFunc(all.probes, func(l Link, _ *probing) bool { return l.From == t.From })
		maps.Copy(all.probes, next.probes)
	}
	r.force.Store(&all)
}

// Ready is nil unless the site is none, or the replica is down or draining.
func (r *Router) Ready(_ context.Context, replica Replica) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(r.sites) > 0 && !r.sites[replica.Site]:
		return fmt.Errorf("%.80q at %.80q: %w", replica.Component, replica.Site, ErrAbsent)
	case r.down[replica] || r.draining[replica]:
		return fmt.Errorf("%.80q at %.80q: %w", replica.Component, replica.Site, ErrNotReady)
	}
	return nil
}

// drainLook is how often Drain looks whether requests are still running.
const drainLook = 5 * time.Millisecond

// Drain gives a replica no more requests and waits until those that Enter began
// have left. ErrRemaining, with their number, if ctx ends before.
func (r *Router) Drain(ctx context.Context, replica Replica) (remaining int, err error) {
	r.mu.Lock()
	r.mark(r.draining, replica, true)
	running := of(r.visits, replica)
	r.mu.Unlock()
	for running.Load() > 0 {
		if r.o.Clock.Sleep(ctx, drainLook) != nil {
			n := int(running.Load())
			if n == 0 {
				break
			}
			return n, fmt.Errorf("%d at %.80q of %.80q: %w", n, replica.Site, replica.Component, ErrRemaining)
		}
	}
	return 0, nil
}

// Undrain gives a replica its share again.
func (r *Router) Undrain(_ context.Context, replica Replica) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mark(r.draining, replica, false)
	return nil
}

// of returns what a map holds for a key, and makes it.
func of[K comparable, C any](all map[K]*C, k K) *C {
	c := all[k]
	if c == nil {
		c = new(C)
		all[k] = c
	}
	return c
}

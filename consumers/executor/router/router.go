package router

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
	visits   map[Replica]*atomic.Int64
}

// force is everything in force at one moment. It is never changed.
type force struct {
	links map[Link]*choice
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

var _ Target = (*Router)(nil)

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
		turns: map[Link]*atomic.Uint64{}, visits: map[Replica]*atomic.Int64{},
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
	i := c.index(site)
	if i < 0 || !c.chosen(i) {
		return Choice{}, false
	}
	return c.at(i), true
}

// Writes is Pick for a request that writes: the site that the row has for writes,
// whatever its shares and health, since no other may take them; where it has none,
// they go as reads do.
func (r *Router) Writes(l Link, key string) Choice {
	c := r.force.Load().links[l]
	if c == nil || c.row.WritesAt == "" {
		return r.Pick(l, key)
	}
	return Choice{Site: c.row.WritesAt, Epoch: c.epoch, Known: true}
}

// Enter is Pick, or Stay where site is given and the session may stay, for a
// request that Drain is to wait for. The request ends with Choice.Leave.
func (r *Router) Enter(l Link, key, site string) Choice {
	for {
		f := r.force.Load()
		choice, stays := Choice{}, false
		if site != "" {
			choice, stays = r.Stay(l, site)
		}
		if !stays {
			choice = r.Pick(l, key)
		}
		if choice.running == nil || r.begin(f, choice) {
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

func (c *choice) at(i int) Choice {
	return Choice{Site: c.row.Ratios[i].Site, Epoch: c.epoch, Known: true, running: c.visits[i]}
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
	now := r.tables[t.From]
	if now.Epoch == t.Epoch && SameRows(now.Rows, t.Rows) {
		return 0, nil
	}
	links, changes, err := r.build(t)
	if err != nil {
		return 0, err
	}
	r.tables[t.From] = t
	r.newest[t.From] = max(r.newest[t.From], t.Epoch)
	r.swap(t.From, links)
	return changes, nil
}

// Clear takes the table of a component out of force: its calls stay at their
// site.
func (r *Router) Clear(_ context.Context, from string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tables, from)
	r.swap(from, nil)
	return nil
}

// build makes the rows of a table ready; changes is how many are not what is in
// force.
func (r *Router) build(t Table) (links map[Link]*choice, changes int, err error) {
	links = make(map[Link]*choice, len(t.Rows))
	before := r.force.Load().links
	for _, row := range t.Rows {
		l := Link{t.From, row.FromSite, row.To}
		old := before[l]
		c, err := r.ready(l, row, t.Epoch, old)
		if err != nil {
			return nil, 0, fmt.Errorf("table of %.80q: from %.80q to %.80q: %w", t.From, row.FromSite, row.To, err)
		}
		if old == nil || old.epoch != t.Epoch || !same(old.row, row) {
			changes++
		}
		links[l] = c
	}
	return links, changes, nil
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
	c.follow(old)
	return c, nil
}

// swap replaces the links of one calling component.
func (r *Router) swap(from string, links map[Link]*choice) {
	all := maps.Clone(r.force.Load().links)
	if all == nil {
		all = map[Link]*choice{}
	}
	maps.DeleteFunc(all, func(l Link, _ *choice) bool { return l.From == from })
	maps.Copy(all, links)
	r.force.Store(&force{links: all})
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
	all := maps.Clone(r.force.Load().links)
	for from, t := range r.tables {
		concerned := slices.ContainsFunc(t.Rows, func(row Row) bool { return row.To == replica.Component })
		if !concerned {
			continue
		}
		links, _, err := r.build(Table{From: from, Epoch: t.Epoch, Rows: t.Rows})
		if err != nil {
			continue // it was built before, and marks make no share less possible
		}
		maps.Copy(all, links)
	}
	r.force.Store(&force{links: all})
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

// Observe returns the shares that are set for a component, health apart.
func (r *Router) Observe(_ context.Context, from string) ([]Row, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tables[from].Rows), nil
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

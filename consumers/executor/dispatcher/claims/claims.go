package claims

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// tries is how often a round begins anew because another's write came first.
	tries = 8
	// hurry is how many times more often rounds are made while a share is not fair, or the
	// bus is away.
	hurry = 4
)

// Claims are one dispatcher's part in the sharing: its Shares, and what it knows of Others.
// Make them with New; nothing is claimed before Run.
type Claims struct {
	o     Options
	store store
	kick  chan struct{}

	loads func(fn func(zone, server string, inService, queued int, potential float64))
	epoch func() uint64

	mu       sync.Mutex
	core     claimant
	fair     map[string]int
	written  map[string]place // by the last round that was written
	change   uint64           // counts SetServers
	zones    map[string]string
	seen     View      // what was read last, ages as of then
	seenAt   time.Time // by Clock
	reached  bool      // the bus, ever
	away     bool
	live     int
	counts   Counts
	watchers []func()
}

// Counts are what has happened since the start.
type Counts struct {
	// Rounds that were written, and Conflicts that made one begin anew.
	Rounds, Conflicts int64
	// Failed rounds, for the bus was away or answered with an error.
	Failed int64
	// Unreadable values of the key, which were written over.
	Unreadable int64
}

// State is for status.
type State struct {
	// Away says that the last round failed.
	Away bool
	// Live dispatchers as of the last round, this one included.
	Live int
	// Limits are how many requests may be in service by server, Fair what they should be.
	Limits, Fair map[string]int
	// Claimed are the places of a server that this dispatcher had by its last round, Others'
	// those of all others, and Free those of nobody. Absent before the first one.
	Claimed, Others, Free map[string]int
	Counts                Counts
}

// place is how the places of a server were shared out.
type place struct{ claimed, others, free int }

// Load is what other dispatchers have in a zone.
type Load struct {
	// Requests that wait or are in service.
	Requests int
	// Potential penalty of those that wait, in units of cost.
	Potential float64
	// At is when the oldest of these figures was taken, to within Options.Every.
	At time.Time
}

// New returns claims of nothing yet. The error wraps ErrOptions.
func New(o Options) (*Claims, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	c := newClaims(o, &kvStore{client: o.Client, key: key(o.Site), makes: true})
	if err := c.SetServers(o.Servers); err != nil {
		return nil, err
	}
	if o.Registerer != nil {
		if err := o.Registerer.Register(newCollector(c)); err != nil {
			return nil, fmt.Errorf("metrics of claims: %w", err)
		}
	}
	return c, nil
}

func newClaims(o Options, s store) *Claims {
	return &Claims{
		o: o, store: s, kick: make(chan struct{}, 1), live: 1,
		core: claimant{self: row{Name: o.Name, Instance: newInstance()}, grace: o.Grace, limits: map[string]int{}},
	}
}

// Observe says where to ask what is in service and queued at each server, as
// dispatcher.Site's Loads tells it, and for the epoch of the table in force; nil is never
// asked. It is to be called before Run. Both are called from Run, and must tell of every
// request that was begun under a limit of before they were called.
func (c *Claims) Observe(loads func(fn func(zone, server string, inService, queued int, potential float64)), epoch func() uint64) {
	c.loads, c.epoch = loads, epoch
}

// SetServers replaces the servers. Limits of those that were taken out are 0 when it
// returns, and none is above its M. The error wraps ErrOptions; nothing is changed then.
func (c *Claims) SetServers(servers []Server) error {
	list, err := arrange(servers)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.core.servers = list
	c.change++
	c.zones = map[string]string{}
	p := plan{next: map[string]int{}}
	for _, s := range list {
		c.zones[s.Name] = s.Zone
		p.next[s.Name] = s.M
	}
	changed := c.core.lower(&p)
	for name := range c.core.limits {
		if _, ok := p.next[name]; !ok {
			delete(c.core.limits, name)
		}
	}
	c.mu.Unlock()
	if changed {
		c.tell()
	}
	select {
	case c.kick <- struct{}{}:
	default:
	}
	return nil
}

// Share is the limit at a server, at most m: how many requests may be in service there. It
// never blocks on the bus.
func (c *Claims) Share(server string, m int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, min(c.core.limits[server], m))
}

// Watch has fn called after limits have changed, not within Share. While fn runs, the claims
// of before still hold; when it returns, no request may be begun above what Share says.
func (c *Claims) Watch(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchers = append(c.watchers, fn)
}

func (c *Claims) tell() {
	c.mu.Lock()
	watchers := c.watchers
	c.mu.Unlock()
	for _, fn := range watchers {
		fn()
	}
}

// Zone is what other dispatchers have at the servers of a zone, as of the last round that
// read it, also while the bus is away. At tells how old that is. some is false if there are
// none.
func (c *Claims) Zone(name string) (l Load, some bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.seen.Rows {
		r := &c.seen.Rows[i]
		if at := c.seenAt.Add(-r.Age); !some || at.Before(l.At) {
			l.At = at
		}
		some = true
		for server, f := range r.Servers {
			if zone, ok := c.zones[server]; ok && zone == name {
				l.Requests += f.InService + f.Queued
				l.Potential += f.Potential
			}
		}
	}
	return l, some
}

// State tells how the sharing stands.
func (c *Claims) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := State{
		Away: c.away, Live: c.live, Limits: map[string]int{}, Fair: map[string]int{},
		Claimed: map[string]int{}, Others: map[string]int{}, Free: map[string]int{}, Counts: c.counts,
	}
	for _, server := range c.core.servers {
		name := server.Name
		s.Limits[name], s.Fair[name] = c.core.limits[name], c.fair[name]
		if w, ok := c.written[name]; ok {
			s.Claimed[name], s.Others[name], s.Free[name] = w.claimed, w.others, w.free
		}
	}
	return s
}

// Run shares until ctx ends, then sets all limits to 0 and takes the row out of the key. So
// it is to be stopped after the last request has ended. It returns nil. It may be called once.
func (c *Claims) Run(ctx context.Context) error {
	begun := c.o.Clock.Now()
	timer := c.o.Clock.NewTimer(c.o.Every)
	defer timer.Stop()
	for ctx.Err() == nil {
		settled, err := c.round(ctx)
		if ctx.Err() != nil {
			break
		}
		c.note(err)
		if err != nil && c.o.Clock.Now().Sub(begun) >= c.o.Patience {
			c.alone()
		}
		pause := c.o.Every
		if err != nil || !settled {
			pause /= hurry
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
		case <-c.kick:
		case <-timer.C():
		}
	}
	c.leave(ctx)
	return nil
}

// note keeps whether the bus is away, and tells of the change.
func (c *Claims) note(err error) {
	c.mu.Lock()
	was := c.away
	c.away = err != nil
	if err != nil {
		c.counts.Failed++
	}
	c.mu.Unlock()
	switch {
	case err != nil && !was:
		c.o.Logger.Warn().Err(err).Str("site", c.o.Site).Msg("the places of servers can't be shared out: they stay as they are")
	case err == nil && was:
		c.o.Logger.Info().Str("site", c.o.Site).Msg("the places of servers are shared out again")
	}
}

// alone takes all places if the bus was never reached.
func (c *Claims) alone() {
	c.mu.Lock()
	if c.reached {
		c.mu.Unlock()
		return
	}
	p := plan{next: map[string]int{}}
	for _, s := range c.core.servers {
		p.next[s.Name] = s.M
	}
	changed := c.core.raise(&p)
	c.mu.Unlock()
	if changed {
		c.o.Logger.Warn().Str("site", c.o.Site).Msg("the bus was never reached: all places are taken, as if there were no other entry point")
		c.tell()
	}
}

// round reads the key, brings limits down, writes, and brings limits up. It reports whether
// all are as they should be.
func (c *Claims) round(ctx context.Context) (settled bool, err error) {
	for range tries {
		var p plan
		if p, err = c.begin(ctx); err != nil {
			return false, err
		}
		err = c.finish(ctx, &p)
		if !errors.Is(err, errConflict) {
			return p.settled(), err
		}
		c.mu.Lock()
		c.counts.Conflicts++
		c.mu.Unlock()
	}
	return false, nil // others write; that is no failure
}

// begin reads the key and brings limits down.
func (c *Claims) begin(ctx context.Context) (plan, error) {
	at := c.o.Clock.Now()
	r, err := c.store.read(ctx)
	unreadable := errors.Is(err, errBook)
	if err != nil && !unreadable {
		return plan{}, err
	}
	c.mu.Lock()
	if unreadable {
		c.counts.Unreadable++
	}
	c.reached = true
	p := c.core.plan(r)
	p.change = c.change
	c.live, c.fair = len(p.others)+1, p.fair
	c.seen, c.seenAt = view(&r, p.others), at
	changed := c.core.lower(&p)
	c.mu.Unlock()
	if unreadable {
		c.o.Logger.Warn().Err(err).Msg("it is written over")
	}
	if changed {
		c.tell()
	}
	return p, nil
}

// finish writes what is claimed and brings limits up.
func (c *Claims) finish(ctx context.Context, p *plan) error {
	epoch := uint64(0)
	if c.epoch != nil {
		epoch = c.epoch() // before the loads, so that these are of no earlier table: see View.Drained
	}
	has := map[string]Figures{}
	if c.loads != nil {
		c.loads(func(_, server string, inService, queued int, potential float64) {
			f := has[server]
			f.InService += inService
			f.Queued += queued
			f.Potential += potential
			has[server] = f
		})
	}
	c.mu.Lock()
	b := c.core.book(p, epoch, has)
	c.mu.Unlock()
	if err := c.store.write(ctx, p.from.number, b); err != nil {
		return err
	}
	c.mu.Lock()
	c.counts.Rounds++
	c.written = c.core.shared(&b)
	// Servers that changed meanwhile are for the next round.
	changed := p.change == c.change && c.core.raise(p)
	c.mu.Unlock()
	if changed {
		c.tell()
	}
	return nil
}

// leave takes the row out, so that others need not wait until it is taken for dead.
func (c *Claims) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	c.mu.Lock()
	changed := c.core.lower(&plan{})
	c.mu.Unlock()
	if changed {
		c.tell()
	}
	for ctx.Err() == nil {
		r, err := c.store.read(ctx)
		if err != nil || r.number == 0 {
			if err != nil {
				c.o.Logger.Debug().Err(err).Msg("cannot take this dispatcher's claims out; they expire")
			}
			return
		}
		c.mu.Lock()
		p := c.core.plan(r)
		b := c.core.without(&p)
		c.mu.Unlock()
		if len(b.Dispatchers) == 0 {
			err = c.store.remove(ctx, r.number)
		} else {
			err = c.store.write(ctx, r.number, b)
		}
		if !errors.Is(err, errConflict) {
			if err != nil {
				c.o.Logger.Debug().Err(err).Msg("cannot take this dispatcher's claims out; they expire")
			}
			return
		}
	}
}

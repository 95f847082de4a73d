package dispatcher

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"penstock/consumers/executor/dispatcher/pool"
	"penstock/consumers/executor/dispatcher/sizes"
)

// Site is the switch of a site: zones at its first level, servers at its second. It is
// safe for concurrent use.
type Site struct {
	o       Options
	classes map[string]int // index of Options.Classes by name
	sizes   *sizes.Sizes
	began   time.Time // what instants are measured from, in the clock's monotonic time
	epoch   int64     // began as ns since 1970

	// applying is held while servers, shares or the table change, so that the last one
	// that was asked for is the last that is told. It is taken before mu.
	applying sync.Mutex
	config   []Zone
	on       []string // what Options.Switched was told

	mu      sync.Mutex
	zones   []*zone
	force   force
	healthy map[string]bool    // what Usable said; nil: all are
	waiting map[uint64]*Ticket // by ID
	last    uint64             // ID
	rate    rate
	counts  Counts
	// Estimates beside what came, by server: of those that were ever configured.
	compared map[string]*comparison
	starts   []pool.Start // scratch, as are the next
	moved    []pool.Placed
	ranked   []*zone
}

// New makes the switch of a site. It is ready for use; Run adds gauges. ErrOptions.
func New(o Options) (*Site, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	known, err := sizes.New(sizes.Options{})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	now := o.Clock.Now()
	s := &Site{
		o: o, classes: map[string]int{}, sizes: known, began: now, epoch: now.UnixNano(), waiting: map[uint64]*Ticket{},
		compared: map[string]*comparison{},
	}
	for i, c := range o.Classes {
		s.classes[c.Name] = i
	}
	if _, err := pool.New(o.poolOptions()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if err := s.Set(o.Zones); err != nil {
		return nil, err
	}
	o.Shares.Watch(s.reshare)
	if o.Registerer != nil {
		if err := o.Registerer.Register(newCollector(s)); err != nil {
			return nil, fmt.Errorf("metrics of dispatcher: %w", err)
		}
	}
	return s, nil
}

// now is an instant of the pools: ns since 1970 by a clock that doesn't jump.
func (s *Site) now() int64 { return s.instant(s.o.Clock.Now()) }

func (s *Site) instant(t time.Time) int64 { return s.epoch + int64(t.Sub(s.began)) }

// Set replaces the zones and their servers. A server that stays in its zone keeps its
// estimates and its queue; what waits for one that is gone is placed anew, and what runs
// there runs to its end. New ones ramp. On an error, ErrOptions, nothing has changed.
func (s *Site) Set(zones []Zone) error {
	if err := checkZones(zones); err != nil {
		return err
	}
	s.applying.Lock()
	defer s.applying.Unlock()
	s.mu.Lock()
	old := s.zones
	s.zones = nil
	for _, given := range zones {
		i := slices.IndexFunc(old, func(z *zone) bool { return z.name == given.Name })
		if i >= 0 {
			s.zones = append(s.zones, old[i])
			continue
		}
		p, err := pool.New(s.o.poolOptions())
		if err != nil {
			s.zones = old
			s.mu.Unlock()
			return fmt.Errorf("%w: %w", ErrOptions, err)
		}
		s.zones = append(s.zones, &zone{name: given.Name, pool: p})
	}
	for _, z := range old {
		if !slices.Contains(s.zones, z) && z.requests > 0 {
			z.former = true
			s.zones = append(s.zones, z) // it ends as its requests do
		}
	}
	s.mu.Unlock()
	s.config = slices.Clone(zones)
	s.apply(nil)
	return nil
}

// reshare is what Options.Shares calls.
func (s *Site) reshare() {
	s.applying.Lock()
	defer s.applying.Unlock()
	s.apply(nil)
}

// apply brings servers, shares and the table in force, another one if next is not nil, to
// the pools, and tells Options.Switched. Whoever sees the epoch of a table sees no request
// begin where it says off. The caller holds applying.
func (s *Site) apply(next *force) {
	shares := map[string]int{}
	for _, z := range s.config {
		for _, server := range z.Servers {
			m := s.places(server)
			shares[server.Name] = min(max(s.o.Shares.Share(server.Name, m), 0), m)
		}
	}
	s.mu.Lock()
	if next != nil {
		s.force = *next
	}
	now := s.now()
	on := []string{}
	for _, z := range s.zones {
		z.servers = z.servers[:0]
		var list []pool.Server
		if i := slices.IndexFunc(s.config, func(c Zone) bool { return c.Name == z.name }); i >= 0 {
			z.former = false
			for _, server := range s.config[i].Servers {
				if !s.force.off[server.Name] {
					on = append(on, server.Name)
					z.servers = append(z.servers, place{name: server.Name, places: s.places(server), share: shares[server.Name]})
					list = append(list, pool.Server{Name: server.Name, Weight: server.Weight, M: shares[server.Name]})
				}
			}
		}
		moved, starts, err := z.pool.SetServers(now, list, s.moved[:0], s.starts[:0])
		if err != nil {
			// The names were checked, so this is the pool being stricter still.
			s.o.Logger.Error().Err(err).Str("site", s.o.Site).Str("zone", z.name).Msg("servers of a zone are not taken; those of before stay")
		}
		s.deliver(now, moved, starts)
	}
	s.judge()
	s.rehome(now)
	s.mu.Unlock()
	if s.o.Switched != nil && (s.on == nil || !slices.Equal(s.on, on)) {
		s.o.Switched(slices.Clone(on))
	}
	s.on = on
}

func (s *Site) places(server Server) int {
	if server.InService > 0 {
		return server.InService
	}
	return s.o.InService
}

// Usable says which servers may be used, by their health, as the pool of connections
// sees it; until it is called the first time, all may. Names of others are ignored. What
// waits for one that is not among them is placed anew; what runs there may end.
func (s *Site) Usable(names []string) {
	healthy := make(map[string]bool, len(names))
	for _, name := range names {
		healthy[name] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.healthy = healthy
	now := s.now()
	for _, z := range s.zones {
		moved, starts := z.pool.SetUsable(now, names, s.moved[:0], s.starts[:0])
		s.deliver(now, moved, starts)
	}
	s.judge()
	s.rehome(now)
}

// deliver tells those that wait what a pool has decided. The caller holds mu.
func (s *Site) deliver(now int64, moved []pool.Placed, starts []pool.Start) {
	for _, p := range moved {
		if t := s.waiting[p.ID]; t != nil {
			t.homeless = p.Server == ""
		}
	}
	s.counts.Moved += uint64(len(moved))
	for _, st := range starts {
		if t := s.waiting[st.ID]; t != nil {
			delete(s.waiting, st.ID)
			t.start(now, st.Server, st.Service)
			t.ready <- struct{}{}
		}
	}
	s.moved, s.starts = moved[:0], starts[:0]
}

// rehome finds another zone for requests whose own has no server for them any more; and
// forgets zones that are gone. The caller holds mu.
func (s *Site) rehome(now int64) {
	var homeless []*Ticket
	for _, t := range s.waiting {
		if t.homeless {
			homeless = append(homeless, t)
		}
	}
	slices.SortFunc(homeless, func(a, b *Ticket) int { return cmp.Compare(a.request.ID, b.request.ID) })
	for _, t := range homeless {
		s.move(now, t)
	}
	s.zones = slices.DeleteFunc(s.zones, func(z *zone) bool { return z.former && z.requests == 0 })
}

// move places a waiting request in another zone, if one takes it. If its own zone is gone
// and none does, it is refused.
func (s *Site) move(now int64, t *Ticket) {
	from := t.zone
	delete(s.waiting, t.request.ID)
	err := s.place(now, t, from)
	if err != nil && !from.former {
		s.waiting[t.request.ID] = t // one of its own may come back
		return
	}
	from.requests--
	s.starts = from.pool.Cancel(now, t.request.ID, s.starts[:0]) // nothing starts: it was at no server
	if err == nil {
		s.counts.Moved++
	}
	switch {
	case err != nil:
		s.counts.refuse(err)
		t.err = err
		t.ready <- struct{}{}
	case t.server != "":
		t.ready <- struct{}{}
	default:
		s.waiting[t.request.ID] = t
	}
}

// place finds a zone for a request, and a server or a place in a queue. ErrFull and
// ErrNoServer. The caller holds mu.
func (s *Site) place(now int64, t *Ticket, without *zone) error {
	list, full := s.rank(now, t, without), false
	for _, z := range list {
		placed, starts, err := z.pool.Arrive(now, t.request, s.starts[:0])
		s.starts = starts[:0]
		switch {
		case errors.Is(err, pool.ErrFull):
			full = true
			continue
		case err != nil:
			continue
		}
		charge(list, z)
		t.zone, t.homeless = z, false
		z.requests++
		if !placed.Queued {
			t.start(now, placed.Server, placed.Service)
		}
		return nil
	}
	if !full {
		return ErrNoServer
	}
	return &FullError{Wait: s.wait(now, list)}
}

// wait is how long a request would have to wait that arrived now.
func (s *Site) wait(now int64, list []*zone) time.Duration {
	least := math.Inf(1)
	for _, z := range list {
		least = min(least, z.pool.Wait(now))
	}
	return seconds(least)
}

// seconds is a number of them as a duration, at most an hour.
func seconds(n float64) time.Duration {
	return time.Duration(min(max(n, 0), 3600) * float64(time.Second))
}

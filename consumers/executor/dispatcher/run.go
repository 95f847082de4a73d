package dispatcher

import (
	"context"
	"math"
	"time"

	"penstock/consumers/executor/dispatcher/pool"
	"penstock/schemas/event"
)

// gaugesEvery is how often gauges are sent (DESIGN §3.1).
const gaugesEvery = time.Second

// Run sends the gauges once a second, and looks again for a place for requests whose zone
// has no server left, until ctx ends. It returns nil.
func (s *Site) Run(ctx context.Context) error {
	tick := s.o.Clock.NewTicker(gaugesEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
			s.mu.Lock()
			s.rehome(s.now())
			s.mu.Unlock()
			s.gauge()
		}
	}
}

// gauge sends a gauge of each server that may be used or has requests, and one without a
// server of those that wait for any to come back.
func (s *Site) gauge() {
	if s.o.Gauges == nil {
		return
	}
	at := s.o.Clock.Now().UnixMicro()
	s.each(func(_ *zone, p *pool.Gauge) {
		if !p.Usable && p.InService == 0 && p.Queued == 0 {
			return
		}
		g := event.NewGauge(at)
		g.Site, g.Server = s.o.Site, p.Server
		g.Queued, g.InService = int64(p.Queued), int64(p.InService)
		g.QueuedStatic, g.QueuedDynamic = int64(p.QueuedStatic), int64(p.QueuedDynamic)
		g.PotentialOverdue = micros(p.Potential)
		s.o.Gauges.Gauge(&g)
	})
	if n, potential := s.unplaced(); n > 0 {
		g := event.NewGauge(at)
		g.Site, g.Queued, g.InService, g.PotentialOverdue = s.o.Site, int64(n), 0, micros(potential)
		s.o.Gauges.Gauge(&g)
	}
}

// micros is a penalty as the time that costs it at one a second, in µs.
func micros(penalty float64) int64 { return int64(math.Round(min(max(penalty, 0)*1e6, 1e18))) }

// each calls fn for every server. What fn is given doesn't outlive the call.
func (s *Site) each(fn func(z *zone, g *pool.Gauge)) {
	type one struct {
		z *zone
		g pool.Gauge
	}
	s.mu.Lock()
	now := s.now()
	var all []one
	for _, z := range s.zones {
		z.pool.Gauges(now, func(g pool.Gauge) { all = append(all, one{z, g}) })
	}
	s.mu.Unlock()
	for i := range all {
		fn(all[i].z, &all[i].g)
	}
}

// unplaced are the requests that wait for a server to come back, and their potential
// penalty.
func (s *Site) unplaced() (n int, potential float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, t := range s.waiting {
		if t.homeless {
			class := &s.o.Classes[t.class]
			n++
			if late := time.Duration(now-t.entered) - class.Limit; class.Limit > 0 && late > 0 {
				potential += class.Penalty * late.Seconds()
			}
		}
	}
	return n, potential
}

// Loads calls fn for each server that is configured, or has requests still: how many are
// in service and wait there, of this dispatcher, and the potential penalty of those that
// wait. It is what a dispatcher tells the others.
func (s *Site) Loads(fn func(zone, server string, inService, queued int, potential float64)) {
	s.each(func(z *zone, g *pool.Gauge) { fn(z.name, g.Server, g.InService, g.Queued, g.Potential) })
}

package multitier

import "time"

// Change is a fault, or a part of one, that lasts from From to To.
type Change struct {
	From, To time.Duration
	// Site and, for Servers, Latency and Slow, Component say where.
	Site, Component int
	// Servers multiplies the servers, at least one stays; 0: no change. So do Slow
	// the services, Heavy the share of heavy transactions that enter at the site and
	// Arrivals how many enter.
	Servers, Slow, Heavy, Arrivals float64
	// Latency is what each call waits more; with Spread it is the mean of an
	// exponential.
	Latency time.Duration
	Spread  bool
	// Between is added to the round trips between the site and all others, Within to
	// those inside it.
	Between, Within time.Duration
}

// turn begins or ends a change.
func (s *simulation) turn(c *Change, begins bool) {
	r := &s.replicas[c.Component*s.sites+c.Site]
	if c.Servers > 0 {
		r.servers = s.app.Components[c.Component].Servers[c.Site]
		if begins {
			r.servers = max(1, int(float64(r.servers)*c.Servers))
		} else {
			s.fill(c.Component, c.Site)
		}
	}
	sign := 1.0
	if !begins {
		sign = -1
	}
	if c.Slow > 0 {
		if r.slow = 1; begins {
			r.slow = c.Slow
		}
	}
	if c.Latency > 0 {
		r.more += sign * float64(c.Latency.Microseconds())
		r.spread = c.Spread
	}
	if c.Heavy > 0 {
		if s.heavy[c.Site] = 1; begins {
			s.heavy[c.Site] = c.Heavy
		}
	}
	for other := range s.sites {
		if other != c.Site {
			s.rtt[c.Site*s.sites+other] += sign * float64(c.Between.Microseconds())
			s.rtt[other*s.sites+c.Site] += sign * float64(c.Between.Microseconds())
		}
	}
	s.rtt[c.Site*s.sites+c.Site] += sign * float64(c.Within.Microseconds())
}

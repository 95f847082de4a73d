package servers

import (
	"time"

	"penstock/consumers/executor/serverswitch"
	"penstock/pipeline/topology"
)

// look is how everything stands at an instant, by the metrics of entry points and by what
// the server switch says on the bus. Counts are of all since the start, over all entry
// points of a site.
type look struct {
	at      time.Duration // since requests began
	settled bool          // the table is in force, and its servers have all their places
	epoch   uint64        // of the table that the dispatchers go by
	servers []serverLook  // in order
	late    float64
	penalty float64
	waited  float64 // s
	// seconds is how long the servers were on, all together: by the switch, added up by
	// the show.
	seconds float64
	sites   [2]siteLook
}

// serverLook is a server behind dispatchers.
type serverLook struct {
	phase                     serverswitch.Phase
	left                      string // what its drain waits for
	queued, inService, places float64
	started, answers          float64
	estimated, took           float64 // s
	told                      float64 // of started, by the metrics
	failure                   float64 // relative error of estimates, of the entry point with the most answers
	wait                      float64 // s, the mean of entry points
}

// siteLook is a site as any entry point has it.
type siteLook struct {
	requests, seconds float64
	failed            float64 // answers of 5xx
	running           float64
	attempts          []float64 // by server
}

// on says whether a server costs anything: it runs, or is being started or stopped.
func (s *serverLook) on() bool {
	switch s.phase {
	case serverswitch.Starting, serverswitch.Warming, serverswitch.On, serverswitch.Draining, serverswitch.Stopping:
		return true
	}
	return false
}

// follow makes counts go on over the time in which a server is off and nobody tells them.
// What was estimated and came goes on by itself then, what was started begins at 0.
func (s *serverLook) follow(last *serverLook) {
	if s.answers < last.answers {
		s.answers, s.estimated, s.took = last.answers, last.estimated, last.took
	}
	s.told = s.started
	if s.started >= last.told {
		s.started -= last.told
	}
	s.started += last.started
}

// take reads what was told.
func (l *look) take(all [2][points]samples, says *topology.SwitchStatus, at *addresses) {
	const d = "penstock_dispatcher_"
	l.servers = make([]serverLook, len(at.sites[0].servers))
	for i, name := range at.sites[0].servers {
		s := &l.servers[i]
		s.phase = serverswitch.Unknown
		best := -1.0
		for _, m := range all[0] {
			s.queued += m.sum(d+"queued", "server", name)
			s.inService += m.sum(d+"in_service", "server", name)
			s.places += m.sum(d+"places", "server", name)
			s.started += m.sum(d+"started_total", "server", name)
			s.told = s.started
			s.estimated += m.sum(d+"estimated_seconds_total", "server", name)
			s.took += m.sum(d+"service_seconds_total", "server", name)
			s.wait += m.sum(d+"expected_wait_seconds", "server", name) / points
			n := m.sum(d+"answers_total", "server", name)
			s.answers += n
			if n > best {
				best, s.failure = n, m.sum(d+"estimate_error", "server", name, "of", "service")
			}
		}
	}
	epochs := true
	for k, m := range all[0] {
		epoch := uint64(m.sum(d + "table_epoch"))
		epochs = epochs && (k == 0 || epoch == l.epoch)
		l.epoch = epoch
		l.late += m.sum(d + "late_total")
		l.penalty += m.sum(d + "penalty_total")
		l.waited += m.sum(d + "waited_seconds_total")
	}
	for i := range l.sites {
		s := &l.sites[i]
		s.attempts = make([]float64, len(at.sites[i].servers))
		for _, m := range all[i] {
			s.requests += m.sum("penstock_entry_request_seconds_count")
			s.seconds += m.sum("penstock_entry_request_seconds_sum")
			s.failed += m.sum("penstock_entry_requests_total", "status", "5xx")
			s.running += m.sum("penstock_entry_requests_running")
			for k, name := range at.sites[i].servers {
				s.attempts[k] += m.sum("penstock_upstream_requests_total", "server", name)
			}
		}
	}
	if says == nil {
		return
	}
	l.settled = epochs && l.epoch > 0 && says.State.Epoch == l.epoch && says.State.Settled
	for _, x := range says.State.Servers {
		for i, name := range at.sites[0].servers {
			if name == x.Server {
				l.servers[i].phase, l.servers[i].left = x.Phase, x.Left
				l.settled = l.settled && (x.Phase != serverswitch.On || l.servers[i].places >= workers)
			}
		}
	}
}

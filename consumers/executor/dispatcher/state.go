package dispatcher

import (
	"time"

	"penstock/consumers/executor/dispatcher/pool"
)

// State is a site as it stands, for status and explain.
type State struct {
	// Site and Policy by name.
	Site, Policy string
	// Table in force.
	Table Table
	// Counts since the start.
	Counts Counts
	// Homeless are requests that wait for any server to come back.
	Homeless int
	// Zones in their order.
	Zones []ZoneState
}

// ZoneState is a zone as it stands.
type ZoneState struct {
	Name string
	// Weight in force, among those of all zones; 0 also if no weights are.
	Weight float64
	// Requests that wait or are in service, and the potential penalty of those that wait.
	Requests  int
	Potential float64
	// Others is what other dispatchers have there, Known if there are any, Fresh if what
	// they say is not too old to be used.
	Others       Load
	Known, Fresh bool
	// Servers in their order, then those that end.
	Servers []ServerState
}

// ServerState is a server as it stands.
type ServerState struct {
	Name string
	// State is one of the State constants.
	State string
	// Places are the most in service there, Share those of this dispatcher.
	Places, Share int
	// InService and Queued are requests there, QueuedDynamic those that wait for a
	// program.
	InService, Queued, QueuedDynamic int
	// Potential penalty of those that wait.
	Potential float64
	// Wait is what a request would have to wait there that arrived now.
	Wait time.Duration
	// ServiceError and WaitError are the mean relative errors of the estimates; Slowdown
	// is how much longer those in service run than estimated, from 1 on.
	ServiceError, WaitError, Slowdown float64
	// Started is how many requests were started there, Trials how many of them were trials
	// (see Options.Trial).
	Started, Trials uint64
	// Answers of it since the start, what was estimated that they take there, all together,
	// and what they took. What a server answered before it was turned off counts on.
	Answers         uint64
	Estimated, Took time.Duration
}

// States of a server in ServerState.
const (
	StateUsed     = "used"
	StateRamping  = "ramping"  // it is new, and comes to its share
	StateUnusable = "unusable" // by its health
	StateOff      = "off"      // by the table; what runs there may end
)

// State is what the site has now.
func (s *Site) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	out := State{
		Site: s.o.Site, Policy: s.o.Policy, Counts: s.counts,
		Table: Table{Epoch: s.force.epoch, Until: s.force.until, Servers: s.force.table},
	}
	for _, t := range s.waiting {
		if t.homeless {
			out.Homeless++
		}
	}
	for _, z := range s.zones {
		f := *s.figure(now, z)
		one := ZoneState{
			Name: z.name, Weight: z.weight, Requests: z.requests, Potential: f.potential, Others: f.others, Known: f.some, Fresh: f.fresh,
		}
		z.pool.Gauges(now, func(g pool.Gauge) {
			x := serverState(z, g)
			if c := s.compared[x.Name]; c != nil {
				x.Answers, x.Estimated, x.Took = c.answers, c.estimated, c.took
			}
			one.Servers = append(one.Servers, x)
		})
		out.Zones = append(out.Zones, one)
	}
	return out
}

func serverState(z *zone, g pool.Gauge) ServerState {
	out := ServerState{
		Name: g.Server, State: StateUsed, Share: g.M, InService: g.InService, Queued: g.Queued, QueuedDynamic: g.QueuedDynamic,
		Potential: g.Potential, Wait: seconds(g.Wait), ServiceError: g.ServiceError, WaitError: g.WaitError, Slowdown: g.Slowdown, Started: g.Started, Trials: g.Trials,
	}
	switch {
	case g.Leaving:
		out.State = StateOff
	case !g.Usable:
		out.State = StateUnusable
	case g.Ramping:
		out.State = StateRamping
	}
	for _, p := range z.servers {
		if p.name == g.Server {
			out.Places = p.places
		}
	}
	return out
}

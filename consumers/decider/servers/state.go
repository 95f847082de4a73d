package servers

import (
	"penstock/consumers/decider/servers/switching"
	"penstock/consumers/decider/standing"
	"penstock/schemas/control"
)

// noTime is before every window.
const noTime = int64(-1) << 62

// server is a configured server.
type server struct {
	wanted bool
	state  switching.State
	since  int64 // end of the window since which it is in that state, µs; noTime: from the beginning
	// The last gauge: when (end of its window), and what it said.
	gauged                       int64
	queued, inService, potential float64
}

// past is a table that was in force from the window with that end on.
type past struct {
	window int64
	table  *control.ServersTable
	text   string // the table as a snapshot has it: made once, for digests ask for it each window
}

// site is a configured site: its servers as the configuration has them, zone by zone.
type site struct {
	seen    int64 // end of the last window with rows, noTime: none
	known   int64 // end of the last window in which there was enough to decide by, noTime: none
	expired bool
	servers []server
	// pace is how many gauges of a server come in a second, smoothed: how many dispatchers
	// there are.
	pace float64
	sent int64 // end of the window of the last table, noTime: none
	last string
	// served is what dispatchers made of the site's tables, switched what the server switch
	// did.
	served, switched standing.Standing
	advice           []past // the last advice since the last table, if any
	// tables in force, the last one last, for rollbacks.
	tables []past
	memory *switching.Memory // the rule's
}

// inForce is the site's table, nil if it has none.
func (s *site) inForce() *control.ServersTable {
	if len(s.tables) == 0 {
		return nil
	}
	return s.tables[len(s.tables)-1].table
}

// state is all that a decision goes by, and all that a snapshot holds: sites as in the
// configuration.
type state struct {
	now   int64
	sites []site
}

// newState makes the first state of a configuration.
func newState(c *Config, rules []*switching.Rule) *state {
	s := &state{now: noTime, sites: make([]site, len(c.Sites))}
	for i := range s.sites {
		x := site{seen: noTime, known: noTime, sent: noTime, memory: rules[i].Memory()}
		for _, z := range c.Sites[i].Zones {
			for _, m := range z.Servers {
				one := server{wanted: !m.Off, state: switching.On, since: noTime, gauged: noTime}
				if m.Off {
					one.state = switching.Off
				}
				x.servers = append(x.servers, one)
			}
		}
		s.sites[i] = x
	}
	return s
}

package split

import (
	"slices"

	"penstock/consumers/decider/standing"
)

// noTime is before every window.
const noTime = int64(-1) << 62

// entry is component 0: calls that no component makes.
const entryComponent = 0

// sample is what one window saw of a link or a replica: integers, so that their
// sums do not depend on an order.
type sample struct {
	window   int64 // number: end ÷ width
	requests int64
	errors   int64
	sum      int64 // µs, of count samples
	count    int64
	extra    int64 // µs that a caller's own slowness added to all its calls
}

// series is the last History windows, newest first.
type series []sample

// push adds a window and drops those that are too old.
func (s *series) push(x sample, history int) {
	keep := min(len(*s), history-1)
	*s = slices.Insert((*s)[:keep], 0, x)
}

// component is a component that was seen or configured.
type component struct {
	name  string
	told  *Component // by the configuration; the rest follows from it
	given []bool     // sites where it runs, by configuration; nil: as seen
	bound []bool     // sites that pin and residency leave; nil: all
	group int        // of colocation, −1: none
	seen  int64      // end of the last window with calls from or to it
}

// replica is a component at a site.
type replica struct {
	present bool
	history series // service; requests and errors of calls to it
	// last known service delay and when, for when samples have stopped.
	lastKnown float64
	lastAt    int64
	level     float64 // µs, 0: none; see levels
	capacity  capacity
}

// edge is one component calling another.
type edge struct {
	from, to int
	links    [][]series // by from site, to site; network; nil: never seen
	rows     []row      // by from site
}

// row is how the calls of a component at a site to another are shared out.
type row struct {
	present bool
	// parts of Resolution by site: what is in force.
	parts []int
	// target of the last plan, parts of Resolution.
	target []int
	// up and down are the ends of the windows in which a share last rose and fell.
	up, down []int64
	// cost by site, µs, when the row last changed, and last, in the last plan; fast
	// is whether its way is away from something that got worse.
	cost, last []float64
	fast       bool
	// probes that were ordered last, parts of Resolution by site.
	probes  []int
	settled bool // the table shows in the window's traffic; not in a snapshot
	// enough is the end of the last window with enough samples; expired: it is at
	// its default since.
	enough  int64
	expired bool
	seen    int64 // end of the last window with calls
}

// scope is a calling component, as a scope of commands.
type scope struct {
	sent     int64             // end of the window of the last table that was in force, noTime: none
	standing standing.Standing // what executors made of its tables
	table    string            // hash of the table in force
	advised  string            // hash of the last advice
	// changes are the tables before each change, oldest first, for a rollback.
	changes []change
}

// change is a table that was replaced.
type change struct {
	window int64 // end of the window that replaced it
	rows   []oldRow
}

type oldRow struct {
	edge, site int
	parts      []int
}

// state is all that a decision goes by, and all that a snapshot holds.
type state struct {
	now        int64
	windows    []int64 // numbers of the last History windows, newest first
	components []component
	replicas   [][]replica // by component, site
	edges      []edge
	scopes     []scope // by component
	planned    signature
	plannedAt  int64 // end of its window
	index      map[string]int
	edgeIndex  map[[2]int]int
}

func newState() *state {
	return &state{now: noTime, plannedAt: noTime, index: map[string]int{}, edgeIndex: map[[2]int]int{}}
}

// component returns the number of a component, a new one if it must be.
func (t *Policy) component(name string) int {
	s := t.state
	if j, ok := s.index[name]; ok {
		return j
	}
	j := len(s.components)
	k := component{name: name, seen: noTime}
	t.bind(&k)
	s.components = append(s.components, k)
	reps := make([]replica, len(t.config.Sites))
	for n := range reps {
		reps[n].lastAt = noTime
		reps[n].capacity = newCapacity()
		reps[n].present = k.given != nil && k.given[n]
	}
	s.replicas = append(s.replicas, reps)
	s.scopes = append(s.scopes, scope{sent: noTime})
	s.index[name] = j
	return j
}

// edge returns the number of an edge, a new one if it must be.
func (t *Policy) edge(from, to int) int {
	s := t.state
	key := [2]int{from, to}
	if e, ok := s.edgeIndex[key]; ok {
		return e
	}
	m := len(t.config.Sites)
	e := edge{from: from, to: to, links: make([][]series, m), rows: make([]row, m)}
	for n := range m {
		e.links[n] = make([]series, m)
	}
	s.edges = append(s.edges, e)
	s.edgeIndex[key] = len(s.edges) - 1
	return len(s.edges) - 1
}

// scopeName is the scope of a component's commands.
func (t *Policy) scopeName(i int) string {
	if i == entryComponent {
		return t.config.EntryScope
	}
	return t.state.components[i].name
}

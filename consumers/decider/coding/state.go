package coding

import (
	"penstock/consumers/decider/coding/fit"
	"penstock/consumers/decider/coding/threshold"
	"penstock/consumers/decider/standing"
	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// noTime is before every window.
const noTime = int64(-1) << 62

// The operations, as numbers.
const (
	read = iota
	write
	ops
)

var opNames = [ops]string{event.Read.String(), event.Write.String()}

// cell is the tasks of one code and size of one window.
type cell struct {
	n, k, bits      int64
	tasks, bytes    int64
	smallest        int64 // bytes of a task
	least           int64 // of those that ended, µs
	done, cancelled window.Bins
}

// pane is what one window saw of an operation at a store: cells by n, k, bits.
type pane struct {
	window int64 // number: end ÷ width
	cells  []cell
}

// operation is what is known of the reads or the writes of one store of a coder.
type operation struct {
	history []pane // oldest first
	model   threshold.Model
	fitted  bool  // the model is not the configuration's any more
	told    bool  // the samples of some fit left no parameter open
	doubts  int64 // windows whose fit was begun in doubt, and told nothing
	// off is how many of the last windows on end were slower than the fit, below 0: faster.
	off int64
	// intervals, untold and samples are those of the last fit.
	intervals [4]fit.Interval
	untold    []string
	samples   int64
}

// member is a store of a coder.
type member struct{ ops [ops]operation }

// past is a table that was in force from the window with that end on.
type past struct {
	window int64
	table  *control.CodingTable
}

// coder is a configured coder: its members as in the configuration.
type coder struct {
	seen     int64 // end of the last window with tasks, noTime: none
	members  []member
	sizes    [ops]float64      // MB of a request
	sent     int64             // end of the window of the last table, noTime: none
	changed  int64             // end of the window of the last other table or advice
	steps    int64             // how many of them followed each other, see held
	shifted  bool              // a store has become another one since
	standing standing.Standing // what executors made of its tables
	advice   []past            // the last advice since the last table, if any
	last     string            // hash of the last table sent
	// tables in force, the last one last, for rollbacks.
	tables []past
}

// inForce is the coder's table, nil if it has none.
func (s *coder) inForce() *control.CodingTable {
	if len(s.tables) == 0 {
		return nil
	}
	return s.tables[len(s.tables)-1].table
}

// state is all that a decision goes by, and all that a snapshot holds: coders as in
// the configuration.
type state struct {
	now    int64
	coders []coder
}

// newState makes the first state of a configuration.
func newState(c *Config) *state {
	s := &state{now: noTime, coders: make([]coder, len(c.Coders))}
	for i := range s.coders {
		s.coders[i] = newCoder(c, i)
	}
	return s
}

func newCoder(c *Config, i int) coder {
	x := &c.Coders[i]
	s := coder{seen: noTime, sent: noTime, changed: noTime, members: make([]member, len(x.members()))}
	for op := range ops {
		s.sizes[op] = c.SizeMB
		for j := range s.members {
			s.members[j].ops[op].model = c.prior(x, op)
		}
	}
	return s
}

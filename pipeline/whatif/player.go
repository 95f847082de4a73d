package whatif

import (
	"penstock/consumers/decider/assign"
	"penstock/schemas/control"
)

// Placement says where each owner's data is, by id; NoSite of ids that own
// nothing.
type Placement []int16

// Stage is where everything is while a strategy plays. All is by id.
type Stage struct {
	At Placement
	// Stored is the bytes that are stored of each owner.
	Stored []int64
	// Settled is set of owners that were there at the end of an earlier frame.
	Settled []bool
}

// Strategy places data. Ids are those of the recording's frames. A strategy may
// change the stage's At and nothing else of it.
type Strategy interface {
	// Name is what reports call it.
	Name() string
	// Before may change where data is before the requests of a frame are served;
	// a strategy that looks at the frame for that knows the future.
	Before(f *Frame, s *Stage)
	// After is told the frame once it is over and may change where data is from
	// then on.
	After(f *Frame, s *Stage)
}

// Decided is implemented by strategies that can say what they decided last.
type Decided interface {
	// Decision returns the case and the reasons of the last frame's decision;
	// false if nothing was decided at its end.
	Decision() (Decision, bool)
}

// Decision is what a policy said at the end of a frame.
type Decision struct {
	Case    string
	Reasons []control.Reason
	// Start is that of the window that was decided, which may be wider than the
	// frame.
	Start int64
}

// Prices tell what traffic between sites costs, in US dollars a GB (1e9 B);
// nil: nothing.
type Prices func(from, to int16) float64

// Play says how a strategy is taken through frames.
type Play struct {
	// Capacity of the sites in bytes a frame; 0: none.
	Capacity []int64
	Prices   Prices
	// Objective is that of placement, computed for frames with weights; nil: not.
	Objective *Objective
	// Least asks for the least objective from the same state beside it, found with
	// these budgets; nil: not.
	Least *assign.Options
}

// Player takes one strategy through frames.
type Player struct {
	meter
	strategy Strategy
	stage    Stage
	was      Placement // before a change, to find the moves
}

// NewPlayer starts a strategy on an empty stage.
func NewPlayer(s Strategy, p Play) *Player {
	return &Player{meter: newMeter(p), strategy: s}
}

// Measured is what one frame came to under a strategy.
type Measured struct {
	Start, End int64
	Case       string // of the policy, for the decision at the end of the frame
	Reasons    []control.Reason
	Decided    bool
	Traffic    []int64 // bytes by site
	Written    []int64 // of these, bytes that writes brought
	Requests   int64   // served by a known site
	Located    int64   // requests with a latency delay
	DelayUS    int64   // sum of these, µs
	// Over is the sites over capacity; Loaded those with traffic; Waiting is Σ W
	// over these.
	Over, Loaded int
	Waiting      float64
	// Overshoot is by how much, as a part of its capacity, each site is over that
	// took owners in from sites over theirs at the end of the frame before; 0 of
	// all others.
	Overshoot []float64
	// Moves after the frame; Relieving of them leave a site over its capacity.
	Moves, Relieving int
	MovedBytes       int64
	// Ahead are moves that were made before the frame (strategies that know the
	// future); they are in Moves and MovedBytes too.
	Ahead int
	// Between is the bytes sent between sites: moves, or writes sent on to
	// copies. USD is what they cost.
	Between int64
	USD     float64
	// Unplaced is bytes of traffic that no site was known for.
	Unplaced int64
	Value    *Value
	// Least is the solution of least objective that there was instead.
	Least *assign.Solution
}

// Step takes the strategy through a frame.
func (p *Player) Step(f *Frame) Measured {
	m := p.measured(f)
	p.grow(len(f.names))
	for _, s := range f.fresh {
		p.stage.At[s.id] = s.site
	}
	copy(p.was, p.stage.At)
	p.strategy.Before(f, &p.stage)
	m.Ahead = p.moves(f, &m)
	if s, ok := p.strategy.(server); ok {
		s.serve(f, &m, &p.meter)
	} else {
		p.serveCopies(f, &m)
	}
	p.judge(&m)
	p.store(f)
	copy(p.was, p.stage.At)
	p.strategy.After(f, &p.stage)
	over := p.over(m.Traffic)
	p.moves(f, &m)
	p.relief(&m, f, over)
	if d, ok := p.strategy.(Decided); ok {
		var said Decision
		if said, m.Decided = d.Decision(); m.Decided {
			m.Case, m.Reasons = said.Case, said.Reasons
		}
	}
	if p.play.Objective != nil && f.weight != nil {
		v := p.play.Objective.Value(f, p.was, &p.stage, p.play.Capacity)
		m.Value = &v
		if p.play.Least != nil {
			_, m.Least = p.play.Objective.Least(f, p.was, &p.stage, p.play.Capacity, *p.play.Least)
		}
	}
	for _, id := range f.all {
		p.stage.Settled[id] = true
	}
	return m
}

// Frames plays all frames.
func (p *Player) Frames(frames []*Frame) []Measured {
	out := make([]Measured, len(frames))
	for i, f := range frames {
		out[i] = p.Step(f)
	}
	return out
}

func (p *Player) grow(n int) {
	s := &p.stage
	for len(s.At) < n {
		s.At, p.was = append(s.At, NoSite), append(p.was, NoSite)
		s.Stored, s.Settled = append(s.Stored, 0), append(s.Settled, false)
	}
}

// store adds what was written to what is stored.
func (p *Player) store(f *Frame) {
	for i := range f.owners {
		p.stage.Stored[f.owners[i].id] += f.owners[i].written
	}
}

// serveCopies serves each request where the owner's data is.
func (p *Player) serveCopies(f *Frame, m *Measured) {
	for i := range f.owners {
		o := &f.owners[i]
		if at := p.stage.At[o.id]; at != NoSite {
			m.Traffic[at] += o.bytes
			m.Written[at] += o.written
			m.Requests += o.requests
		} else {
			m.Unplaced += o.bytes
		}
	}
	for i := range f.pairs {
		pr := &f.pairs[i]
		if at := p.stage.At[f.owners[pr.row].id]; at != NoSite && pr.place != nowhere {
			p.delay(m, f.geo.delay(pr.place, at), pr.requests)
		}
	}
}

// moves counts what has changed against p.was.
func (p *Player) moves(f *Frame, m *Measured) int {
	n := 0
	for _, id := range f.all {
		from, to := p.was[id], p.stage.At[id]
		if from == to || from == NoSite || to == NoSite {
			continue
		}
		n++
		m.MovedBytes += p.stage.Stored[id]
		m.Between += p.stage.Stored[id]
		m.USD += p.price(from, to, p.stage.Stored[id])
	}
	m.Moves += n
	return n
}

// relief counts the moves out of sites over capacity and notes where they went.
func (p *Player) relief(m *Measured, f *Frame, over []bool) {
	clear(p.arrived)
	for _, id := range f.all {
		from, to := p.was[id], p.stage.At[id]
		if from != to && from != NoSite && to != NoSite && over[from] {
			m.Relieving++
			p.arrived[to] = true
		}
	}
}

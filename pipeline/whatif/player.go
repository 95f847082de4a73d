package whatif

import (
	"penstock/schemas/control"
)

// Placement says where each owner's data is, by id; NoSite of ids that own
// nothing.
type Placement []int16

// Strategy places data. Ids are those of the recording's frames.
type Strategy interface {
	// Name is what reports call it.
	Name() string
	// Copies is how many copies of an owner's data there are: 1, or one a site.
	// With one a site, requests go to the site nearest to the user, writes are
	// sent on to the others, and Before and After are not called.
	Copies(sites int) int
	// Before may change where data is before the requests of a frame are served;
	// a strategy that looks at the frame for that knows the future.
	Before(f *Frame, at Placement)
	// After is told the frame once it is over and may change where data is from
	// then on.
	After(f *Frame, at Placement)
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
}

// Player takes one strategy through frames.
type Player struct {
	play     Play
	strategy Strategy
	at       Placement
	was      Placement // before a change, to find the moves
	stored   []int64   // by id
	settled  []bool    // by id: was there at the end of an earlier frame
	arrived  []bool    // by site: owners were moved there at the end of the last frame to relieve another
	sites    int
}

// NewPlayer starts a strategy on an empty stage.
func NewPlayer(s Strategy, p Play) *Player {
	return &Player{play: p, strategy: s, sites: len(p.Capacity), arrived: make([]bool, len(p.Capacity))}
}

// Measured is what one frame came to under a strategy.
type Measured struct {
	Start, End int64
	Case       string // of the policy, for the decision at the end of the frame
	Reasons    []control.Reason
	Decided    bool
	Traffic    []int64 // bytes by site
	Delay      Delays
	// Over is the sites over capacity; Loaded those with traffic; Waiting is Σ W
	// over these.
	Over, Loaded int
	Waiting      float64
	// Overshoot is by how much, as a part of its capacity, the worst of the sites
	// is over that took owners in from sites over theirs; 0 if none is.
	Overshoot float64
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
}

// Step takes the strategy through a frame.
func (p *Player) Step(f *Frame) Measured {
	m := Measured{Start: f.Start, End: f.End, Traffic: make([]int64, p.sites)}
	p.grow(len(f.names))
	for _, s := range f.fresh {
		p.at[s.id] = s.site
	}
	if copies := p.strategy.Copies(p.sites); copies > 1 {
		p.replicas(f, &m)
		p.judge(&m)
		p.store(f)
		return m
	}
	copy(p.was, p.at)
	p.strategy.Before(f, p.at)
	m.Ahead = p.moves(f, &m)
	if s, ok := p.strategy.(server); ok {
		s.serve(f, &m)
	} else {
		p.serve(f, &m)
	}
	p.judge(&m)
	p.store(f)
	copy(p.was, p.at)
	p.strategy.After(f, p.at)
	over := p.over(&m)
	p.moves(f, &m)
	p.relief(&m, f, over)
	if d, ok := p.strategy.(Decided); ok {
		var said Decision
		if said, m.Decided = d.Decision(); m.Decided {
			m.Case, m.Reasons = said.Case, said.Reasons
		}
	}
	if p.play.Objective != nil && f.weight != nil {
		v := p.play.Objective.Value(f, p.was, p.at, p.stored, p.settled, p.play.Capacity)
		m.Value = &v
	}
	for _, id := range f.all {
		p.settled[id] = true
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

// At returns where data is now; it is the player's own.
func (p *Player) At() Placement { return p.at }

// Stored returns the bytes stored of each owner, by id; it is the player's own.
func (p *Player) Stored() []int64 { return p.stored }

func (p *Player) grow(n int) {
	for len(p.at) < n {
		p.at, p.was = append(p.at, NoSite), append(p.was, NoSite)
		p.stored, p.settled = append(p.stored, 0), append(p.settled, false)
	}
}

// store adds what was written to what is stored.
func (p *Player) store(f *Frame) {
	for i := range f.owners {
		p.stored[f.owners[i].id] += f.owners[i].written
	}
}

// serve serves each request where the owner's data is.
func (p *Player) serve(f *Frame, m *Measured) {
	for i := range f.owners {
		o := &f.owners[i]
		if at := p.at[o.id]; at != NoSite {
			m.Traffic[at] += o.bytes
		} else {
			m.Unplaced += o.bytes
		}
	}
	for i := range f.pairs {
		pr := &f.pairs[i]
		if at := p.at[f.owners[pr.row].id]; at != NoSite {
			m.Delay.add(f.geo.delay(pr.place, at), pr.requests)
		}
	}
}

// replicas serves each request at the site nearest to the user, and sends writes
// on from the owner's nearest site, the master, to all others.
func (p *Player) replicas(f *Frame, m *Measured) {
	for i := range f.pairs {
		pr := &f.pairs[i]
		near := f.geo.near[pr.place]
		m.Traffic[near] += pr.bytes
		m.Delay.add(f.geo.delay(pr.place, near), pr.requests)
	}
	for i := range f.owners {
		o := &f.owners[i]
		m.Unplaced += o.bytes - o.locatedBytes
		if master := p.at[o.id]; master != NoSite {
			for s := range p.sites {
				if int16(s) != master {
					m.Between += o.written
					m.USD += p.price(master, int16(s), o.written)
				}
			}
		}
	}
}

func (p *Player) price(from, to int16, bytes int64) float64 {
	if p.play.Prices == nil || bytes == 0 {
		return 0
	}
	return p.play.Prices(from, to) * float64(bytes) / 1e9
}

// judge finds the sites over capacity and the execution delay.
func (p *Player) judge(m *Measured) {
	for s, t := range m.Traffic {
		if t == 0 {
			continue
		}
		m.Loaded++
		ca := p.play.Capacity[s]
		if ca == 0 || t <= ca {
			continue
		}
		m.Over++
		m.Waiting += float64(t-ca) / float64(t)
		if p.arrived[s] {
			m.Overshoot = max(m.Overshoot, float64(t-ca)/float64(ca))
		}
	}
}

func (p *Player) over(m *Measured) []bool {
	over := make([]bool, p.sites)
	for s, t := range m.Traffic {
		over[s] = p.play.Capacity[s] > 0 && t > p.play.Capacity[s]
	}
	return over
}

// moves counts what has changed against p.was.
func (p *Player) moves(f *Frame, m *Measured) int {
	n := 0
	for _, id := range f.all {
		from, to := p.was[id], p.at[id]
		if from == to || from == NoSite || to == NoSite {
			continue
		}
		n++
		m.MovedBytes += p.stored[id]
		m.Between += p.stored[id]
		m.USD += p.price(from, to, p.stored[id])
	}
	m.Moves += n
	return n
}

// relief counts the moves out of sites over capacity and notes where they went.
func (p *Player) relief(m *Measured, f *Frame, over []bool) {
	clear(p.arrived)
	for _, id := range f.all {
		from, to := p.was[id], p.at[id]
		if from != to && from != NoSite && to != NoSite && over[from] {
			m.Relieving++
			p.arrived[to] = true
		}
	}
}

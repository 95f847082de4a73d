package whatif

import (
	"slices"
	"time"

	"penstock/consumers/decider"
	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// Policy plays a policy of placement: it is shown each window with the traffic
// where its own decisions have put the data, and each of its moves is done at
// once.
type Policy struct {
	name    string
	policy  decider.Policy
	pending []*Frame // of a window that is not yet over
	tables  []map[string]*window.Table
	last    Decision
	decided bool
	lost    int // moves to sites or of owners that nobody knows
}

// NewPolicy plays a policy under a name. Windows of the policy may be wider than
// frames, by a whole number.
func NewPolicy(name string, p decider.Policy) *Policy { return &Policy{name: name, policy: p} }

// Name is the name that it was given.
func (p *Policy) Name() string { return p.name }

// Decision is what was decided at the end of the last frame.
func (p *Policy) Decision() (Decision, bool) { return p.last, p.decided }

// Before decides a window that should have ended with a frame that never came.
func (p *Policy) Before(f *Frame, s *Stage) {
	if len(p.pending) > 0 && p.start(p.pending[0]) != p.start(f) {
		p.decide(s.At)
	}
}

// After takes the frame and decides if it is the last of its window.
func (p *Policy) After(f *Frame, s *Stage) {
	p.decided = false
	p.pending = append(p.pending, f)
	p.tables = append(p.tables, p.show(f, s.At))
	if f.End >= p.start(f)+p.policy.Width().Microseconds() {
		p.decide(s.At)
	}
}

func (p *Policy) start(f *Frame) int64 { return window.Start(f.Start, p.policy.Width()) }

// show returns the frame's tables with traffic served where data is.
func (p *Policy) show(f *Frame, at Placement) map[string]*window.Table {
	out := map[string]*window.Table{}
	for name, t := range f.other {
		out[name] = t
	}
	if f.base.Len() == 0 {
		return out
	}
	codes := make([]int32, len(f.owners))
	for i := range f.owners {
		codes[i] = event.NullCode
		if s := at[f.owners[i].id]; s != NoSite {
			codes[i] = int32(s)
		}
	}
	names := make([]string, len(f.sites))
	for i, s := range f.sites {
		names[i] = s.Name
	}
	t := *f.base
	t.Keys = slices.Clone(f.base.Keys)
	t.Keys[1] = event.Dict{}
	t.Keys[1].Set(codes, names)
	out[window.Traffic.Name] = &t
	return out
}

// decide decides the pending window and does what was decided.
func (p *Policy) decide(at Placement) {
	f := p.pending[len(p.pending)-1]
	start := p.start(p.pending[0])
	in := decider.Input{
		Window: control.Window{
			Start: time.UnixMicro(start).UTC(), End: time.UnixMicro(start).Add(p.policy.Width()).UTC(),
		},
		Tables:   p.merged(),
		Operator: control.Operator{Mode: control.Act},
	}
	for _, q := range p.pending {
		in.Incomplete = append(in.Incomplete, q.Incomplete...)
	}
	p.pending, p.tables = p.pending[:0], p.tables[:0]
	out := p.policy.Decide(in)
	p.last, p.decided = Decision{Case: out.Case, Reasons: out.Reasons, Start: start}, true
	p.apply(out.Commands, f, at)
}

func (p *Policy) merged() map[string]*window.Table {
	if len(p.tables) == 1 {
		return p.tables[0]
	}
	out := map[string]*window.Table{}
	for _, r := range window.Of(window.Owners) {
		var parts []*window.Table
		for _, tables := range p.tables {
			if t := tables[r.Name]; t != nil {
				parts = append(parts, t)
			}
		}
		if len(parts) > 0 {
			out[r.Name] = window.Merge(r, parts...)
		}
	}
	return out
}

// apply does all moves and answers them.
func (p *Policy) apply(commands []control.Command, f *Frame, at Placement) {
	sites, ids := map[string]int16{}, map[string]int32{}
	for i, s := range f.sites {
		sites[s.Name] = int16(i)
	}
	if len(commands) > 0 {
		for _, id := range f.all {
			ids[f.names[id]] = id
		}
	}
	for _, c := range commands {
		if c.Placement == nil {
			continue
		}
		for _, m := range c.Placement.Moves {
			id, known := ids[m.Owner]
			to, site := sites[m.To]
			o := control.Outcome{
				Kind: control.Placement, Scope: c.Scope, Owner: m.Owner, Move: m.Version,
				Status: control.Done, Bytes: m.Bytes, By: "whatif", At: time.UnixMicro(f.End).UTC(),
			}
			if !known || !site {
				o.Status, o.Reason = control.Failed, "unknown owner or site"
				p.lost++
			} else {
				at[id] = to
			}
			p.policy.Apply(&o)
		}
	}
}

// Lost is how many moves could not be played because nobody knows the owner or
// the site.
func (p *Policy) Lost() int { return p.lost }

package experiment

import (
	"bytes"
	"fmt"
	"math"

	"penstock/consumers/decider"
	"penstock/consumers/decider/assign"
	"penstock/consumers/decider/placement"
	"penstock/pipeline/report"
	"penstock/pipeline/whatif"
)

// exactly is the budget of what is called the exact optimum: all in memory, and
// nodes for most instances here. Where it doesn't do, gaps are against the bound.
var exactly = assign.Options{Cells: 1 << 24, Nodes: 2000}

// roughly is the budget of the clairvoyant where there are many sites.
var roughly = assign.Options{Cells: 1 << 24, Nodes: 200}

// Plans is what a policy's plans came to on the printed objective, summed over
// the windows that it decided:
//
//	Σ E + moves·margin + GB moved + USD + overload
type Plans struct {
	Windows int     `json:"windows"`
	Weight  float64 `json:"weight"`
	Moving  float64 `json:"moving"`
	Over    float64 `json:"overload"`
	Total   float64 `json:"total"`
	// Least is the sum of the least totals that are known from the same states,
	// found apart from the policy; Exact of the windows are proven to have no less.
	// Gap is the greatest by which a window's plan is above what no plan is below,
	// as a part of it: the least where that is proven, else its bound.
	Least report.Figure `json:"least"`
	Exact int           `json:"exact_windows"`
	Gap   report.Figure `json:"greatest_gap"`
	// Said is the greatest gap that the policy reports of itself.
	Said report.Figure `json:"greatest_gap_said"`
	// Other, of tmatch: what optimal would have planned from the same states, its
	// sum, and the windows in which that was worse.
	Other report.Figure `json:"optimal_from_the_same_states"`
	Worse int           `json:"windows_in_which_optimal_is_worse"`
	// Per are the totals by window: of the plan, of optimal from the same state
	// (of tmatch only), and the least. First seed only.
	Per []PlanOf `json:"per_window,omitempty"`
}

// PlanOf is one window's plan on the objective.
type PlanOf struct {
	End   int64         `json:"end_us"`
	Total float64       `json:"total"`
	Other report.Figure `json:"optimal"`
	Least report.Figure `json:"least"`
}

// rival decides each window by another policy too, from the state in which the
// first one is, and notes what both plans are worth.
type rival struct {
	*placement.Policy
	config  placement.Config
	own     []placement.Plan
	other   []placement.Plan // nil without a rival
	faults  []error
	against bool
}

// Decide decides by the first policy, and notes what the other would have.
func (r *rival) Decide(in decider.Input) decider.Output {
	var other *placement.Policy
	if r.against {
		var err error
		if other, err = r.double(); err != nil {
			r.faults = append(r.faults, err)
		}
	}
	out := r.Policy.Decide(in)
	r.own = append(r.own, r.LastPlan())
	if other != nil {
		other.Decide(in)
		r.other = append(r.other, other.LastPlan())
	}
	return out
}

// double is the other policy in the state of the first.
func (r *rival) double() (*placement.Policy, error) {
	var state bytes.Buffer
	if err := r.Snapshot(&state); err != nil {
		return nil, fmt.Errorf("state of %s: %w", TMatch, err)
	}
	other, err := placement.New(r.config)
	if err != nil {
		return nil, err
	}
	other.SetWorkers(1)
	if err := other.Restore(&state); err != nil {
		return nil, fmt.Errorf("%s from the state of %s: %w", Optimal, TMatch, err)
	}
	return other, nil
}

// policy plays one of ours. With plans it is judged on the objective, which
// takes longer.
func (s *stage) policy(name string, plans bool) (Run, error) {
	p, err := placement.New(s.config(name))
	if err != nil {
		return Run{}, err
	}
	p.SetWorkers(1) // Seeds run side by side.
	r := &rival{Policy: p, config: s.config(Optimal), against: plans && name == TMatch}
	var decides decider.Policy = r
	if !plans {
		decides = p
	}
	w := whatif.NewPolicy(name, decides)
	play := s.play
	if plans {
		play.Least = &exactly
	}
	player := whatif.NewPlayer(w, play)
	measured := make([]whatif.Measured, 0, len(s.frames))
	var total *Plans
	if plans {
		total = &Plans{Least: 0, Gap: report.Unknown(), Said: report.Unknown(), Other: report.Unknown()}
	}
	for _, f := range s.frames {
		m := player.Step(f)
		if plans && m.Decided {
			s.judge(total, &m, r)
		}
		measured = append(measured, m)
	}
	for _, err := range r.faults {
		return Run{}, err
	}
	if n := w.Lost(); n > 0 {
		return Run{}, fmt.Errorf("%s: %d moves of owners or to sites that nobody knows", name, n)
	}
	run := s.tally(name, 1, measured, player.Delays())
	run.Plans = total
	return run, nil
}

// judge adds one window's plan.
func (s *stage) judge(t *Plans, m *whatif.Measured, r *rival) {
	v := m.Value
	t.Windows++
	t.Weight, t.Moving, t.Over, t.Total = t.Weight+v.Weight, t.Moving+v.Moving, t.Over+v.Over, t.Total+v.Total()
	least := m.Least
	one := PlanOf{End: m.End, Total: v.Total(), Other: report.Unknown(), Least: report.Figure(min(v.Total(), float64(least.Cost)/1e9))}
	t.Least += one.Least
	if least.Exact {
		t.Exact++
	}
	bound := float64(least.Bound) / 1e9
	gap := (one.Total - bound) / max(1, math.Abs(bound))
	t.Gap = most(t.Gap, report.Figure(max(0, gap)))
	if own := r.own[len(r.own)-1]; !math.IsNaN(own.Gap) {
		t.Said = most(t.Said, report.Figure(own.Gap))
	}
	if r.against && len(r.other) == len(r.own) {
		own, other := r.own[len(r.own)-1].Total, r.other[len(r.other)-1].Total
		one.Other = report.Figure(other)
		if !t.Other.Known() {
			t.Other = 0
		}
		t.Other += one.Other
		// The sums of thousands of rounded weights may differ in the last digits.
		if other > own+1e-6 {
			t.Worse++
		}
	}
	if s.keepHours {
		t.Per = append(t.Per, one)
	}
}

// most is the greater of two figures, of which the first may be unknown.
func most(a, b report.Figure) report.Figure {
	if !a.Known() || b > a {
		return b
	}
	return a
}

// clairvoyant plays the exact optimum of each hour, known ahead.
func (s *stage) clairvoyant() (Run, int) {
	c := whatif.NewClairvoyant(&s.objective, s.play.Capacity, s.budget)
	player := whatif.NewPlayer(c, s.play)
	return s.tally(Clairvoyant, 1, player.Frames(s.frames), player.Delays()), c.Inexact
}

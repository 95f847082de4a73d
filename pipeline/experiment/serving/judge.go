package serving

import (
	"fmt"
	"slices"
	"strings"

	"penstock/consumers/executor/dispatcher/pool"
	"penstock/pipeline/experiment/sheet"
	"penstock/pipeline/report"
)

// The policies that verdicts are about.
var (
	paper  = []string{string(pool.A1), string(pool.A2), string(pool.A3)}
	simple = []string{string(pool.RR), string(pool.LL)}
	later  = []string{string(pool.Prequal), string(pool.ICBS)}
	best   = string(pool.Auto)
)

// over is how many times the cost of one policy is that of another, medians of both;
// unknown where one was not run.
func (r *Result) over(scenario string, mode Mode, policy, other string) report.Figure {
	a, b := r.cell(scenario, mode, policy), r.cell(scenario, mode, other)
	if a == nil || b == nil {
		return report.Unknown()
	}
	return a.Cost / b.Cost
}

// leader is the policy of the least cost but those left out.
func (r *Result) leader(scenario string, mode Mode, but ...string) *Cell {
	var least *Cell
	for _, policy := range r.params.names() {
		if slices.Contains(but, policy) {
			continue
		}
		if c := r.cell(scenario, mode, policy); c != nil && (least == nil || c.Cost < least.Cost) {
			least = c
		}
	}
	return least
}

// judge sets the targets beside what came out.
func (r *Result) judge() {
	for _, mode := range modes {
		for _, policy := range paper {
			r.judgeOverloaded(mode, policy)
		}
		for _, policy := range paper {
			r.judgeWorse(mode, policy)
		}
	}
	for _, mode := range modes {
		r.judgeAuto(mode, true)
		r.judgeAuto(mode, false)
	}
	r.judgeBound()
}

// ours are the scenarios that are not held out.
func ours(c *Cell) bool { return !c.HeldOut }

// judgeOverloaded counts in how many of the overloaded scenarios a policy is cheaper than
// both simple ones.
func (r *Result) judgeOverloaded(mode Mode, policy string) {
	if r.absent(policy) {
		return
	}
	won, of := 0, 0
	var lost []string
	for _, c := range r.scenarios(mode, func(c *Cell) bool { return ours(c) && c.Overloaded }) {
		of++
		ok := true
		for _, s := range simple {
			if !(r.over(c.Scenario, mode, policy, s) < 1) {
				ok = false
			}
		}
		if ok {
			won++
		} else {
			lost = append(lost, c.Scenario)
		}
	}
	if of == 0 {
		return
	}
	need := min(r.params.Targets.Overloaded, of)
	v := sheet.Verdict{
		Figure: fmt.Sprintf("%s, %s: overloaded scenarios where it is cheaper than rr and ll", policy, mode),
		Paper:  fmt.Sprintf("%d of %d", need, of), Ours: fmt.Sprintf("%d of %d", won, of), Reached: sheet.Yes(won >= need),
	}
	if len(lost) > 0 {
		v.Note = "not in " + strings.Join(lost, ", ")
	}
	r.Verdicts = append(r.Verdicts, v)
}

func (r *Result) absent(policies ...string) bool {
	return slices.ContainsFunc(policies, func(p string) bool { return !slices.Contains(r.params.names(), p) })
}

// judgeWorse finds where a policy is worst beside the simple ones, over all scenarios.
func (r *Result) judgeWorse(mode Mode, policy string) {
	if r.absent(policy) || r.absent(simple...) {
		return
	}
	most, where := report.Figure(0), ""
	for _, c := range r.scenarios(mode, each) {
		for _, s := range simple {
			if x := r.over(c.Scenario, mode, policy, s); x > most {
				most, where = x, c.Scenario+", beside "+s
			}
		}
	}
	t := r.params.Targets.Worse
	r.Verdicts = append(r.Verdicts, sheet.Verdict{
		Figure: fmt.Sprintf("%s, %s: most times the cost of rr or ll, all scenarios", policy, mode),
		Paper:  fmt.Sprintf("at most %g", t), Ours: most.Text(3), Reached: sheet.Yes(float64(most) <= t), Note: "in " + where,
	})
}

// judgeAuto finds where auto is worst beside the best of all others.
func (r *Result) judgeAuto(mode Mode, heldOut bool) {
	if r.absent(best) || len(r.params.Policies) < 2 {
		return
	}
	most, where := report.Figure(0), ""
	for _, c := range r.scenarios(mode, func(c *Cell) bool { return c.HeldOut == heldOut }) {
		l := r.leader(c.Scenario, mode, best)
		if x := r.over(c.Scenario, mode, best, l.Policy); x > most {
			most, where = x, c.Scenario+", beside "+l.Policy
		}
	}
	if where == "" {
		return
	}
	which := "scenarios it was built on"
	if heldOut {
		which = "held-out scenarios and seeds"
	}
	t := r.params.Targets.Auto
	r.Verdicts = append(r.Verdicts, sheet.Verdict{
		Figure: fmt.Sprintf("auto, %s: most times the cost of the best of all others, %s", mode, which),
		Paper:  fmt.Sprintf("at most %g", t), Ours: most.Text(3), Reached: sheet.Yes(float64(most) <= t), Note: "in " + where,
	})
}

// judgeBound sees that nothing is below the bound, of any seed.
func (r *Result) judgeBound() {
	least := report.Figure(1e18)
	where := ""
	for i := range r.Cells {
		c := &r.Cells[i]
		for s := range c.costs {
			if x := report.Figure(c.costs[s] / c.bounds[s]); x < least {
				least, where = x, fmt.Sprintf("%s of %s, %s", c.Policy, c.Scenario, c.Mode)
			}
		}
	}
	r.Verdicts = append(r.Verdicts, sheet.Verdict{
		Figure: "least cost of a run over its bound", Paper: "at least 1", Ours: least.Text(3), Reached: sheet.Yes(least >= 1), Note: where,
	})
}

package splitting

import (
	"fmt"
	"slices"
	"strings"

	"penstock/consumers/decider/split"
	"penstock/pipeline/experiment/sheet"
	"penstock/pipeline/report"
)

// of are the runs of an application, fault, arrivals and policy, in order of seeds.
func (r *Result) of(application, fault, arrivals, policy string) []*Run {
	var out []*Run
	for i := range r.Runs {
		if x := &r.Runs[i]; x.Application == application && x.Fault == fault && x.Arrivals == arrivals && x.Policy == policy {
			out = append(out, x)
		}
	}
	return out
}

// group is the runs of one application, fault and arrivals.
type group struct {
	application, arrivals string
	fault                 *Fault
}

// groups lists them in the order of the runs.
func (r *Result) groups() []group {
	var out []group
	for i := range r.Runs {
		x := &r.Runs[i]
		g := group{application: x.Application, arrivals: x.Arrivals, fault: r.fault(x.Fault)}
		if len(out) == 0 || out[len(out)-1] != g {
			out = append(out, g)
		}
	}
	return out
}

func (r *Result) fault(name string) *Fault {
	i := slices.IndexFunc(r.params.Faults, func(f Fault) bool { return f.Name == name })
	return &r.params.Faults[i]
}

func (r *Result) runs(g group, policy string) []*Run {
	return r.of(g.application, g.fault.Name, g.arrivals, policy)
}

// judged is the p90 by which a fault is judged: of the requests that entered at the
// affected site, of a natural run, in which all sites are affected, of all.
func (g group) judged(x *Run) report.Figure {
	if g.fault.Natural {
		return x.All.P90
	}
	return x.Entering.P90
}

// ratio is a policy's p90 over greedy's, by seed: above 1 greedy is better.
func (r *Result) ratio(g group, policy string) sheet.Spread {
	ours := r.runs(g, split.Greedy)
	var out []report.Figure
	for i, x := range r.runs(g, policy) {
		out = append(out, g.judged(x)/g.judged(ours[i]))
	}
	return sheet.SpreadOf(out)
}

func spreadOf(runs []*Run, of func(*Run) report.Figure) sheet.Spread {
	out := make([]report.Figure, len(runs))
	for i, x := range runs {
		out[i] = of(x)
	}
	return sheet.SpreadOf(out)
}

func (r *Result) say(figure, paper, ours, reached, note string) {
	r.Verdicts = append(r.Verdicts, sheet.Verdict{Figure: figure, Paper: paper, Ours: ours, Reached: reached, Note: note})
}

// judge sets the paper's figures beside ours.
func (r *Result) judge() {
	for _, g := range r.groups() {
		if g.fault.Natural {
			r.judgeRatio(g, split.Closest, r.params.Targets.Natural)
		}
		if g.fault.Targets {
			r.judgeRatio(g, split.Closest, r.params.Targets.Faults)
			r.judgeRatio(g, split.Redirect, r.params.Targets.Faults)
		}
	}
	o := &r.Optimum
	r.say("instances in which the optimum costs more than greedy", "–", fmt.Sprintf("%d of %d", o.Worse, o.Instances), sheet.Yes(o.Worse == 0),
		fmt.Sprintf("proved exact in %d", o.Proved))
	losses := len(r.lossTable().Rows)
	r.say("settings in which another policy has a lower p90 than greedy", "–", fmt.Sprintf("%d of %d", losses, len(r.groups())), "", "which: see the table of them")
}

// judgeRatio compares a policy's p90 with greedy's.
func (r *Result) judgeRatio(g group, policy string, target float64) {
	s := r.ratio(g, policy)
	if !s.Median.Known() {
		return
	}
	notes := []string{fmt.Sprintf("p90 %s ms against %s ms", spreadOf(r.runs(g, policy), g.judged).Text(0), spreadOf(r.runs(g, split.Greedy), g.judged).Text(0))}
	if lp := r.runs(g, split.LP); len(lp) > 0 {
		var by []report.Figure
		for i, x := range r.runs(g, policy) {
			by = append(by, g.judged(x)/g.judged(lp[i]))
		}
		notes = append(notes, "with lp in place of greedy "+sheet.SpreadOf(by).Text(2))
	}
	if free := r.of(g.application, calm, g.arrivals, split.Closest); len(free) > 0 && policy == split.Closest {
		var most []report.Figure
		for i, x := range r.runs(g, policy) {
			most = append(most, g.judged(x)/g.judged(free[i]))
		}
		notes = append(notes, "were there no fault "+sheet.SpreadOf(most).Text(2))
	}
	name := fmt.Sprintf("p90 of %s over greedy's, %s, fault %s", policy, g.application, g.fault.Name)
	if g.arrivals != Made {
		name += ", arrivals of " + g.arrivals
	}
	r.say(name, fmt.Sprintf("> %g", target), s.Text(2), sheet.Yes(float64(s.Median) > target), strings.Join(notes, "; "))
}

// calm is the fault that is none.
const calm = "none"

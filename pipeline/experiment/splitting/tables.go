package splitting

import (
	"fmt"
	"io"
	"strconv"

	"penstock/consumers/decider/split"
	"penstock/pipeline/experiment/sheet"
	"penstock/pipeline/report"
)

// Tables are what the result says, in order.
func (r *Result) Tables() []sheet.Table {
	out := []sheet.Table{sheet.VerdictTable(fmt.Sprintf(
		"The paper's figures beside ours: median (range) of %d seeds", r.Seeds), r.Verdicts)}
	out[0].Notes = []string{
		"p90 is of the requests that entered at the affected site during the fault, the time until it was noticed included; of a natural run of all requests. " +
			"Failed requests count as the deadline. \"Were there no fault\" is closest's p90 over that of a run without any: the most that any policy could reach.",
	}
	out = append(out, r.lossTable())
	last := ""
	for _, g := range r.groups() {
		if key := g.application + g.arrivals; key != last {
			out = append(out, r.applicationTable(g))
			last = key
		}
	}
	return append(out, r.optimumTable())
}

// Text prints the tables.
func (r *Result) Text(w io.Writer) error { return sheet.Text(w, r.Tables()) }

// lossTable says where greedy is not the best.
func (r *Result) lossTable() sheet.Table {
	t := sheet.Table{
		Title: "Where another policy has a lower p90 than greedy (ratio below 1: the other is better)",
		Head:  []string{"application", "fault", "arrivals", "best policy", "p90 over greedy's", "its p90, ms", "greedy's, ms"},
	}
	for _, g := range r.groups() {
		best, least := "", report.Figure(1)
		for _, policy := range r.params.Policies {
			if x := r.ratio(g, policy).Median; policy != split.Greedy && x.Known() && x < least {
				best, least = policy, x
			}
		}
		if best != "" {
			t.Rows = append(t.Rows, []string{
				g.application, g.fault.Name, g.arrivals, best, r.ratio(g, best).Text(2),
				spreadOf(r.runs(g, best), g.judged).Text(0), spreadOf(r.runs(g, split.Greedy), g.judged).Text(0),
			})
		}
	}
	return t
}

// applicationTable is all faults and policies of an application.
func (r *Result) applicationTable(of group) sheet.Table {
	t := sheet.Table{
		Title: fmt.Sprintf("%s: %s; arrivals %s, %d seeds", of.application, r.text(of.application), r.arrivalsText(of), r.Seeds),
		Head: []string{
			"fault", "policy", "p50, ms", "p90, ms", "p99, ms", "failed, %", "p90 of all sites, ms", "p90 over greedy's", "calls moved, %", "between sites, GB", "US dollars", "tables", "probes, %",
		},
	}
	said := map[string]bool{}
	for _, g := range r.groups() {
		if g.application != of.application || g.arrivals != of.arrivals {
			continue
		}
		for _, policy := range r.params.Policies {
			if runs := r.runs(g, policy); len(runs) > 0 {
				t.Rows = append(t.Rows, append([]string{g.fault.Name, policy}, r.cells(g, policy, runs)...))
			}
		}
		if !said[g.fault.Name] {
			said[g.fault.Name] = true
			t.Notes = append(t.Notes, g.fault.Name+": "+g.fault.Text)
		}
	}
	return t
}

func (r *Result) cells(g group, policy string, runs []*Run) []string {
	at := func(x *Run) *Latency {
		if g.fault.Natural {
			return &x.All
		}
		return &x.Entering
	}
	of := func(digits int, f func(*Run) report.Figure) string { return spreadOf(runs, f).Text(digits) }
	return []string{
		of(0, func(x *Run) report.Figure { return at(x).P50 }),
		of(0, func(x *Run) report.Figure { return at(x).P90 }),
		of(0, func(x *Run) report.Figure { return at(x).P99 }),
		of(1, func(x *Run) report.Figure {
			return report.Figure(100 * float64(at(x).Failed) / float64(at(x).Requests))
		}),
		of(0, func(x *Run) report.Figure { return x.All.P90 }),
		r.ratio(g, policy).Median.Text(2),
		of(1, func(x *Run) report.Figure { return report.Figure(100 * x.Moved) }),
		of(3, func(x *Run) report.Figure { return report.Figure(float64(x.Bytes) / 1e9) }),
		of(3, func(x *Run) report.Figure { return report.Figure(x.USD) }),
		of(0, func(x *Run) report.Figure { return report.Figure(x.Tables) }),
		of(1, func(x *Run) report.Figure { return report.Figure(100 * x.Probes) }),
	}
}

// text says what an application is.
func (r *Result) text(application string) string {
	for i := range r.params.Applications {
		if a := &r.params.Applications[i]; a.Name == application {
			return a.Text
		}
	}
	return r.params.Random.Text
}

// arrivalsText says how recorded arrivals were scaled.
func (r *Result) arrivalsText(g group) string {
	s, ok := r.Recorded[g.arrivals]
	if !ok {
		return g.arrivals
	}
	return fmt.Sprintf("of %s (%d in %s, %.2f a second, %.1f times as fast)", g.arrivals, s.Rows, s.Span, s.Rate, s.Faster[g.application])
}

func (r *Result) optimumTable() sheet.Table {
	o := &r.Optimum
	t := sheet.Table{
		Title: fmt.Sprintf("Cost of greedy over the optimum's on %d random instances (the optimum costs more in %d)", o.Instances, o.Worse),
		Head:  []string{"instances", "number", "the same", "median", "p90", "p99", "max"},
	}
	for _, x := range []struct {
		name string
		of   *Ratios
	}{{"all", &o.All}, {"constant delays", &o.Constant}, {"delays that rise with load, which greedy does not know", &o.Curved}} {
		ratio := func(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }
		t.Rows = append(t.Rows, []string{
			x.name, strconv.Itoa(x.of.Instances), strconv.Itoa(x.of.Same), ratio(x.of.Median), ratio(x.of.P90), ratio(x.of.P99), ratio(x.of.Most),
		})
	}
	return t
}

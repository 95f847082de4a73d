package serving

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"penstock/pipeline/experiment/sheet"
	"penstock/pipeline/report"
)

// Tables are what the result says, in order.
func (r *Result) Tables() []sheet.Table {
	out := []sheet.Table{sheet.VerdictTable(fmt.Sprintf("What was asked for beside what came out: medians over %d seeds", r.Seeds), r.Verdicts)}
	out[0].Head[1] = "asked for"
	out[0].Notes = []string{"The paper gives no figures; what is asked for is issue 7's. The first lines are of the scenarios that are not held out, by the median of each policy's cost."}
	for _, mode := range modes {
		out = append(out, r.costTable(mode))
	}
	for _, mode := range modes {
		out = append(out, r.beatenTable(mode))
	}
	for _, mode := range modes {
		for _, x := range []struct {
			title string
			text  func(c *Cell) string
		}{
			{"penalties", func(c *Cell) string { return c.Penalty.Text(0) }},
			{"share late, %", func(c *Cell) string { return (100 * c.Late).Text(2) }},
			{"p50 / p90 / p99 of the response time, s", func(c *Cell) string { return c.P50.Text(2) + " / " + c.P90.Text(2) + " / " + c.P99.Text(2) }},
		} {
			out = append(out, r.byPolicy(fmt.Sprintf("%s: %s", mode, x.title), mode, x.text))
		}
	}
	return append(out, r.byPolicy("switched: cost of servers", Switched, func(c *Cell) string { return c.ServerCost.Text(0) }),
		r.byPolicy("switched: servers turned on or off", Switched, func(c *Cell) string { return c.Changes.Text(0) }), r.scenarioTable())
}

// Text prints the tables.
func (r *Result) Text(w io.Writer) error { return sheet.Text(w, r.Tables()) }

// byPolicy is a table of scenarios by policy.
func (r *Result) byPolicy(title string, mode Mode, text func(c *Cell) string) sheet.Table {
	t := sheet.Table{Title: title, Head: append([]string{"scenario"}, r.params.names()...)}
	for _, s := range r.scenarios(mode, each) {
		row := []string{s.Scenario}
		for _, p := range r.params.names() {
			row = append(row, text(r.cell(s.Scenario, mode, p)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// costTable is total costs beside the bound and the best.
func (r *Result) costTable(mode Mode) sheet.Table {
	t := r.byPolicy(fmt.Sprintf("%s: total cost, server time and penalties, median of %d seeds", mode, r.Seeds), mode, func(c *Cell) string { return c.Cost.Text(0) })
	t.Head = append(t.Head, "bound", "best", "over the bound", "auto over the best other")
	for i, s := range r.scenarios(mode, each) {
		l := r.leader(s.Scenario, mode)
		x := report.Unknown()
		if other := r.leader(s.Scenario, mode, best); other != nil && !r.absent(best) {
			x = r.over(s.Scenario, mode, best, other.Policy)
		}
		t.Rows[i] = append(t.Rows[i], s.Bound.Text(0), l.Policy, (l.Cost / s.Bound).Text(2), x.Text(3))
		t.Rows[i][0] = marked(s)
	}
	t.Notes = []string{
		"* overloaded, † held out from the building of auto. The bound is of a clairvoyant that works on one station of all servers as one machine, preemptively and divisibly " +
			"(time-indexed relaxation of weighted tardiness, by its dual; package clairvoyant); servers that are switched are on for it for no longer than they work.",
	}
	return t
}

// marked is a scenario's name with its marks.
func marked(c *Cell) string {
	name := c.Scenario
	if c.Overloaded {
		name += " *"
	}
	if c.HeldOut {
		name += " †"
	}
	return name
}

// beatenTable says by whom each of the paper's algorithms is beaten: by prequal or icbs,
// by how much, and by which others.
func (r *Result) beatenTable(mode Mode) sheet.Table {
	t := sheet.Table{
		Title: string(mode) + ": beaten by",
		Head:  []string{"scenario", "the paper's best", "its cost", "prequal, times it", "icbs, times it", "who beats the paper's best", "A1 beaten by", "A2 beaten by", "A3 beaten by"},
		Notes: []string{"Beaten is by more than half a per cent of the median cost; auto is left out."},
	}
	for _, s := range r.scenarios(mode, each) {
		var least *Cell
		for _, p := range paper {
			if c := r.cell(s.Scenario, mode, p); c != nil && (least == nil || c.Cost < least.Cost) {
				least = c
			}
		}
		if least == nil {
			continue
		}
		row := []string{marked(s), least.Policy, least.Cost.Text(0)}
		for _, p := range later {
			row = append(row, r.over(s.Scenario, mode, p, least.Policy).Text(3))
		}
		row = append(row, r.beaters(s.Scenario, mode, least.Policy))
		for _, p := range paper {
			row = append(row, r.beaters(s.Scenario, mode, p))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// beaters are those cheaper than a policy by more than half a per cent.
func (r *Result) beaters(scenario string, mode Mode, policy string) string {
	var out []string
	for _, p := range r.params.names() {
		if p != best && r.over(scenario, mode, p, policy) < 0.995 {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return "–"
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// scenarioTable says what was run.
func (r *Result) scenarioTable() sheet.Table {
	t := sheet.Table{Title: "What was run", Head: []string{"scenario", "requests", "what"}}
	for _, s := range r.scenarios(AllOn, each) {
		t.Rows = append(t.Rows, []string{marked(s), s.Requests.Text(0), s.text})
	}
	return t
}

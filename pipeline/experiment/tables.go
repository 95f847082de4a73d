package experiment

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"penstock/pipeline/experiment/sheet"
	"penstock/pipeline/report"
)

// Tables are what the result says, in order.
func (r *Result) Tables() []sheet.Table {
	out := []sheet.Table{r.verdictTable()}
	for _, m := range r.Models {
		if t := r.modelTable(m); len(t.Rows) > 0 {
			out = append(out, t)
		}
	}
	out = append(out, r.objectiveTable())
	if t := r.windowTable(); len(t.Rows) > 0 {
		out = append(out, t)
	}
	if t := r.variedTable(); len(t.Rows) > 0 {
		out = append(out, t)
	}
	if r.Clouds != nil {
		out = append(out, r.Clouds.tables()...)
	}
	return out
}

func (r *Result) seeds(model string) int {
	n := 0
	for _, d := range r.Days {
		if d.Model == model {
			n++
		}
	}
	return n
}

func (r *Result) verdictTable() sheet.Table {
	title := fmt.Sprintf("The paper's figures beside ours: friends %s (the standard, named in advance), median (range) of %d days", r.Standard, r.seeds(r.Standard))
	return sheet.VerdictTable(title, r.Verdicts)
}

// strategies are the names of the strategies that were played, in order.
func (r *Result) strategies() []string {
	var out []string
	for i := range r.Runs {
		if len(out) > 0 && r.Runs[i].Strategy == out[0] {
			break
		}
		out = append(out, r.Runs[i].Strategy)
	}
	return out
}

func (r *Result) modelTable(m Model) sheet.Table {
	t := sheet.Table{
		Title: fmt.Sprintf("Friends %s: %s; %d days", m.Name, m.Text, r.seeds(m.Name)),
		Head: []string{
			"case", "strategy", "execution delay", "reduction, %", "latency mean, ms", "p99", "site hours over", "moves", "relieving", "between sites, MB/h", "copies",
		},
	}
	for _, c := range r.Cases {
		for _, s := range r.strategies() {
			runs := r.of(m.Name, c.Name, s)
			if len(runs) == 0 {
				continue
			}
			t.Rows = append(t.Rows, append([]string{c.Name, s}, cells(runs)...))
		}
	}
	if len(t.Rows) > 0 {
		t.Notes = append(t.Notes, "Execution delay: mean of W = max(0, T − Ca)/T over sites and hours with traffic. clairvoyant is the exact optimum of each hour, "+
			"known before it begins: nobody can build it; it shows what is to be had. optimal moves as little as it must and fills sites to the last byte of the "+
			"hour before: without headroom the next hour's rise is over at once, and tmatch, which takes whole large owners out, leaves more room. No owner has a cooldown here, in neither policy: serve gives optimal one of three windows.")
		t.Notes = append(t.Notes, r.room(m.Name)...)
	}
	return t
}

// room says in which cases all capacity exceeds the load.
func (r *Result) room(model string) []string {
	var fits []string
	for _, c := range r.Cases {
		peak := spreadOf(r.of(model, c.Name, Baseline), func(x *Run) report.Figure { return report.Figure(100 * x.Peak) })
		if peak.Most < 100 {
			fits = append(fits, fmt.Sprintf("%s (%s %%)", c.Name, peak.Most.Text(0)))
		}
	}
	if len(fits) == 0 {
		return nil
	}
	return []string{
		"All capacity exceeds the load of every hour in case " + strings.Join(fits, ", ") +
			": any balancer that knew the hour ahead reaches 100 % there. What is missing to 100 % is owed to deciding by the hour before.",
	}
}

// dayHours is how many hours a day of the workloads has.
const dayHours = 24

// mbAnHour is what goes between sites.
func mbAnHour(x *Run) report.Figure { return report.Figure(float64(x.Between) / dayHours / 1e6) }

func cells(runs []*Run) []string {
	count := func(f func(*Run) int) string {
		return spreadOf(runs, func(x *Run) report.Figure { return report.Figure(f(x)) }).Text(0)
	}
	return []string{
		spreadOf(runs, func(x *Run) report.Figure { return x.Execution }).Text(4),
		spreadOf(runs, reduction).Text(1),
		spreadOf(runs, latency).Text(1),
		spreadOf(runs, func(x *Run) report.Figure { return x.Latency.P99 }).Text(1),
		count(func(x *Run) int { return x.Over }),
		count(func(x *Run) int { return x.Moves }),
		count(func(x *Run) int { return x.Relieving }),
		spreadOf(runs, mbAnHour).Text(2),
		strconv.Itoa(runs[0].Copies),
	}
}

// objectiveText says what the printed objective is.
func objectiveText() string {
	return fmt.Sprintf("Σ E + %g a move of a placed owner + %g a GB moved + %g a US dollar of egress + %g a mean owner's traffic over capacity",
		objective.Margin, objective.PerGB, objective.PerUSD, objective.Overload)
}

func (r *Result) objectiveTable() sheet.Table {
	t := sheet.Table{
		Title: "One objective: " + objectiveText(),
		Head:  []string{"friends", "case", "strategy", "Σ E", "moving", "overload", "total", "least from the same states", "optimal from the same states", "worse", "greatest gap", "exact"},
		Notes: []string{
			"Sums over the windows of a day, median (range) of days. Each policy is judged along its own way; the columns of the same states ask at each " +
				"of its windows what the least total was, and what optimal would have planned. Worse: windows in which that was worse than tmatch.",
		},
	}
	for _, m := range r.Models {
		for _, c := range r.Cases {
			for _, s := range []string{TMatch, Optimal} {
				runs := slices.DeleteFunc(r.of(m.Name, c.Name, s), func(x *Run) bool { return x.Plans == nil })
				if len(runs) > 0 {
					t.Rows = append(t.Rows, append([]string{m.Name, c.Name, s}, plansCells(runs)...))
				}
			}
		}
	}
	return t
}

func plansCells(runs []*Run) []string {
	of := func(f func(*Plans) report.Figure) sheet.Spread {
		return spreadOf(runs, func(x *Run) report.Figure { return f(x.Plans) })
	}
	worse, exact, windows := 0, 0, 0
	gap := report.Unknown()
	for _, x := range runs {
		worse, exact, windows = worse+x.Plans.Worse, exact+x.Plans.Exact, windows+x.Plans.Windows
		gap = most(gap, x.Plans.Gap)
	}
	other := of(func(p *Plans) report.Figure { return p.Other })
	compared := "–"
	if other.Median.Known() {
		compared = fmt.Sprintf("%d of %d", worse, windows)
	}
	return []string{
		of(func(p *Plans) report.Figure { return report.Figure(p.Weight) }).Median.Text(1),
		of(func(p *Plans) report.Figure { return report.Figure(p.Moving) }).Median.Text(2),
		of(func(p *Plans) report.Figure { return report.Figure(p.Over) }).Median.Text(1),
		of(func(p *Plans) report.Figure { return report.Figure(p.Total) }).Text(1),
		of(func(p *Plans) report.Figure { return p.Least }).Median.Text(1),
		other.Median.Text(1), compared,
		fmt.Sprintf("%.2g", float64(gap)), fmt.Sprintf("%d of %d", exact, windows),
	}
}

// windowTable is the objective window by window, of the first day.
func (r *Result) windowTable() sheet.Table {
	t := sheet.Table{
		Title: "The objective window by window: the first day of the standard model",
		Head:  []string{"case", "end, UTC", "tmatch", "optimal from the same state", "least from the same state", "optimal on its own way"},
	}
	for _, c := range r.Cases {
		a, b := r.of(r.Standard, c.Name, TMatch), r.of(r.Standard, c.Name, Optimal)
		if len(a) == 0 || a[0].Plans == nil || b[0].Plans == nil {
			continue
		}
		for i, w := range a[0].Plans.Per {
			own := report.Unknown()
			if i < len(b[0].Plans.Per) {
				own = report.Figure(b[0].Plans.Per[i].Total)
			}
			t.Rows = append(t.Rows, []string{
				c.Name, fmt.Sprintf("%d h", hourOf(w.End)), report.Figure(w.Total).Text(3), w.Other.Text(3), w.Least.Text(3), own.Text(3),
			})
		}
	}
	return t
}

func (r *Result) variedTable() sheet.Table {
	t := sheet.Table{
		Title: fmt.Sprintf("One thing changed at a time: friends %s, median (range) of %d days", r.Standard, r.VariedSeeds),
		Head:  []string{"what", "value", "case", "strategy", "reduction, %", "latency mean, ms", "moves", "moved, MB"},
		Notes: []string{
			"* is the value of all other tables. Delays are measured by the hour whatever the unit of time by which is decided. " +
				"Units below an hour cannot be shown: the rollups add up by the hour.",
		},
	}
	type key struct{ what, value, name, strategy string }
	by, order := map[key][]*Run{}, []key{}
	for i := range r.Varied {
		v := &r.Varied[i]
		value := v.Value
		if v.Standard {
			value += " *"
		}
		k := key{v.What, value, v.Case, v.Strategy}
		if by[k] == nil {
			order = append(order, k)
		}
		by[k] = append(by[k], &v.Run)
	}
	for _, what := range []string{"alpha : beta", "headroom", "unit of time"} {
		for _, k := range order {
			if k.what != what {
				continue
			}
			runs := by[k]
			t.Rows = append(t.Rows, []string{
				k.what, k.value, k.name, k.strategy, spreadOf(runs, reduction).Text(1), spreadOf(runs, latency).Text(1),
				spreadOf(runs, func(x *Run) report.Figure { return report.Figure(x.Moves) }).Text(0),
				spreadOf(runs, func(x *Run) report.Figure { return report.Figure(float64(x.MovedBytes) / 1e6) }).Text(1),
			})
		}
	}
	return t
}

// Text prints the tables.
func (r *Result) Text(w io.Writer) error { return sheet.Text(w, r.Tables()) }

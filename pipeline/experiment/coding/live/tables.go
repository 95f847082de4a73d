package live

import (
	"fmt"
	"io"
	"strings"

	"penstock/pipeline/demo/machine"
	"penstock/pipeline/experiment/sheet"
)

// tables are the result as people read it.
func (r *Result) tables() []sheet.Table {
	sweep := sheet.Table{
		Title: fmt.Sprintf("The coder over a shaped store: %d B an object, a task takes %.4g + %.4g·B ms and exponentially %.4g + %.4g·B ms (B in MB), %d connections, seed %d; s: simulated",
			r.Bytes, r.Model.Delta, r.Model.DeltaPerMB, r.Model.Psi, r.Model.PsiPerMB, connections, r.Seed),
		Head: []string{"load", "policy", "due/s", "answers/s", "s", "refused", "mean ms", "s", "p90", "s", "p99", "s", "sd", "s", "asked", "s", "k, % of requests", "s"},
	}
	for i := range r.Points {
		p := &r.Points[i]
		s := p.Simulated
		of := func(v func(*Simulated) float64) string {
			if !s.KeepsUp {
				return "–"
			}
			return one(v(s))
		}
		sweep.Rows = append(sweep.Rows, []string{
			fmt.Sprintf("%d %%", p.Percent), p.Policy, one(p.PerSecond), one(p.Served), one(s.Served), fmt.Sprint(p.Refused),
			one(p.Mean), of(func(s *Simulated) float64 { return s.Mean }), one(p.P90), of(func(s *Simulated) float64 { return s.P90 }),
			one(p.P99), of(func(s *Simulated) float64 { return s.P99 }), one(p.SD), of(func(s *Simulated) float64 { return s.SD }),
			fmt.Sprintf("%.2f", p.Asked), fmt.Sprintf("%.2f", s.Asked), shares(p.K), shares(s.K),
		})
	}
	for _, c := range r.Capacities {
		sweep.Notes = append(sweep.Notes, fmt.Sprintf("by the model %s carries %.1f requests a second, and takes %.1f ms without a queue", c.Code, c.PerSecond, c.Delay))
	}
	checks := sheet.Table{Title: "What is promised", Head: []string{"load", "promise", "expected", "found", "kept"}}
	for _, c := range r.Checks {
		at := ""
		if c.Percent > 0 {
			at = fmt.Sprintf("%d %%", c.Percent)
		}
		checks.Rows = append(checks.Rows, []string{at, c.What, c.Want, c.Got, sheet.Yes(c.Kept)})
	}
	beside := sheet.Table{Title: "The machine", Head: []string{"load", "this process", "all processes", "woken up late, ms"}, Notes: r.Void}
	for _, m := range r.Machine {
		beside.Rows = append(beside.Rows, []string{m.When, machine.Share(m.Ours), machine.Share(m.All), fmt.Sprintf("%.2f", m.Late)})
	}
	return []sheet.Table{sweep, checks, beside}
}

func one(v float64) string { return fmt.Sprintf("%.1f", v) }

// shares are those of requests with each k, from 1 on.
func shares(of []float64) string {
	out := make([]string, len(of))
	for i, v := range of {
		out[i] = fmt.Sprintf("%.0f", 100*v)
	}
	return strings.Join(out, " ")
}

// Text prints the result.
func (r *Result) Text(w io.Writer) error {
	if err := sheet.Text(w, r.tables()); err != nil {
		return err
	}
	last := fmt.Sprintf("All %d promises kept.", len(r.Checks))
	switch n := r.broken(); {
	case len(r.Void) > 0:
		last = "The run is void: the machine was its limit, and it shows nothing."
	case n > 0:
		last = fmt.Sprintf("Not kept: %d of %d.", n, len(r.Checks))
	}
	_, err := fmt.Fprintf(w, "\n%s\n", last)
	return err
}

// JSON is the result for machines.
func (r *Result) JSON() ([]byte, error) { return sheet.JSON(r) }

// Write writes coding-live.json and coding-live.html into a folder.
func (r *Result) Write(dir string) error {
	return sheet.Write(dir, "coding-live", r, &sheet.Page{Title: "Penstock: the coder over a shaped store", Tables: r.tables()})
}

package coding

import (
	"fmt"
	"strings"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"penstock/pipeline/demo/machine"
	"penstock/pipeline/experiment/sheet"
)

// tables are the result as people read it.
func (r *Result) tables() []sheet.Table {
	checks := sheet.Table{Title: "What is promised", Head: []string{"promise", "expected", "found", "kept"}}
	for _, c := range r.Checks {
		checks.Rows = append(checks.Rows, []string{c.What, c.Want, c.Got, sheet.Yes(c.Kept)})
	}
	delays := sheet.Table{
		Title: "Reads by phase, without its first seconds",
		Head:  []string{"phase", "load", "coder", "reads", "answers/s", "refused", "mean ms", "sd", "p50", "p90", "p99", "k", "asked", "$/million reads"},
	}
	for i, p := range r.Phases {
		for k := range r.Arms {
			x := &r.Arms[k].Phases[i]
			delays.Rows = append(delays.Rows, []string{
				p.Name, fmt.Sprintf("%d %%", p.Percent), r.Arms[k].Policy, fmt.Sprint(x.Reads), one(x.Served), fmt.Sprint(x.Refused), one(x.Mean), one(x.SD), one(x.P50), one(x.P90), one(x.P99),
				one(x.K), fmt.Sprintf("%.2f", x.Asked), fmt.Sprintf("%.2f", x.USD),
			})
		}
	}
	learned := sheet.Table{Title: "What the decider has learned", Head: []string{"when", "epoch", "delay of reads", "true", "thresholds of k", "by the true delays"}}
	for _, l := range r.Learned {
		f, t := l.Found, l.True
		learned.Rows = append(learned.Rows, []string{
			l.When, fmt.Sprint(l.Epoch), fmt.Sprintf("%.1f + %.0f·MB, %.1f + %.0f·MB", f.Delta, f.DeltaPerMB, f.Psi, f.PsiPerMB),
			fmt.Sprintf("%.1f + %.0f·MB, %.1f + %.0f·MB", t.Delta, t.DeltaPerMB, t.Psi, t.PsiPerMB), thresholds(l.K), thresholds(l.TrueK),
		})
	}
	used := sheet.Table{Title: "The machine", Head: []string{"when", "s", "this demonstration", "all processes", "woken up late, ms"}, Notes: r.Void}
	for _, u := range r.Usage {
		used.Rows = append(used.Rows, []string{u.When, one(u.Seconds), machine.Share(u.Ours), machine.Share(u.All), fmt.Sprintf("%.2f", u.Late)})
	}
	return []sheet.Table{checks, delays, learned, used}
}

func one(v float64) string { return fmt.Sprintf("%.1f", v) }

// String is the result as people read it.
func (r *Result) String() string {
	var b strings.Builder
	_ = sheet.Text(&b, r.tables()) // Into memory.
	switch {
	case len(r.Void) > 0:
		fmt.Fprintf(&b, "\nThe run is void: it shows nothing.\n")
	case len(r.Broken) > 0:
		fmt.Fprintf(&b, "\nNot kept: %d of %d.\n", len(r.Broken), len(r.Checks))
	default:
		fmt.Fprintf(&b, "\nAll %d promises kept.\n", len(r.Checks))
	}
	fmt.Fprintf(&b, "The report with its plots, configurations and logs are in %s.", r.Dir)
	return b.String()
}

// page is the report.
func (r *Result) page() (*sheet.Page, error) {
	page := &sheet.Page{Title: "Penstock: coded storage that adapts", About: r.About, Tables: r.tables()}
	for _, d := range []struct {
		title, unit string
		value       func(*Point) float64
	}{
		{"mean delay of reads, of 3 s", "ms", func(p *Point) float64 { return p.Mean }},
		{"chunks needed, k", "k", func(p *Point) float64 { return float64(p.K) }},
		{"chunks asked for, n", "n", func(p *Point) float64 { return float64(p.N) }},
		{"requests that wait", "requests", func(p *Point) float64 { return float64(p.Backlog) }},
		{"connections in use", "connections", func(p *Point) float64 { return float64(p.InUse) }},
	} {
		p, err := r.draw(d.title, d.unit, d.value)
		if err != nil {
			return nil, fmt.Errorf("demo: plots: %w", err)
		}
		page.Pictures = append(page.Pictures, p...)
	}
	return page, nil
}

// draw draws a figure of all coders over time.
func (r *Result) draw(title, unit string, value func(*Point) float64) ([]sheet.Picture, error) {
	p := sheet.NewPlot(title, "s", unit)
	for i := range r.Arms {
		var points plotter.XYs
		for k := range r.Arms[i].Curve {
			x := &r.Arms[i].Curve[k]
			points = append(points, plotter.XY{X: x.At, Y: value(x)})
		}
		if len(points) == 0 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width, line.StepStyle = sheet.Palette[i%len(sheet.Palette)], vg.Points(1.4), plotter.PostStep
		p.Add(line)
		p.Legend.Add(r.Arms[i].Policy, line)
	}
	return sheet.Render(p)
}

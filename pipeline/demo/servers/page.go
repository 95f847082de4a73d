package servers

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
	costs := sheet.Table{
		Title: "The day",
		Head:  []string{"site", "requests", "failed", "server-seconds", "penalties", "cost", "mean ms", "p50", "p90", "p99", "late"},
	}
	for i := range r.Sites {
		x := &r.Sites[i]
		costs.Rows = append(costs.Rows, []string{
			x.Site, fmt.Sprint(x.Due), fmt.Sprint(x.Failed), one(x.ServerSeconds), one(x.Penalties), one(x.Cost), one(x.Mean), one(x.P50), one(x.P90), one(x.P99),
			fmt.Sprintf("%.2f %%", 100*x.Late),
		})
	}
	phases := sheet.Table{Title: "By phase", Head: []string{"phase", "site", "requests", "p50", "p99", "late", "penalties"}}
	for i := range r.Phases {
		for k := range r.Sites {
			x := &r.Sites[k].Phases[i]
			phases.Rows = append(phases.Rows, []string{
				r.Phases[i].Name, r.Sites[k].Site, fmt.Sprint(x.Requests), one(x.P50), one(x.P99), fmt.Sprintf("%.2f %%", 100*x.Late), one(x.Penalties),
			})
		}
	}
	servers := sheet.Table{
		Title: "Servers of the site " + dispatched,
		Head:  []string{"server", "slowness", "on s", "ups", "downs", "most at once", "done", "estimated ms", "took ms", "error"},
		Notes: []string{"Estimates and what requests took are without the first 200 answers, from which they are learned, and without the time in which a server was made slow and 200 answers after it."},
	}
	for _, s := range r.Servers {
		estimated, took, failure := "–", "–", "–" // It had too little to do.
		if s.Answers > 0 {
			estimated, took, failure = one(s.Estimated), one(s.Took), fmt.Sprintf("%.1f %%", 100*s.Failure)
		}
		servers.Rows = append(servers.Rows, []string{
			fmt.Sprint(s.Number), fmt.Sprint(s.Slowness), one(s.On), fmt.Sprint(s.Ups), fmt.Sprint(s.Downs), fmt.Sprint(s.Most), fmt.Sprint(s.Done), estimated, took, failure,
		})
	}
	decided := sheet.Table{Title: "Tables of servers", Head: []string{"s", "epoch", "on", "reason"}}
	for _, t := range r.Tables {
		decided.Rows = append(decided.Rows, []string{one(t.At), fmt.Sprint(t.Epoch), fmt.Sprint(t.On), t.Reason})
	}
	used := sheet.Table{Title: "The machine", Head: []string{"when", "s", "this demonstration", "all processes", "woken up late, ms"}, Notes: r.Void}
	for _, u := range r.Usage {
		used.Rows = append(used.Rows, []string{u.When, one(u.Seconds), machine.Share(u.Ours), machine.Share(u.All), fmt.Sprintf("%.2f", u.Late)})
	}
	return []sheet.Table{checks, costs, phases, servers, decided, used}
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
	page := &sheet.Page{Title: "Penstock: requests queued by deadline, servers on and off", About: r.About, Tables: r.tables()}
	var labels []string
	for i := range slowness {
		labels = append(labels, fmt.Sprintf("server %d", i+1))
	}
	for _, d := range []struct {
		title, unit string
		labels      []string
		values      func(*Point) []float64
	}{
		{"servers that are on", "servers", []string{dispatched}, func(p *Point) []float64 { return []float64{float64(p.On)} }},
		{"penalties a second", "cost", []string{dispatched}, func(p *Point) []float64 { return []float64{p.Penalty} }},
		{"requests that wait in front of servers", "requests", []string{dispatched}, func(p *Point) []float64 { return []float64{p.Queued} }},
		{"share of requests", "share", labels, func(p *Point) []float64 { return p.Shares }},
		{"mean service time", "ms", labels, func(p *Point) []float64 { return p.Took }},
		{"mean response time", "ms", []string{dispatched, plain}, func(p *Point) []float64 { return p.Means }},
	} {
		p, err := r.draw(d.title, d.unit, d.labels, d.values)
		if err != nil {
			return nil, fmt.Errorf("demo: plots: %w", err)
		}
		page.Pictures = append(page.Pictures, p...)
	}
	return page, nil
}

// draw draws figures over time; what is below 0 is left out.
func (r *Result) draw(title, unit string, labels []string, values func(*Point) []float64) ([]sheet.Picture, error) {
	p := sheet.NewPlot(title, "s", unit)
	for i, label := range labels {
		var points plotter.XYs
		for k := range r.Curve {
			if v := values(&r.Curve[k]); i < len(v) && v[i] >= 0 {
				points = append(points, plotter.XY{X: r.Curve[k].At, Y: v[i]})
			}
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
		p.Legend.Add(label, line)
	}
	return sheet.Render(p)
}

package split

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"penstock/pipeline/experiment/sheet"
)

// tables are the result as people read it.
func (r *Result) tables() []sheet.Table {
	checks := sheet.Table{Title: "What is promised", Head: []string{"fault", "promise", "expected", "found", "kept"}}
	for _, c := range r.Checks {
		fault := ""
		if c.Fault > 0 {
			fault = fmt.Sprint(c.Fault)
		}
		checks.Rows = append(checks.Rows, []string{fault, c.What, c.Want, c.Got, sheet.Yes(c.Kept)})
	}
	delays := sheet.Table{
		Title: fmt.Sprintf("Requests that entered at the site of %s while it was slow", r.Slowed),
		Head:  []string{"policy", "fault", "requests", "p50 ms", "p90 ms", "p99 ms", "p90 before"},
	}
	all := sheet.Table{Title: "Policies", Head: []string{"policy", "requests", "failed", "latest sent", "windows decided", "commands", "probes", "reasons"}}
	for _, p := range r.Policies {
		for i, f := range p.Faults {
			delays.Rows = append(delays.Rows, []string{p.Policy, fmt.Sprint(i + 1), fmt.Sprint(f.Requests), one(f.P50), one(f.P90), one(f.P99), one(f.Before)})
		}
		var probes int64
		for _, n := range p.Probes {
			probes += n
		}
		all.Rows = append(all.Rows, []string{
			p.Policy, fmt.Sprint(p.Due), fmt.Sprint(p.Failed), one(p.MaxLag) + " ms late", fmt.Sprint(p.Decisions), fmt.Sprint(p.Commands), fmt.Sprint(probes), counts(p.Reasons),
		})
	}
	used := sheet.Table{Title: "The machine's processors", Head: []string{"when", "s", "this demonstration", "everybody"}}
	for _, u := range r.Usage {
		used.Rows = append(used.Rows, []string{u.When, one(u.Seconds), one(100*u.Ours) + " %", one(100*u.Machine) + " %"})
	}
	used.Notes = append(used.Notes, r.Void...)
	return []sheet.Table{checks, delays, all, used}
}

func one(v float64) string { return fmt.Sprintf("%.1f", v) }

// counts are how often each reason was given, the most frequent first.
func counts(by map[string]int64) string {
	var codes []string
	for code := range by {
		codes = append(codes, code)
	}
	slices.SortFunc(codes, func(a, b string) int {
		if by[a] != by[b] {
			return int(by[b] - by[a])
		}
		return strings.Compare(a, b)
	})
	for i, code := range codes {
		codes[i] = fmt.Sprintf("%s %d", code, by[code])
	}
	return strings.Join(codes, ", ")
}

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
	page := &sheet.Page{Title: "Penstock: a replica gets slow", About: r.About, Tables: r.tables()}
	for _, draw := range []func() ([]sheet.Picture, error){
		r.drawShares, r.drawSources,
		func() ([]sheet.Picture, error) { return r.drawDelays("p90", func(x *Point) []float64 { return x.P90 }) },
		func() ([]sheet.Picture, error) { return r.drawDelays("p50", func(x *Point) []float64 { return x.P50 }) },
	} {
		p, err := draw()
		if err != nil {
			return nil, fmt.Errorf("demo: plots: %w", err)
		}
		page.Pictures = append(page.Pictures, p...)
	}
	return page, nil
}

// line is one of a plot; what is below 0 is unknown.
type line struct {
	name  string
	value func(*Point) float64
	curve []Point
}

// draw draws lines over time, with faults shaded.
func (r *Result) draw(title, unit string, most float64, lines []line) ([]sheet.Picture, error) {
	p := sheet.NewPlot(title, "s", unit)
	for _, l := range lines {
		for i := range l.curve {
			most = max(most, 1.1*l.value(&l.curve[i]))
		}
	}
	for _, f := range r.Faults {
		shade, err := plotter.NewPolygon(plotter.XYs{{X: f.From, Y: 0}, {X: f.From, Y: most}, {X: f.To, Y: most}, {X: f.To, Y: 0}})
		if err != nil {
			return nil, err
		}
		shade.Color, shade.LineStyle.Width = color.RGBA{240, 228, 222, 255}, 0
		p.Add(shade)
	}
	for i, l := range lines {
		var points plotter.XYs
		for k := range l.curve {
			if y := l.value(&l.curve[k]); y >= 0 {
				points = append(points, plotter.XY{X: l.curve[k].At, Y: y})
			}
		}
		if len(points) == 0 {
			continue
		}
		drawn, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		drawn.Color, drawn.Width, drawn.StepStyle = sheet.Palette[i%len(sheet.Palette)], vg.Points(1.4), plotter.PostStep
		p.Add(drawn)
		p.Legend.Add(l.name, drawn)
	}
	p.Y.Max = most
	return sheet.Render(p)
}

func (r *Result) drawShares() ([]sheet.Picture, error) {
	var lines []line
	for _, p := range r.Policies {
		lines = append(lines, line{p.Policy, func(x *Point) float64 { return x.Answers }, p.Curve})
	}
	return r.draw("share of "+r.Slowed+" in answers to requests that entered there", "share", 1.1, lines)
}

func (r *Result) drawSources() ([]sheet.Picture, error) {
	p := &r.Policies[0]
	return r.draw("share of "+r.Slowed+", "+p.Policy, "share", 1.1, []line{
		{"commanded", func(x *Point) float64 { return x.Commanded }, p.Curve},
		{"answers", func(x *Point) float64 { return x.Answers }, p.Curve},
		{"rows, probes included", func(x *Point) float64 { return x.Rows }, p.Curve},
	})
}

func (r *Result) drawDelays(name string, of func(*Point) []float64) (out []sheet.Picture, err error) {
	for i, site := range r.Sites {
		var lines []line
		for _, p := range r.Policies {
			lines = append(lines, line{p.Policy, func(x *Point) float64 { return of(x)[i] }, p.Curve})
		}
		pic, err := r.draw(fmt.Sprintf("%s of requests that entered at %s", name, site), "ms", 1, lines)
		if err != nil {
			return nil, err
		}
		out = append(out, pic...)
	}
	return out, nil
}

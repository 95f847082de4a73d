package coding

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"penstock/pipeline/experiment/sheet"
	"penstock/pipeline/report"
)

// series is one line of a plot.
type series struct {
	name   string
	points plotter.XYs
	dashed bool
}

// draw draws lines; those without points are left out.
func draw(p *plot.Plot, lines []series) ([]sheet.Picture, error) {
	for i, s := range lines {
		if len(s.points) == 0 {
			continue
		}
		line, err := plotter.NewLine(s.points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = sheet.Palette[i%len(sheet.Palette)], vg.Points(1.2)
		if s.dashed {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		}
		p.Add(line)
		p.Legend.Add(s.name, line)
	}
	return sheet.Render(p)
}

// plots draws, of judged stores, delays and prices by load and the shares of k, and of
// the first one loads that change.
func (r *Result) plots() ([]sheet.Picture, error) {
	var out []sheet.Picture
	add := func(p *plot.Plot, lines []series) error {
		pics, err := draw(p, lines)
		out = append(out, pics...)
		return err
	}
	for i := range r.Stores {
		s := &r.Stores[i]
		if !s.site.Judged {
			continue
		}
		for _, x := range []struct {
			title, axis string
			of          func(*Point) Estimate
		}{
			{"mean", "ms", mean},
			{"90th percentile", "ms", func(p *Point) Estimate { return p.P90 }},
			{"99th percentile", "ms", func(p *Point) Estimate { return p.P99 }},
			{"standard deviation", "ms", func(p *Point) Estimate { return p.SD }},
			{"price of a million requests", "US dollars", func(p *Point) Estimate { return p.USD }},
		} {
			p := sheet.NewPlot(s.Name+": "+x.title, "load, % of (1,1)", x.axis)
			p.Legend.Left = true
			if err := add(p, s.lines(x.of)); err != nil {
				return nil, err
			}
		}
		p := sheet.NewPlot(s.Name+": share of requests on each k, "+TOFEC, "load, % of (1,1)", "")
		p.Y.Max = 1.3
		if err := add(p, s.shareLines(r.params.KMax)); err != nil {
			return nil, err
		}
	}
	for _, s := range r.Steps {
		p := sheet.NewPlot(fmt.Sprintf("%s, %s: a step from %d to %d %% and back", r.Stores[0].Name, s.Policy, s.Low, s.High), "seconds", "")
		p.Y.Max = 8
		if err := add(p, courseLines(s.Course, false)); err != nil {
			return nil, err
		}
	}
	p := sheet.NewPlot(r.Stores[0].Name+", tofec: a ramp", "seconds", "")
	p.Y.Max = 8
	return out, add(p, courseLines(r.Ramp, true))
}

// lines are a figure by load: the envelope of static codes and what stands beside it.
func (s *StoreResult) lines(of func(*Point) Estimate) []series {
	envelope := series{name: "best static", dashed: true}
	for _, l := range s.site.loads {
		if p := s.bestStatic(l); p != nil {
			envelope.points = append(envelope.points, plotter.XY{X: float64(l), Y: float64(of(p).Value)})
		}
	}
	out := []series{envelope}
	for _, name := range []string{TOFEC, Greedy, "(1,1)", s.bestStatic(s.site.loads[0]).Policy, "hedge (2,1)", ByPaper} {
		x := series{name: name}
		for _, l := range s.site.loads {
			if p := s.point(name, l); p != nil {
				x.points = append(x.points, plotter.XY{X: float64(l), Y: float64(of(p).Value)})
			}
		}
		out = append(out, x)
	}
	return out
}

func (s *StoreResult) shareLines(kMax int) []series {
	out := make([]series, kMax)
	for k := range out {
		out[k].name = fmt.Sprintf("k = %d", k+1)
		for _, l := range s.site.loads {
			if p := s.point(TOFEC, l); p != nil {
				out[k].points = append(out[k].points, plotter.XY{X: float64(l), Y: float64(p.K[k])})
			}
		}
	}
	return out
}

// courseLines are k, what it is in the long run, and the backlog over time.
func courseLines(course []Moment, longRun bool) []series {
	k, long, backlog := series{name: "k"}, series{name: "k in the long run", dashed: true}, series{name: "waiting"}
	put := func(s *series, x float64, y report.Figure) {
		if y.Known() {
			s.points = append(s.points, plotter.XY{X: x, Y: float64(y)})
		}
	}
	for _, m := range course {
		put(&k, m.Seconds, m.K)
		put(&backlog, m.Seconds, min(m.Backlog, 8))
		if longRun {
			put(&long, m.Seconds, m.LongRun)
		}
	}
	return []series{k, backlog, long}
}

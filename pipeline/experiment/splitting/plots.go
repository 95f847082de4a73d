package splitting

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"penstock/pipeline/experiment/sheet"
	"penstock/pipeline/report"
)

// plots draws, of the first seed, the p90 and the share of the component in
// question over time, by policy, of every fault.
func (r *Result) plots() ([]sheet.Picture, error) {
	var out []sheet.Picture
	for _, g := range r.groups() {
		if g.fault.Name == calm || g.arrivals != Made {
			continue
		}
		about := fmt.Sprintf("%s, fault %s: ", g.application, g.fault.Name)
		p := sheet.NewPlot(about+"p90 of requests that enter at the affected site", "minutes", "ms")
		p.Y.Min, p.Y.Scale, p.Y.Tick.Marker = 100, plot.LogScale{}, plot.LogTicks{Prec: -1}
		pics, err := r.draw(p, g, func(c *Course) []report.Figure { return c.P90 })
		if err != nil {
			return nil, err
		}
		out = append(out, pics...)
		p = sheet.NewPlot(about+"share that stays at the affected site", "minutes", "")
		p.Y.Max = 1.4
		if pics, err = r.draw(p, g, func(c *Course) []report.Figure { return c.Share }); err != nil {
			return nil, err
		}
		out = append(out, pics...)
	}
	return out, nil
}

// draw adds a line a policy, and bars where the fault begins and ends.
func (r *Result) draw(p *plot.Plot, g group, of func(*Course) []report.Figure) ([]sheet.Picture, error) {
	drawn := false
	for i, policy := range r.params.Policies {
		runs := r.runs(g, policy)
		if len(runs) == 0 || runs[0].Course == nil {
			continue
		}
		var points plotter.XYs
		for n, v := range of(runs[0].Course) {
			if v.Known() {
				points = append(points, plotter.XY{X: float64(n) / 6, Y: max(float64(v), 1e-3)})
			}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		drawn = true
		line.Color, line.Width = sheet.Palette[i%len(sheet.Palette)], vg.Points(1.2)
		p.Add(line)
		p.Legend.Add(policy, line)
	}
	if !drawn {
		return nil, nil
	}
	if !g.fault.Natural {
		for _, at := range []float64{r.params.Time.From.Minutes(), r.params.Time.To.Minutes()} {
			bar, err := plotter.NewLine(plotter.XYs{{X: at, Y: p.Y.Min + 1e-3}, {X: at, Y: p.Y.Max}})
			if err != nil {
				return nil, err
			}
			bar.Dashes = []vg.Length{vg.Points(3), vg.Points(3)}
			p.Add(bar)
		}
	}
	return sheet.Render(p)
}

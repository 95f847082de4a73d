package serving

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"penstock/pipeline/experiment/sheet"
)

// drawn are the policies that plots show, in as many colours.
var drawn = []string{"rr", "ll", "prequal", "icbs", "A1", "A3", "auto"}

// plots draws, of the first seed, queues with all servers on and the servers that are on
// where they are switched, of every scenario.
func (r *Result) plots() ([]sheet.Picture, error) {
	var out []sheet.Picture
	for _, s := range r.scenarios(AllOn, each) {
		for _, x := range []struct {
			mode     Mode
			title, y string
			of       func(c *Course) []int
		}{
			{AllOn, "requests that wait, all servers on", "requests", func(c *Course) []int { return c.Queued }},
			{Switched, "servers that are on, starting or draining", "servers", func(c *Course) []int { return c.On }},
		} {
			p := sheet.NewPlot(fmt.Sprintf("%s: %s", s.Scenario, x.title), "seconds", x.y)
			if err := r.draw(p, s.Scenario, x.mode, x.of); err != nil {
				return nil, err
			}
			pics, err := sheet.Render(p)
			if err != nil {
				return nil, err
			}
			out = append(out, pics...)
		}
	}
	return out, nil
}

// draw adds a line a policy.
func (r *Result) draw(p *plot.Plot, scenario string, mode Mode, of func(*Course) []int) error {
	for i, policy := range drawn {
		for k := range r.Courses {
			c := &r.Courses[k]
			if c.Scenario != scenario || c.Mode != mode || c.Policy != policy {
				continue
			}
			var points plotter.XYs
			for n, v := range of(c) {
				points = append(points, plotter.XY{X: float64(n+1) * r.params.Switching.Period.Seconds(), Y: float64(v)})
			}
			line, err := plotter.NewLine(points)
			if err != nil {
				return err
			}
			line.Color, line.Width = sheet.Palette[i%len(sheet.Palette)], vg.Points(1.2)
			p.Add(line)
			p.Legend.Add(policy, line)
		}
	}
	return nil
}

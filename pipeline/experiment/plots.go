package experiment

import (
	"fmt"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"penstock/pipeline/experiment/sheet"
)

// plots draws, of the first day of the standard model, traffic against capacity
// under the baseline and ours, the waiting and the latency by hour; and of all
// days the reductions.
func (r *Result) plots() ([]sheet.Picture, error) {
	var out []sheet.Picture
	for _, c := range r.Cases {
		if c.Target == 0 {
			continue
		}
		for _, strategy := range []string{Baseline, TMatch, Optimal} {
			pic, err := r.drawTraffic(&c, strategy)
			if err != nil {
				return nil, err
			}
			out = append(out, pic...)
		}
		for _, curve := range []struct {
			title, unit string
			value       func(*Hour) float64
		}{
			{"execution delay, Σ of sites, case " + c.Name, "hours", func(h *Hour) float64 { return h.Waiting }},
			{"latency delay, case " + c.Name, "ms, mean of an hour", func(h *Hour) float64 { return float64(h.Latency) }},
		} {
			pic, err := r.drawHours(&c, curve.title, curve.unit, curve.value)
			if err != nil {
				return nil, err
			}
			out = append(out, pic...)
		}
	}
	pic, err := r.drawReductions()
	return append(out, pic...), err
}

// hourTicks marks every third hour of the day, which goes on over midnight.
func hourTicks(least, most float64) []plot.Tick {
	var out []plot.Tick
	for h := 0; float64(h) <= most; h += 3 {
		if float64(h) >= least {
			out = append(out, plot.Tick{Value: float64(h), Label: strconv.Itoa(h % 24)})
		}
	}
	return out
}

// addSteps draws values by hour, from the paper's 8 h on.
func addSteps(p *plot.Plot, name string, colour int, hours []Hour, value func(*Hour) float64) error {
	points := make(plotter.XYs, 0, len(hours)+1)
	for i := range hours {
		points = append(points, plotter.XY{X: hourAfterMidnight(hours, i), Y: value(&hours[i])})
	}
	last := points[len(points)-1]
	points = append(points, plotter.XY{X: last.X + 1, Y: last.Y})
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width, line.StepStyle = sheet.Palette[colour%len(sheet.Palette)], vg.Points(1.4), plotter.PostStep
	p.Add(line)
	p.Legend.Add(name, line)
	return nil
}

// hourAfterMidnight counts on over midnight.
func hourAfterMidnight(hours []Hour, i int) float64 {
	return float64(hourOf(hours[0].Start)) + float64(hours[i].Start-hours[0].Start)/3600e6
}

func (r *Result) firstHours(c *Case, strategy string) []Hour {
	for _, x := range r.of(r.Standard, c.Name, strategy) {
		if len(x.Hours) > 0 {
			return x.Hours
		}
	}
	return nil
}

func (r *Result) drawTraffic(c *Case, strategy string) ([]sheet.Picture, error) {
	hours := r.firstHours(c, strategy)
	if len(hours) == 0 {
		return nil, nil
	}
	p := sheet.NewPlot(fmt.Sprintf("traffic by site, case %s, %s (dashed: capacity)", c.Name, strategy), "hour, UTC", "MB")
	for s, name := range r.Sites {
		if err := addSteps(p, name, s, hours, func(h *Hour) float64 { return float64(h.Traffic[s]) / 1e6 }); err != nil {
			return nil, err
		}
		first, ca := hourAfterMidnight(hours, 0), float64(c.Capacity[s])/1e6
		line, err := plotter.NewLine(plotter.XYs{{X: first, Y: ca}, {X: first + float64(len(hours)), Y: ca}})
		if err != nil {
			return nil, err
		}
		line.Color, line.Dashes = sheet.Palette[s%len(sheet.Palette)], []vg.Length{vg.Points(4), vg.Points(3)}
		p.Add(line)
	}
	p.Y.Max = 180
	p.X.Tick.Marker = plot.TickerFunc(hourTicks)
	return sheet.Render(p)
}

func (r *Result) drawHours(c *Case, title, unit string, value func(*Hour) float64) ([]sheet.Picture, error) {
	p := sheet.NewPlot(title, "hour, UTC", unit)
	drawn := false
	for i, strategy := range []string{Baseline, DistanceOnly, TMatch, Optimal} {
		hours := r.firstHours(c, strategy)
		if len(hours) == 0 {
			continue
		}
		drawn = true
		if err := addSteps(p, strategy, i, hours, value); err != nil {
			return nil, err
		}
	}
	if !drawn {
		return nil, nil
	}
	p.Y.Max *= 1.4
	p.X.Tick.Marker = plot.TickerFunc(hourTicks)
	return sheet.Render(p)
}

// drawReductions is a dot a day, with a line at the paper's figure.
func (r *Result) drawReductions() ([]sheet.Picture, error) {
	p := sheet.NewPlot("reduction of execution delay by day (line: the paper's)", "", "%")
	var ticks []plot.Tick
	at := 0.0
	for _, c := range r.Cases {
		if c.Target == 0 {
			continue
		}
		from := at
		for m, model := range r.Models {
			runs := r.of(model.Name, c.Name, TMatch)
			if len(runs) == 0 {
				continue
			}
			points := make(plotter.XYs, 0, len(runs))
			for i, x := range runs {
				if x.Reduction.Known() {
					points = append(points, plotter.XY{X: at + 0.06*(float64(i)-float64(len(runs)-1)/2), Y: float64(x.Reduction)})
				}
			}
			dots, err := plotter.NewScatter(points)
			if err != nil {
				return nil, err
			}
			dots.Color, dots.Radius, dots.Shape = sheet.Palette[m%len(sheet.Palette)], vg.Points(2.5), draw.CircleGlyph{}
			p.Add(dots)
			ticks = append(ticks, plot.Tick{Value: at, Label: c.Name + " " + model.Name})
			at++
		}
		line, err := plotter.NewLine(plotter.XYs{{X: from - 0.5, Y: c.Target}, {X: at - 0.5, Y: c.Target}})
		if err != nil {
			return nil, err
		}
		p.Add(line)
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Max = 105
	return sheet.Render(p)
}

package report

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// plots draws of each site the servers that were on, what a minute cost, and how much
// they were used.
func (s *ServersReport) plots() ([]picture, error) {
	var out []picture
	for i := range s.Sites {
		x := &s.Sites[i]
		if len(x.Series) == 0 || len(out) == 3*maxDrawn {
			continue
		}
		for _, draw := range []func(*SiteServers) (picture, error){s.drawOn, s.drawCost, s.drawUse} {
			p, err := draw(x)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", x.Site, err)
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// line is a line of a plot: values by the points of a series, NaN where they are unknown.
type line struct {
	curve
	stepped bool
}

func (s *ServersReport) drawOn(x *SiteServers) (picture, error) {
	p, err := s.draw(x, "servers", []line{
		{curve{name: "on, by the tables", values: x.values(func(v *ServersPoint) float64 { return v.On })}, true},
		{curve{colour: 1, dashed: true, values: level(float64(x.On.Configured), len(x.Series))}, true},
	})
	p.Title, p.Caption = x.Site+": servers on", fmt.Sprintf("%d changes; dashed: all that the site has.", len(x.Changes))
	return p, err
}

func (s *ServersReport) drawCost(x *SiteServers) (picture, error) {
	minute := func(sum float64) float64 { return sum * 60 / s.StepS }
	p, err := s.draw(x, "cost units a minute", []line{
		{curve{name: "penalties, as recorded", colour: 5, values: x.values(func(v *ServersPoint) float64 { return minute(v.Penalties) })}, false},
		{curve{name: "server time of those on", values: x.values(func(v *ServersPoint) float64 { return minute(v.ServerTime) })}, true},
	})
	p.Title, p.Caption = x.Site+": penalties and server time", "Penalties are those of the servers that ran when it was recorded."
	return p, err
}

func (s *ServersReport) drawUse(x *SiteServers) (picture, error) {
	p, err := s.draw(x, "% of places", []line{
		{curve{name: "used", values: x.values(func(v *ServersPoint) float64 { return 100 * float64(v.Utilisation) })}, false},
		{curve{colour: 1, dashed: true, values: level(100, len(x.Series))}, false},
	})
	p.Title, p.Caption = x.Site+": utilisation", "The recorded time in service over the places of the servers that the tables had on."
	return p, err
}

func (x *SiteServers) values(of func(*ServersPoint) float64) []float64 {
	out := make([]float64, len(x.Series))
	for i := range x.Series {
		out[i] = of(&x.Series[i])
	}
	return out
}

// draw renders lines over the time that was decided.
func (s *ServersReport) draw(x *SiteServers, y string, lines []line) (picture, error) {
	p := plot.New()
	style(p)
	p.Y.Label.Text = y
	p.X.Tick.Marker = plot.TickerFunc(splitTicks)
	named := 0
	for _, l := range lines {
		for _, points := range s.runs(x, l) {
			drawn, err := plotter.NewLine(points)
			if err != nil {
				return picture{}, err
			}
			drawn.LineStyle = l.style()
			if l.stepped {
				drawn.StepStyle = plotter.PostStep
			}
			p.Add(drawn)
		}
		if l.name != "" {
			named++
			p.Legend.Add(l.name, &plotter.Line{LineStyle: l.style()})
		}
	}
	p.X.Min, p.X.Max = float64(s.From.Unix()), float64(s.Upto.Unix())
	p.Y.Min, p.Y.Max = 0, max(p.Y.Max, 1e-9)*(1.1+0.07*float64(named))
	url, err := render(p)
	return picture{URL: url}, err
}

// runs are the unbroken parts of a line, the last of which ends where the time does.
func (s *ServersReport) runs(x *SiteServers, l line) (out []plotter.XYs) {
	var run plotter.XYs
	end := func(at time.Time) {
		if len(run) > 0 {
			out, run = append(out, append(run, plotter.XY{X: float64(at.UnixMicro()) / 1e6, Y: run[len(run)-1].Y})), nil
		}
	}
	for i := range x.Series {
		at := x.Series[i].Start
		if math.IsNaN(l.values[i]) {
			end(at)
			continue
		}
		run = append(run, plotter.XY{X: float64(at.UnixMicro()) / 1e6, Y: l.values[i]})
	}
	end(s.Upto)
	return out
}

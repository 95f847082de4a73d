package report

import (
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"penstock/schemas/control"
)

// maxDrawn bounds the links that are drawn, and the coders; report.json has all.
const maxDrawn = 12

// plots draws of each link that moved most its shares over time and, beside it, the
// delays of the sites that it called.
func (s *SplitReport) plots() ([]picture, error) {
	var out []picture
	for i := range s.Links {
		l := &s.Links[i]
		if !l.drawn {
			continue
		}
		name := fmt.Sprintf("%s at %s → %s", l.From, l.FromSite, l.To)
		shares, err := s.draw(name+": shares", "% of calls", l.shareRuns(s.upto), 100)
		if err != nil {
			return nil, err
		}
		shares.Caption = fmt.Sprintf("By site, as ordered; %d changes after the first table.", l.Changes)
		delays, err := s.draw(name+": delay", "ms", l.delayRuns(), 0)
		if err != nil {
			return nil, err
		}
		delays.Caption = "Mean of a window's calls by the site called, network and service, as recorded."
		out = append(out, shares, delays)
	}
	return out, nil
}

// runs are the unbroken lines of a site.
type runs struct {
	site  string
	lines []plotter.XYs
}

// shareRuns is the share of each site that ever had one.
func (l *SplitLink) shareRuns(upto time.Time) []runs {
	var out []runs
	for _, p := range l.Series {
		for _, r := range p.Shares {
			if r.Share > 0 && !slices.ContainsFunc(out, func(x runs) bool { return x.site == r.Site }) {
				out = append(out, runs{site: r.Site})
			}
		}
	}
	for i := range out {
		var line plotter.XYs
		for _, p := range l.Series {
			share := 0.0
			if k := slices.IndexFunc(p.Shares, func(r control.SplitRatio) bool { return r.Site == out[i].site }); k >= 0 {
				share = p.Shares[k].Share
			}
			line = append(line, plotter.XY{X: float64(p.Window.Unix()), Y: 100 * share})
		}
		last := line[len(line)-1]
		out[i].lines = []plotter.XYs{append(line, plotter.XY{X: max(last.X, float64(upto.Unix())), Y: last.Y})}
	}
	return out
}

// delayRuns is the delay of each site that was called, with gaps where it was not.
func (l *SplitLink) delayRuns() []runs {
	var out []runs
	for _, c := range l.Calls {
		points := l.delays[c.Site]
		if len(points) == 0 {
			continue
		}
		least := leastGap(points)
		x := runs{site: c.Site}
		var line plotter.XYs
		n := (len(points) + maxPoints - 1) / maxPoints
		for i := 0; i < len(points); i += n {
			some := points[i:min(i+n, len(points))]
			var sum float64
			for _, p := range some {
				sum += p.ms
			}
			if i > 0 && points[i].start-points[i-1].start > 3*least {
				x.lines, line = append(x.lines, line), nil
			}
			line = append(line, plotter.XY{X: float64(some[0].start) / 1e6, Y: sum / float64(len(some))})
		}
		x.lines = append(x.lines, line)
		out = append(out, x)
	}
	return out
}

// leastGap is the least time (µs) between two windows with calls.
func leastGap(points []delayPoint) int64 {
	least := int64(1) << 62
	for i := 1; i < len(points); i++ {
		least = min(least, points[i].start-points[i-1].start)
	}
	return least
}

// draw renders the lines of sites over time.
func (s *SplitReport) draw(title, y string, all []runs, top float64) (picture, error) {
	p := plot.New()
	style(p)
	p.Y.Label.Text = y
	p.X.Tick.Marker = plot.TickerFunc(splitTicks)
	for _, x := range all {
		c := curve{name: x.site, colour: siteColour(max(0, slices.Index(s.sites, x.site)))}
		for _, points := range x.lines {
			line, err := plotter.NewLine(points)
			if err != nil {
				return picture{}, fmt.Errorf("%s: %w", title, err)
			}
			line.LineStyle = c.style()
			if top > 0 {
				line.StepStyle = plotter.PostStep
			}
			p.Add(line)
		}
		p.Legend.Add(x.site, &plotter.Line{LineStyle: c.style()})
	}
	p.X.Min, p.X.Max = float64(s.from.Unix()), float64(s.upto.Unix())
	p.Y.Min, p.Y.Max = 0, max(p.Y.Max, top, 1e-9)*(1.1+0.07*float64(len(all)))
	url, err := render(p)
	return picture{Title: title, URL: url}, err
}

// splitTicks marks round times, of seconds and minutes too.
func splitTicks(least, most float64) []plot.Tick {
	if most-least > 6*3600 {
		return timeTicks(least, most)
	}
	step, format := int64(1), "15:04:05"
	for _, s := range []int64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600} {
		step = s
		if (most-least)/float64(s) <= 8 {
			break
		}
	}
	if step >= 60 {
		format = "15:04"
	}
	var out []plot.Tick
	for t := (int64(least) + step - 1) / step * step; float64(t) <= most; t += step {
		label := time.Unix(t, 0).UTC().Format(format)
		if len(out) == 0 {
			label = time.Unix(t, 0).UTC().Format("Jan 2 " + format)
		}
		out = append(out, plot.Tick{Value: float64(t), Label: label})
	}
	return out
}

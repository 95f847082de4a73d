package report

import (
	"bytes"
	"encoding/base64"
	"html/template"
	"image/color"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// picture is one plot, embedded in the page.
type picture struct {
	Title string
	URL   template.URL
}

// Colours that stay apart for readers with any kind of colour vision (Okabe
// and Ito).
var palette = []color.RGBA{
	{0, 114, 178, 255},
	{230, 159, 0, 255},
	{0, 158, 115, 255},
	{204, 121, 167, 255},
	{213, 94, 0, 255},
	{86, 180, 233, 255},
	{240, 228, 66, 255},
	{0, 0, 0, 255},
}

// plots draws traffic against capacity by site, moves, bytes moved, and the
// sites over capacity.
func (r *Report) plots() ([]picture, error) {
	if len(r.Windows) == 0 {
		return nil, nil
	}
	var out []picture
	add := func(title, y string, draw func(p *plot.Plot) error) error {
		p := plot.New()
		p.Title.Text, p.Y.Label.Text = title, y
		p.X.Tick.Marker = plot.TickerFunc(timeTicks)
		p.Legend.Top = true
		p.Y.Min = 0
		p.Add(plotter.NewGrid())
		if err := draw(p); err != nil {
			return err
		}
		// Room above the curves for the legend.
		p.Y.Max *= 1.3
		pic, err := render(p)
		out = append(out, pic)
		return err
	}
	if err := add("traffic by site (dashed: capacity)", "MB a window", r.drawTraffic); err != nil {
		return nil, err
	}
	if err := add("moves", "owners a window", func(p *plot.Plot) error {
		return r.drawLine(p, "", 0, func(w WindowReport) float64 { return float64(w.Moves) })
	}); err != nil {
		return nil, err
	}
	if err := add("bytes moved", "MB a window", func(p *plot.Plot) error {
		return r.drawLine(p, "", 1, func(w WindowReport) float64 { return float64(w.Bytes) / 1e6 })
	}); err != nil {
		return nil, err
	}
	if err := add("latency delay", "ms, mean of a window", r.drawLatency); err != nil {
		return nil, err
	}
	if r.Moves.EgressUSD == 0 {
		return out, nil
	}
	sum := 0.0
	err := add("egress of moves", "US dollars so far", func(p *plot.Plot) error {
		return r.drawLine(p, "", 4, func(w WindowReport) float64 { sum += w.Egress; return sum })
	})
	return out, err
}

// timeTicks marks round times: whole hours, days or weeks, at most ten.
func timeTicks(least, most float64) []plot.Tick {
	const hour = 3600
	step, format := int64(hour), "15:04"
	for _, s := range []int64{hour, 3 * hour, 6 * hour, 12 * hour, 24 * hour, 7 * 24 * hour, 28 * 24 * hour, 84 * 24 * hour, 364 * 24 * hour} {
		step = s
		if (most-least)/float64(s) <= 8 {
			break
		}
	}
	if step >= 24*hour {
		format = "2006-01-02"
	}
	var out []plot.Tick
	for t := int64(least) / step * step; float64(t) <= most; t += step {
		if float64(t) < least {
			continue
		}
		at := time.Unix(t, 0).UTC()
		label := at.Format(format)
		if format == "15:04" && (at.Hour() == 0 || len(out) == 0) {
			label = at.Format("Jan 2 15:04")
		}
		out = append(out, plot.Tick{Value: float64(t), Label: label})
	}
	return out
}

func (r *Report) drawLatency(p *plot.Plot) error {
	for i, name := range strategyNames {
		last := 0.0
		err := r.drawLine(p, name, i, func(w WindowReport) float64 {
			if v, ok := w.Latency[name]; ok {
				last = v
			}
			return last
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Report) drawTraffic(p *plot.Plot) error {
	for i, s := range r.Sites {
		if err := r.drawLine(p, s.Name, i, func(w WindowReport) float64 { return float64(w.Traffic[s.Name]) / 1e6 }); err != nil {
			return err
		}
		if s.Capacity == 0 {
			continue
		}
		first, last := r.Windows[0].Start, r.Windows[len(r.Windows)-1].End
		ca := float64(s.Capacity) / 1e6
		line, err := plotter.NewLine(plotter.XYs{{X: float64(first.Unix()), Y: ca}, {X: float64(last.Unix()), Y: ca}})
		if err != nil {
			return err
		}
		line.Color = palette[i%len(palette)]
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		p.Add(line)
	}
	return nil
}

func (r *Report) drawLine(p *plot.Plot, name string, colour int, value func(WindowReport) float64) error {
	points := make(plotter.XYs, 0, len(r.Windows)+1)
	for _, w := range r.Windows {
		points = append(points, plotter.XY{X: float64(w.Start.Unix()), Y: value(w)})
	}
	last := points[len(points)-1]
	points = append(points, plotter.XY{X: float64(r.Windows[len(r.Windows)-1].End.Unix()), Y: last.Y})
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color = palette[colour%len(palette)]
	line.Width = vg.Points(1.4)
	line.StepStyle = plotter.PostStep
	p.Add(line)
	if name != "" {
		p.Legend.Add(name, line)
	}
	return nil
}

func render(p *plot.Plot) (picture, error) {
	c := vgsvg.New(vg.Points(560), vg.Points(300))
	p.Draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return picture{}, err
	}
	url := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(b.Bytes())
	return picture{Title: p.Title.Text, URL: template.URL(url)}, nil //nolint:gosec // Our own drawing, in base64.
}

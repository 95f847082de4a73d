package report

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html/template"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// picture is one plot, embedded in the page.
type picture struct {
	Title, Caption string
	URL            template.URL
}

// Colours that stay apart for readers with any kind of colour vision (Okabe
// and Ito), the strongest first.
var palette = []color.RGBA{
	{0, 114, 178, 255},
	{120, 120, 120, 255},
	{230, 159, 0, 255},
	{0, 158, 115, 255},
	{204, 121, 167, 255},
	{213, 94, 0, 255},
	{86, 180, 233, 255},
	{0, 0, 0, 255},
}

var (
	ink   = color.RGBA{29, 39, 51, 255}
	faint = color.RGBA{107, 119, 133, 255}
	grid  = color.RGBA{226, 231, 236, 255}
)

// maxPoints bounds the points of a line: of more windows, consecutive ones
// are drawn as one.
const maxPoints = 600

// curve is a line of a plot: a value a window, NaN where it is unknown.
type curve struct {
	name   string
	colour int
	dashed bool
	values []float64
}

// joining says how several windows are drawn as one.
type joining int

const (
	mean joining = iota
	greatest
	last // of sums so far
)

// plots draws traffic against capacity and, by strategy, latency delays, the
// busiest site, moves, bytes and money.
func (r *Report) plots() ([]picture, error) {
	if len(r.Windows) == 0 {
		return nil, nil
	}
	all := r.compared()
	var out []picture
	for _, p := range []struct {
		title, caption, y string
		how               joining
		curves            []curve
	}{
		{"Traffic by site", "As served by " + all[0].Name + "; dashed: the site's capacity.", "MB a window", greatest, r.trafficCurves()},
		{
			"Latency delay", "Mean of a window's located requests.", "ms", mean,
			curvesOf(all, func(f *Figures) []float64 { return floats(f.Series.Latency) }),
		},
		{
			"Execution delay", "Part of a window's traffic that a site could not serve at once, mean over sites.", "part of a window", mean,
			curvesOf(all, func(f *Figures) []float64 { return floats(f.Series.Execution) }),
		},
		{"The busiest site", "The greatest traffic of a site against its capacity; dashed: 100 %.", "% of capacity", greatest, r.busiest(all)},
		{
			"Moves", "Owners whose data moves at the end of a window.", "owners a window", mean,
			curvesOf(all, func(f *Figures) []float64 { return ints(f.Series.Moved) }),
		},
		{
			"Bytes between sites", "Moved data and copies of writes, so far.", "MB so far", last,
			curvesOf(all, func(f *Figures) []float64 { return soFar(ints(f.Series.BytesMoved), 1e-6) }),
		},
		{
			"Money between sites", "Egress of moved data and copies of writes, so far.", "US dollars so far", last,
			curvesOf(all, func(f *Figures) []float64 { return soFar(floats(f.Series.EgressUSD), 1) }),
		},
		{"Money in all", "Egress between sites and to users, so far.", "US dollars so far", last, money(all)},
	} {
		if len(p.curves) == 0 {
			continue
		}
		pic, err := r.draw(p.title, p.y, p.how, p.curves)
		if err != nil {
			return nil, err
		}
		pic.Caption = p.caption
		if n := r.joined(); n > 1 {
			pic.Caption += fmt.Sprintf(" %s of %d windows a step.", map[joining]string{mean: "Mean", greatest: "Greatest", last: "Last"}[p.how], n)
		}
		out = append(out, pic)
	}
	return out, nil
}

// curvesOf returns a curve for each strategy of which the figure is known.
func curvesOf(all []compared, of func(*Figures) []float64) []curve {
	var out []curve
	for i, s := range all {
		if v := of(s.Figures); len(v) > 0 {
			out = append(out, curve{name: s.Name, colour: i, values: v})
		}
	}
	return out
}

func floats(s []Figure) []float64 {
	var out []float64
	for _, f := range s {
		out = append(out, float64(f))
	}
	return out
}

func ints[T int | int64](s []T) []float64 {
	var out []float64
	for _, n := range s {
		out = append(out, float64(n))
	}
	return out
}

// soFar returns the sums up to each value, in other units.
func soFar(s []float64, unit float64) []float64 {
	sum := 0.0
	for i, v := range s {
		sum += v
		s[i] = sum * unit
	}
	return s
}

// money returns what each strategy has cost so far, moves and serving.
func money(all []compared) []curve {
	return curvesOf(all, func(f *Figures) []float64 {
		if f.Series.EgressUSD == nil || f.Series.ServingUSD == nil {
			return nil
		}
		sum := floats(f.Series.ServingUSD)
		for i, usd := range f.Series.EgressUSD {
			sum[i] += float64(usd)
		}
		return soFar(sum, 1)
	})
}

// trafficCurves returns the traffic of each site, and its capacity.
func (r *Report) trafficCurves() []curve {
	var out []curve
	for i, s := range r.Sites {
		traffic := make([]float64, len(r.Windows))
		for w := range r.Windows {
			traffic[w] = float64(r.Windows[w].Traffic[s.Name]) / 1e6
		}
		out = append(out, curve{name: s.Name, colour: siteColour(i), values: traffic})
		if s.Capacity > 0 {
			out = append(out, curve{colour: siteColour(i), dashed: true, values: level(float64(s.Capacity)/1e6, len(r.Windows))})
		}
	}
	return out
}

// siteColour passes over the grey of what was.
func siteColour(i int) int {
	if i > 0 {
		i++
	}
	return i
}

func level(v float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// busiest returns by strategy the greatest traffic of a site against its
// capacity, in percent.
func (r *Report) busiest(all []compared) []curve {
	out := curvesOf(all, func(f *Figures) []float64 {
		var v []float64
		for _, s := range r.Sites {
			for w, t := range f.Series.Traffic[s.Name] {
				if len(v) <= w {
					v = append(v, 0)
				}
				if s.Capacity > 0 {
					v[w] = max(v[w], 100*float64(t)/float64(s.Capacity))
				}
			}
		}
		return v
	})
	limited := false
	for _, s := range r.Sites {
		limited = limited || s.Capacity > 0
	}
	if !limited {
		return nil
	}
	return append(out, curve{colour: len(palette) - 1, dashed: true, values: level(100, len(r.Windows))})
}

// joined is how many windows are drawn as one.
func (r *Report) joined() int { return (len(r.Windows) + maxPoints - 1) / maxPoints }

// steps turns a curve into runs of points, in order of time; where a value is
// unknown there is a gap.
func (r *Report) steps(c curve, how joining) []plotter.XYs {
	var out []plotter.XYs
	var run plotter.XYs
	n := r.joined()
	end := func(x float64) {
		if len(run) > 0 {
			run = append(run, plotter.XY{X: x, Y: run[len(run)-1].Y})
			out, run = append(out, run), nil
		}
	}
	for from := 0; from < len(c.values); from += n {
		x := float64(r.Windows[from].Start.Unix())
		if from > 0 && n == 1 && how != last && !c.dashed && r.Windows[from].Start.After(r.Windows[from-1].End) {
			end(float64(r.Windows[from-1].End.Unix())) // No window in between.
		}
		v, known := join(c.values[from:min(from+n, len(c.values))], how)
		if !known {
			end(x)
			continue
		}
		run = append(run, plotter.XY{X: x, Y: v})
	}
	end(float64(r.Windows[len(r.Windows)-1].End.Unix()))
	return out
}

func join(values []float64, how joining) (v float64, known bool) {
	n := 0
	for _, x := range values {
		if math.IsNaN(x) {
			continue
		}
		switch {
		case n == 0 || how == last:
			v = x
		case how == greatest:
			v = max(v, x)
		default:
			v += x
		}
		n++
	}
	if how == mean && n > 0 {
		v /= float64(n)
	}
	return v, n > 0
}

// draw renders curves over the windows' time.
func (r *Report) draw(title, y string, how joining, curves []curve) (picture, error) {
	p := plot.New()
	style(p)
	p.Y.Label.Text = y
	p.Y.Min = 0
	for i := len(curves) - 1; i >= 0; i-- { // The first lies on top.
		if err := r.add(p, curves[i], how); err != nil {
			return picture{}, fmt.Errorf("%s: %w", title, err)
		}
	}
	names := 0
	for _, c := range curves {
		if c.name != "" {
			names++
			p.Legend.Add(c.name, &plotter.Line{LineStyle: c.style()})
		}
	}
	// Room above the curves for the legend.
	p.Y.Max = max(p.Y.Max, 1e-9) * (1.1 + 0.07*float64(names))
	url, err := render(p)
	return picture{Title: title, URL: url}, err
}

func (r *Report) add(p *plot.Plot, c curve, how joining) error {
	for _, run := range r.steps(c, how) {
		line, err := plotter.NewLine(run)
		if err != nil {
			return err
		}
		line.LineStyle, line.StepStyle = c.style(), plotter.PostStep
		p.Add(line)
	}
	return nil
}

func (c curve) style() draw.LineStyle {
	s := draw.LineStyle{Color: palette[c.colour%len(palette)], Width: vg.Points(1.3)}
	switch {
	case c.dashed:
		s.Width, s.Dashes = vg.Points(1), []vg.Length{vg.Points(4), vg.Points(3)}
	case c.colour == 0:
		s.Width = vg.Points(2)
	}
	return s
}

// style makes a plot look like the page.
func style(p *plot.Plot) {
	p.BackgroundColor = color.White
	lines := plotter.NewGrid()
	lines.Vertical.Color, lines.Horizontal.Color = grid, grid
	p.Add(lines)
	p.Legend.Top = true
	p.Legend.Left = true
	p.Legend.TextStyle.Color = ink
	p.Legend.TextStyle.Font.Size, p.Legend.TextStyle.Font.Variant = vg.Points(9), "Sans"
	p.Legend.ThumbnailWidth = vg.Points(14)
	p.Legend.Padding = vg.Points(1)
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(6), vg.Points(-4)
	p.X.Tick.Marker = plot.TickerFunc(timeTicks)
	p.Y.Tick.Marker = plot.TickerFunc(roundTicks)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Color, a.Tick.Color = faint, faint
		a.Label.TextStyle.Color, a.Tick.Label.Color = faint, faint
		a.Label.TextStyle.Font.Size, a.Tick.Label.Font.Size = vg.Points(9), vg.Points(9)
		a.Label.TextStyle.Font.Variant, a.Tick.Label.Font.Variant = "Sans", "Sans"
	}
}

func render(p *plot.Plot) (template.URL, error) {
	c := vgsvg.New(vg.Points(430), vg.Points(240))
	p.Draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return "", err
	}
	url := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(b.Bytes())
	return template.URL(url), nil //nolint:gosec // Our own drawing, in base64.
}

package report

import (
	"fmt"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"penstock/consumers/panes"
	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// codeSums are the requests of a window, by their tasks.
type codeSums struct{ requests, n, k float64 }

func (c *codeSums) mean() MeanCode {
	if c.requests == 0 {
		return MeanCode{}
	}
	return MeanCode{Requests: rounded(c.requests), N: rounded(c.n / c.requests), K: rounded(c.k / c.requests)}
}

// Watch takes in the tasks of a closed window of the group fast; it is for
// WriteMatrices.
func (s *Codings) Watch(w *panes.Window) {
	if s == nil {
		return
	}
	t := w.Tables[window.Storage.Name]
	if t == nil {
		return
	}
	stores, opsOf, ns, ks, outcomes := t.Key("store"), t.Key("op"), t.Key("n"), t.Key("k"), t.Key("outcome")
	tasks, gauges, backlog, most := t.Column("tasks"), t.Column("gauges"), t.Column("backlog"), t.Column("backlog_most")
	sums := make(map[*CoderReport]*[2]codeSums, len(s.coders))
	waiting := map[*CoderReport]Figure{}
	for i := range t.Len() {
		if opsOf.At(i) == "" {
			if x := s.coders[stores.At(i)]; x != nil && gauges[i] > 0 {
				waiting[x] = Figure(rounded(float64(backlog[i]) / float64(gauges[i])))
				x.see(gauges[i], backlog[i], most[i])
			}
			continue
		}
		x := s.stores[stores.At(i)]
		n, errN := strconv.Atoi(ns.At(i))
		k, errK := strconv.Atoi(ks.At(i))
		if x == nil || errN != nil || errK != nil || k < 1 || n < k {
			continue // The decision's reasons count them.
		}
		x.cells[codeKey{opsOf.At(i), n, k, outcomes.At(i)}] += tasks[i]
		if sums[x] == nil {
			sums[x] = new([2]codeSums)
		}
		c := &sums[x][0]
		if opsOf.At(i) == event.Write.String() {
			c = &sums[x][1]
		}
		of := float64(tasks[i]) / float64(n)
		c.requests += of
		c.n += float64(tasks[i])
		c.k += float64(of * float64(k))
	}
	for i := range s.report.Coders {
		x := &s.report.Coders[i]
		c, q := sums[x], waiting[x]
		if c == nil {
			continue
		}
		if _, ok := waiting[x]; !ok {
			q = Unknown()
		}
		x.Series = append(x.Series, CodePoint{Window: time.UnixMicro(w.End).UTC(), Read: c[0].mean(), Write: c[1].mean(), Backlog: q})
	}
}

// see takes in what a queue said.
func (x *CoderReport) see(gauges, sum, most int64) {
	if x.Backlog == nil {
		x.Backlog = new(BacklogSeen)
	}
	x.Backlog.gauges += gauges
	x.Backlog.sum += sum
	x.Backlog.Most = max(x.Backlog.Most, most)
}

// plots draws the codes of each coder over time.
func (s *CodingReport) plots() ([]picture, error) {
	var out []picture
	for i := range s.Coders {
		x := &s.Coders[i]
		if len(x.Series) == 0 || len(out) == maxDrawn {
			continue
		}
		p, err := x.plot()
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// plot draws the mean n and k of a coder's reads and writes.
func (x *CoderReport) plot() (picture, error) {
	p := plot.New()
	style(p)
	p.Y.Label.Text = "chunks"
	p.X.Tick.Marker = plot.TickerFunc(splitTicks)
	lines := []struct {
		name  string
		value func(*CodePoint) (of MeanCode, v float64)
	}{
		{"reads, k", func(c *CodePoint) (MeanCode, float64) { return c.Read, c.Read.K }},
		{"reads, n", func(c *CodePoint) (MeanCode, float64) { return c.Read, c.Read.N }},
		{"writes, k", func(c *CodePoint) (MeanCode, float64) { return c.Write, c.Write.K }},
		{"writes, n", func(c *CodePoint) (MeanCode, float64) { return c.Write, c.Write.N }},
	}
	drawn := 0
	for at, l := range lines {
		points := x.thinned(l.value)
		if len(points) == 0 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return picture{}, fmt.Errorf("%s: %w", x.Name, err)
		}
		line.LineStyle = curve{colour: siteColour(at)}.style()
		p.Add(line)
		p.Legend.Add(l.name, line)
		drawn++
	}
	p.X.Min, p.X.Max = float64(x.Series[0].Window.Unix()), float64(x.Series[len(x.Series)-1].Window.Unix())
	p.Y.Min, p.Y.Max = 0, max(p.Y.Max, 1)*(1.1+0.07*float64(drawn))
	url, err := render(p)
	return picture{Title: x.Name + ": codes", Caption: "Mean over the requests of a window, by their tasks, as recorded.", URL: url}, err
}

// thinned are the points of a line, several windows as one where there are many.
func (x *CoderReport) thinned(value func(*CodePoint) (MeanCode, float64)) (out plotter.XYs) {
	n := (len(x.Series) + maxPoints - 1) / maxPoints
	for i := 0; i < len(x.Series); i += n {
		var weight, sum float64
		for j := i; j < min(i+n, len(x.Series)); j++ {
			of, v := value(&x.Series[j])
			weight += of.Requests
			sum += float64(v * of.Requests)
		}
		if weight > 0 {
			out = append(out, plotter.XY{X: float64(x.Series[i].Window.Unix()), Y: sum / weight})
		}
	}
	return out
}

// LimitText writes thresholds in brief.
func LimitText(c control.CodingCodes) string {
	return fmt.Sprintf("k by backlog below %s; n below %s; n/k at most %s%s", backlogs(c.K), backlogs(c.N), trimmed(c.RMax), hedgeText(c.HedgeUS))
}

func hedgeText(us int64) string {
	if us == 0 {
		return ""
	}
	return fmt.Sprintf("; the chunks beyond k after %v", time.Duration(us)*time.Microsecond)
}

// backlogs writes a list of thresholds.
func backlogs(h []float64) string {
	out := "["
	for i, x := range h {
		if i > 0 {
			out += " "
		}
		switch {
		case x >= control.MaxBacklog:
			out += "∞"
		case x >= 100:
			out += strconv.FormatFloat(x, 'f', 0, 64)
		default:
			out += strconv.FormatFloat(x, 'g', 3, 64)
		}
	}
	return out + "]"
}

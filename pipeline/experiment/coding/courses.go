package coding

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"penstock/pipeline/experiment/coding/simcoder"
	"penstock/pipeline/report"
)

// Moment is one bin of time of a load that changes, over all seeds.
type Moment struct {
	Seconds float64       `json:"seconds"` // of the bin's beginning
	Load    report.Figure `json:"load_percent"`
	K       report.Figure `json:"k"`
	N       report.Figure `json:"n"`
	Backlog report.Figure `json:"backlog"`
	Delay   report.Figure `json:"mean_ms"` // of requests answered then
	// LongRun is the mean k at that load in the long run; of the ramp only.
	LongRun report.Figure `json:"long_run_k"`
}

// StepResult is how long it takes from a step to the new point.
type StepResult struct {
	Policy string `json:"policy"`
	Step
	KLow  report.Figure `json:"k_at_low"` // in the long run
	KHigh report.Figure `json:"k_at_high"`
	// Up and Down are seconds from the step to the new point; unknown if it was not
	// reached before the load changed again.
	Up   report.Figure `json:"up_seconds"`
	Down report.Figure `json:"down_seconds"`
	// Most is the greatest mean backlog of a bin.
	Most   report.Figure `json:"most_backlog"`
	Course []Moment      `json:"course"`
}

// courses runs tofec at the first store under steps and a ramp, with its backlog averaged
// over time and over arrivals.
func (w *work) courses(ctx context.Context) error {
	for _, name := range []string{TOFEC, ByArrivals} {
		if err := w.course(ctx, &w.Stores[0], w.Stores[0].site.arm(name)); err != nil {
			return fmt.Errorf("course of %s: %w", name, err)
		}
	}
	return nil
}

// course runs a policy under each step, and tofec under the ramp.
func (w *work) course(ctx context.Context, r *StoreResult, a *arm) error {
	c := &w.params.Course
	longRun, err := w.longRun(ctx, r, a)
	if err != nil {
		return err
	}
	rates := make([]simcoder.Rate, 0, len(c.Steps)+1)
	for _, s := range c.Steps {
		rates = append(rates, s.rate(c.Hold, r.site.capacity))
	}
	rates = append(rates, c.Ramp.rate(r.site.capacity))
	if a.name != TOFEC {
		rates = rates[:len(c.Steps)]
	}
	outs := make([]*simcoder.Outcome, len(rates)*c.Seeds)
	if err := w.each(ctx, len(outs), 0, func(i int) error {
		o, err := w.params.options(r.site, a, w.FirstSeed+uint64(i%c.Seeds))
		if err != nil {
			return err
		}
		o.Rate, o.Bin = rates[i/c.Seeds], c.Bin
		o.Until = o.Rate[len(o.Rate)-1].At
		outs[i], err = simcoder.Run(ctx, o)
		return err
	}); err != nil {
		return err
	}
	for i, s := range c.Steps {
		course := moments(outs[i*c.Seeds:(i+1)*c.Seeds], c.Bin, rates[i], r.site.capacity)
		x := StepResult{Policy: a.name, Step: s, KLow: longRun[s.Low], KHigh: longRun[s.High], Course: course}
		x.Up = c.reached(course, c.Hold, 2*c.Hold, x.KHigh)
		x.Down = c.reached(course, 2*c.Hold, 3*c.Hold, x.KLow)
		for _, m := range course {
			x.Most = max(x.Most, m.Backlog)
		}
		w.Steps = append(w.Steps, x)
	}
	if len(rates) > len(c.Steps) {
		w.Ramp = moments(outs[len(c.Steps)*c.Seeds:], c.Bin, rates[len(c.Steps)], r.site.capacity)
		for i := range w.Ramp {
			w.Ramp[i].LongRun = between(longRun, float64(w.Ramp[i].Load))
		}
	}
	return nil
}

// arm is the site's of that name, nil if there is none.
func (s *site) arm(name string) *arm {
	i := slices.IndexFunc(s.arms, func(a arm) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	return &s.arms[i]
}

// longRun is the mean k at each load of a step, and at those of points.
func (w *work) longRun(ctx context.Context, r *StoreResult, a *arm) (map[int]report.Figure, error) {
	out := map[int]report.Figure{}
	for _, p := range r.Points {
		if p.Policy == a.name {
			var k report.Figure
			for i, share := range p.K {
				k += report.Figure(float64(i+1) * float64(share))
			}
			out[p.Load] = rounded(float64(k))
		}
	}
	var pieces []piece
	for _, s := range w.params.Course.Steps {
		for _, load := range []int{s.Low, s.High} {
			if _, ok := out[load]; !ok {
				out[load] = report.Unknown()
				pieces = append(pieces, piece{store: r, arm: a, load: load})
			}
		}
	}
	err := w.pieces(ctx, pieces, 0, func(x *piece, seed uint64) (simcoder.Options, error) {
		o, err := w.params.options(r.site, a, seed)
		o.Rate = simcoder.Steady(float64(x.load) / 100 * r.site.capacity)
		return o, err
	})
	for i := range pieces {
		out[pieces[i].load] = over(pieces[i].outs, func(o *simcoder.Outcome) float64 {
			var sum float64
			for k, n := range o.K {
				sum += float64(k) * float64(n)
			}
			return sum / float64(o.Requests)
		}).Value
	}
	return out, err
}

// between is the value at x of a line through known points; that of the nearest beyond
// them.
func between(known map[int]report.Figure, x float64) report.Figure {
	low, high := -1, -1
	for at := range known {
		if float64(at) <= x && (low < 0 || at > low) {
			low = at
		}
		if float64(at) >= x && (high < 0 || at < high) {
			high = at
		}
	}
	switch {
	case low < 0 && high < 0:
		return report.Unknown()
	case low < 0:
		return known[high]
	case high < 0 || high == low:
		return known[low]
	}
	part := (x - float64(low)) / float64(high-low)
	return rounded(float64(known[low]) + float64(part*float64(known[high]-known[low])))
}

// rate is a step's: low, high and low, each held.
func (s Step) rate(hold time.Duration, capacity float64) simcoder.Rate {
	low, high := float64(s.Low)/100*capacity, float64(s.High)/100*capacity
	return simcoder.Rate{{At: 0, PerSecond: low}, {At: hold, PerSecond: low}, {At: hold, PerSecond: high}, {At: 2 * hold, PerSecond: high}, {At: 2 * hold, PerSecond: low}, {At: 3 * hold, PerSecond: low}}
}

// rate rises and falls.
func (r Ramp) rate(capacity float64) simcoder.Rate {
	low, high := float64(r.Low)/100*capacity, float64(r.High)/100*capacity
	return simcoder.Rate{{At: 0, PerSecond: low}, {At: r.Over, PerSecond: high}, {At: 2 * r.Over, PerSecond: low}}
}

// moments adds up the bins of all seeds.
func moments(outs []*simcoder.Outcome, bin time.Duration, rate simcoder.Rate, capacity float64) []Moment {
	out := make([]Moment, len(outs[0].Course))
	for i := range out {
		var b simcoder.Bin
		for _, o := range outs {
			x := &o.Course[i]
			b.Admitted += x.Admitted
			b.K += x.K
			b.N += x.N
			b.Arrived += x.Arrived
			b.Backlog += x.Backlog
			b.Answered += x.Answered
			b.Delay += x.Delay
		}
		ratio := func(sum float64, of int) report.Figure {
			if of == 0 {
				return report.Unknown()
			}
			return rounded(sum / float64(of))
		}
		at := time.Duration(i) * bin
		out[i] = Moment{
			Seconds: at.Seconds(), Load: rounded(100 * rate.At(at+bin/2) / capacity),
			K: ratio(float64(b.K), b.Admitted), N: ratio(float64(b.N), b.Admitted),
			Backlog: ratio(float64(b.Backlog), b.Arrived), Delay: ratio(b.Delay, b.Answered), LongRun: report.Unknown(),
		}
	}
	return out
}

// reached is how many seconds after `from` the mean k is near the new point and stays
// for a while; unknown if it does not before `to`.
func (c *Course) reached(course []Moment, from, to time.Duration, k report.Figure) report.Figure {
	near := time.Duration(0)
	for i := range course {
		at := time.Duration(i) * c.Bin
		if at < from || at >= to {
			continue
		}
		if !(math.Abs(float64(course[i].K-k)) <= c.Near) {
			near = 0
			continue
		}
		if near += c.Bin; near >= c.Stays {
			return rounded((at + c.Bin - near - from).Seconds())
		}
	}
	return report.Unknown()
}

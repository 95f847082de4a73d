package coding

import (
	"context"

	"penstock/pipeline/experiment/coding/simcoder"
	"penstock/pipeline/experiment/sheet"
	"penstock/pipeline/report"
)

// Reach is whether a figure that is asked for was reached.
type Reach string

// What a figure can come to.
const (
	Held   Reach = "held"
	Missed Reach = "missed"
	// OutOfReach is missed, and no code comes to it: the best that one can come to, of all
	// that were simulated in the same run, is short of it by more than chance.
	OutOfReach Reach = "out of reach of any code"
	// Unasked is a figure that stands beside the others.
	Unasked Reach = ""
)

// Verdict is one figure of the paper beside ours.
type Verdict struct {
	Figure string `json:"figure"`
	Paper  string `json:"paper"`
	Ours   string `json:"ours"`
	// Bound is the best that any code can come to; "" where that is not known.
	Bound   string `json:"bound,omitempty"`
	Reached Reach  `json:"reached"`
	Note    string `json:"note,omitempty"`
}

// Missed are the figures that were asked for, not reached, and not out of reach.
func (r *Result) Missed() []Verdict {
	var out []Verdict
	for _, v := range r.Verdicts {
		if v.Reached == Missed {
			out = append(out, v)
		}
	}
	return out
}

// held is Held, or Missed.
func held(ok bool) Reach {
	if ok {
		return Held
	}
	return Missed
}

// atLeast is whether ours is as great as is asked, where no code comes to more than a bound.
// The bound tells only with its interval: of one seed it tells nothing.
func atLeast(asked float64, ours report.Figure, bound Estimate) Reach {
	switch {
	case float64(ours) >= asked:
		return Held
	case bound.Half.Known() && float64(bound.Value+bound.Half) < asked:
		return OutOfReach
	}
	return Missed
}

// all is the reach of what is asked at several loads: missed if one is that could be
// reached.
func all(of []Reach) Reach {
	out := Held
	if len(of) == 0 {
		return Missed
	}
	for _, r := range of {
		switch r {
		case Missed:
			return Missed
		case OutOfReach:
			out = OutOfReach
		case Held, Unasked:
		}
	}
	return out
}

// Alone is the mean delay of a static code whose requests never meet. A policy takes the
// code of a request before it knows how long its tasks will take, and other requests
// only ever make it later: whatever codes a policy takes, its mean is at least the least
// of these.
type Alone struct {
	Policy string   `json:"policy"`
	Mean   Estimate `json:"mean_ms"`

	means []float64 // by seed
}

// apart is how many times as rare as at full load the arrivals of requests are that don't
// meet: not one in some thousands meets another.
const apart = 1e5

// alone measures each static code of judged stores, with a quarter of the requests.
func (w *work) alone(ctx context.Context) error {
	var pieces []piece
	for i := range w.Stores {
		r := &w.Stores[i]
		for j := range r.site.arms {
			if r.site.Judged && r.site.arms[j].static.K > 0 {
				pieces = append(pieces, piece{store: r, arm: &r.site.arms[j]})
			}
		}
	}
	if err := w.pieces(ctx, pieces, 0, func(x *piece, seed uint64) (simcoder.Options, error) {
		o, err := w.params.options(x.store.site, x.arm, seed)
		o.Rate, o.Requests = simcoder.Steady(x.store.site.capacity/apart), max(1, o.Requests/4)
		return o, err
	}); err != nil {
		return err
	}
	for i := range pieces {
		x := &pieces[i]
		mean := func(o *simcoder.Outcome) float64 { return o.Mean }
		x.store.Alone = append(x.store.Alone, Alone{Policy: x.arm.name, Mean: over(x.outs, mean), means: bySeed(x.outs, mean)})
	}
	return nil
}

// quickest is the code with the least mean of requests that don't meet; nil if there is
// none.
func (s *StoreResult) quickest() *Alone {
	var best *Alone
	for i := range s.Alone {
		if a := &s.Alone[i]; best == nil || a.Mean.Value < best.Mean.Value {
			best = a
		}
	}
	return best
}

// steadiest is the static code with the least standard deviation at a load, of those whose
// mean is at most so many times the best one's: both are asked for at once.
func (s *StoreResult) steadiest(load int, times float64) *Point {
	best := s.bestStatic(load)
	return s.bestOf(load, func(p *Point) bool { return float64(p.Mean.Value) <= times*float64(best.Mean.Value) }, func(p *Point) Estimate { return p.SD })
}

// mostLight is how many times the mean of the throughput-optimal static code any policy's
// can be at most at a load.
func (s *StoreResult) mostLight(load int) Estimate {
	a, b := s.point(s.throughputOptimal(), load), s.quickest()
	if a == nil || b == nil {
		return estimate(nil)
	}
	return ratio(a.means, b.means)
}

// mostHeavy is how many times the capacity of a static code the greatest one of any code is,
// with what both intervals leave open.
func (s *StoreResult) mostHeavy(of string) Estimate {
	a, b := s.capacity(s.throughputOptimal()).PerSecond, s.capacity(of).PerSecond
	times := a.Value / b.Value
	return Estimate{Value: rounded(float64(times)), Half: rounded(float64((a.Value+a.Half)/(b.Value-b.Half) - times))}
}

// verdictTable is the paper's figures beside ours.
func verdictTable(title string, verdicts []Verdict) sheet.Table {
	t := sheet.Table{Title: title, Head: []string{"figure", "paper", "ours", "any code", "reached", "note"}}
	for _, v := range verdicts {
		t.Rows = append(t.Rows, []string{v.Figure, v.Paper, v.Ours, v.Bound, string(v.Reached), v.Note})
	}
	return t
}

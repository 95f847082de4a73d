package coding

import (
	"math"
	"strings"
	"testing"

	"penstock/pipeline/report"
)

// reachOf is the verdict on a figure, by the beginning and the end of its name.
func (r *Result) reachOf(t *testing.T, begin, part string) Verdict {
	t.Helper()
	for _, v := range r.Verdicts {
		if strings.HasPrefix(v.Figure, begin+":") && strings.Contains(v.Figure, part) {
			return v
		}
	}
	t.Fatalf("no verdict on %q of %s", part, begin)
	return Verdict{}
}

// TestReach: what is asked is held, missed, or out of reach by the codes of the same run,
// and what some code reaches and ours doesn't is missed, whatever else is out of reach.
func TestReach(t *testing.T) {
	o := small(t)
	o.Params.only("read")
	o.Seeds, o.Sizes = 4, ""
	r := run(t, o)
	s, targets := &r.Stores[0], &r.params.Targets
	const (
		gain      = "mean of the throughput-optimal"
		carries   = "requests a second carried"
		deviation = "standard deviation of greedy"
	)
	bound := s.mostLight(5)
	ours := s.light(Taught, 5)
	if !(ours.Value < bound.Value) || !bound.Half.Known() {
		t.Fatalf("ours %v, any code %v: the run shows nothing", ours, bound)
	}
	for _, x := range []struct {
		name     string
		ask      *float64
		asked    report.Figure
		figure   string
		reached  Reach
		elsewise string // a figure that must not change with it
	}{
		{"ours comes to it", &targets.Light, ours.Value, gain, Held, carries},
		{"a code may come to it, and ours does not", &targets.Light, (ours.Value + bound.Value) / 2, gain, Missed, carries},
		{"within what chance leaves open", &targets.Light, bound.Value + bound.Half/2, gain, Missed, carries},
		{"no code comes to it", &targets.Light, bound.Value + bound.Half + 0.01, gain, OutOfReach, carries},
		{"no code carries so much", &targets.Heavy, 50, carries, OutOfReach, gain},
		{"no code is so steady", &targets.Deviation, 50, deviation, OutOfReach, gain},
		{"any is so steady", &targets.Deviation, 0.01, deviation, Held, gain},
	} {
		was := *x.ask
		r.judge()
		before := r.reachOf(t, "read, "+Taught, x.elsewise).Reached
		*x.ask = float64(x.asked)
		r.judge()
		if got := r.reachOf(t, "read, "+Taught, x.figure); got.Reached != x.reached || got.Bound == "" {
			t.Errorf("%s: %q, expected %q: %+v", x.name, got.Reached, x.reached, got)
		}
		if got := r.reachOf(t, "read, "+Taught, x.elsewise).Reached; got != before {
			t.Errorf("%s: %q of what else is asked, before it was %q", x.name, got, before)
		}
		for _, v := range r.Missed() {
			if v.Reached != Missed {
				t.Errorf("%s: %+v counts as missed", x.name, v)
			}
		}
		*x.ask = was
	}
	// Whatever the queue, no policy is below the quickest code without one.
	for i := range s.Points {
		p := &s.Points[i]
		if low := s.quickest().Mean; float64(p.Mean.Value) < float64(low.Value-low.Half) {
			t.Errorf("%s at %d %%: %v ms, and no code is quicker than %v", p.Policy, p.Load, p.Mean, low)
		}
	}
}

// TestReachOfSeveral: at several loads one that is missed makes the figure missed, and one
// that is out of reach never makes it held.
func TestReachOfSeveral(t *testing.T) {
	for _, x := range []struct {
		of   []Reach
		want Reach
	}{
		{[]Reach{Held, Held}, Held},
		{[]Reach{Held, OutOfReach}, OutOfReach},
		{[]Reach{OutOfReach, Missed}, Missed},
		{[]Reach{Held, Missed}, Missed},
		{nil, Missed},
	} {
		if got := all(x.of); got != x.want {
			t.Errorf("%v: %q, expected %q", x.of, got, x.want)
		}
	}
	one := Estimate{Value: 1.5, Half: report.Unknown()}
	if got := atLeast(2, 1, one); got != Missed {
		t.Errorf("a bound of one seed makes it %q", got)
	}
	if got := atLeast(2, report.Figure(math.NaN()), estimate(nil)); got != Missed {
		t.Errorf("what is unknown is %q", got)
	}
}

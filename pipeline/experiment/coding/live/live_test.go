package live

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"penstock/pipeline/demo/machine"
)

// seeded is the sweep of CI: fewer requests, of which the tolerances know. The whole one
// counts as many as make coding-live.
func seeded() Options {
	o := Options{
		Seed: 7, Scale: 1, Bytes: 30_000, Objects: 4, Simulated: 10, Near: 0.05, Best: 0.05,
		Loads: []Load{{5, 20, 200}, {20, 200, 250}, {50, 150, 300}, {80, 150, 350}, {90, 150, 400}},
	}
	if os.Getenv("PENSTOCK_WHOLE") != "" {
		o.Loads, o.Bytes, o.Objects, o.Simulated = nil, 0, 0, 0
	}
	return o
}

// TestTheSweepInVirtualTime: the real coder with its catalog on disk, its queue and its
// checksums, at all five loads. Time passes only when all of it waits, so that the
// figures are the same on a slow machine.
func TestTheSweepInVirtualTime(t *testing.T) {
	o := seeded()
	o.Dir = t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		said := 0
		o.Say = func(string, ...any) { said++ }
		r, err := Run(t.Context(), o)
		if r == nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if e := r.Text(&text); e != nil || err != nil {
			t.Errorf("%v, %v:\n%s", err, e, text.String())
		}
		if len(r.Points) != 15 || len(r.Checks) != 25 || len(r.Machine) != 5 || said != 20 {
			t.Errorf("%d points, %d checks, %d loads, %d lines", len(r.Points), len(r.Checks), len(r.Machine), said)
		}
		for _, p := range r.Points {
			if p.Policy != "(12,6)" && p.Refused > 0 {
				t.Errorf("%s refused %d at %d %%", p.Policy, p.Refused, p.Percent)
			}
		}
		// The code follows the load, and static ones don't.
		for _, c := range []struct {
			policy  string
			percent int
			k       int
			least   float64
		}{{"tofec", 5, 6, 0.9}, {"tofec", 90, 1, 0.8}, {"(1,1)", 5, 1, 1}, {"(12,6)", 90, 6, 1}} {
			if got := r.point(c.policy, c.percent).K[c.k-1]; got < c.least {
				t.Errorf("%s at %d %%: %.2f of requests have k = %d", c.policy, c.percent, got, c.k)
			}
		}
		dir := t.TempDir()
		if err := r.Write(dir); err != nil {
			t.Error(err)
		}
		if b, err := os.ReadFile(dir + "/coding-live.html"); err != nil || !bytes.Contains(b, []byte("(12,6)")) {
			t.Errorf("the page has %d bytes: %v", len(b), err)
		}
	})
}

func TestOptionsThatMakeNoRun(t *testing.T) {
	for _, o := range []Options{
		{}, {Dir: "x", Scale: -1}, {Dir: "x", Bytes: 5}, {Dir: "x", Loads: []Load{}}, {Dir: "x", Loads: []Load{{100, 0, 1}}}, {Dir: "x", Near: -1},
	} {
		if _, err := Run(t.Context(), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestARunEndsWithItsContext, and leaves nothing behind.
func TestARunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := seeded()
	o.Dir, o.Simulated = t.TempDir(), 1
	o.Say = func(string, ...any) { cancel() }
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestPlan has as many requests as it says in the time that their rate asks for.
func TestPlan(t *testing.T) {
	p := newPlan(Load{Warm: 50, Requests: 400}, 20, rand.New(rand.NewPCG(1, 2)))
	all := slices.Clone(*p)
	if len(all) != 450 || !slices.IsSorted(all) || all[49] > 2500*time.Millisecond || all[50] < 2500*time.Millisecond || all[449] > 22500*time.Millisecond {
		t.Errorf("%d requests, the 50th at %v, the 51st at %v, the last at %v", len(all), all[49], all[50], all[449])
	}
	// Gaps are spread as those of a Poisson process: as much as their mean.
	var sum, squares float64
	for i := range all[:449] {
		gap := (all[i+1] - all[i]).Seconds()
		sum, squares = sum+gap, squares+gap*gap
	}
	mean := sum / 449
	if cv := math.Sqrt(squares/449-mean*mean) / mean; cv < 0.85 || cv > 1.15 {
		t.Errorf("gaps vary by %.2f of their mean", cv)
	}
	for range all {
		if _, ok := p.Next(); !ok {
			t.Fatal("it ends early")
		}
	}
	if _, ok := p.Next(); ok {
		t.Error("it goes on")
	}
}

func TestWrongBytesAreFound(t *testing.T) {
	for text, ok := range map[string]bool{"abcdef": true, "abcdeF": false, "abcdefg": false, "abc": false} {
		c := &comparing{left: []byte("abcdef")}
		_, first := c.Write([]byte(text[:2]))
		_, second := c.Write([]byte(text[2:]))
		if got := first == nil && second == nil && len(c.left) == 0; got != ok {
			t.Errorf("%q: %v, %v, %d left", text, first, second, len(c.left))
		}
	}
}

// good is a result in which everything is as promised.
func good(t *testing.T) *Result {
	t.Helper()
	o, err := Options{Dir: "x", Loads: []Load{{5, 0, 100}, {90, 0, 100}}}.complete()
	if err != nil {
		t.Fatal(err)
	}
	r := o.result()
	for i, mean := range []float64{80, 250, 84, 320, 330, 0} {
		p := &r.Points[i]
		p.Mean, p.Requests, p.Served = mean, 100, p.PerSecond
		s := Simulated{KeepsUp: i != 5, Served: p.PerSecond, K: make([]float64, kMax)}
		s.Mean, p.K = mean, s.K
		if i == 5 {
			p.Served, s.Served, p.Refused = 18, 18.5, 60
		}
		p.Simulated = &s
	}
	r.Machine = []machine.Usage{{When: "5 %", Late: 0.3}, {When: "90 %", Late: 0.3}}
	return r
}

// TestVerdicts: each promise can be broken, and a machine that was the limit makes a run
// void whatever it shows.
func TestVerdicts(t *testing.T) {
	if r := good(t); r.judge() != nil {
		t.Fatalf("%+v", r.Checks)
	}
	for name, c := range map[string]struct {
		change func(*Result)
		want   error
	}{
		"no gain":            {func(r *Result) { r.point("tofec", 5).Mean = 125 }, ErrPromise},
		"tofec refuses":      {func(r *Result) { r.point("tofec", 90).Refused = 1 }, ErrPromise},
		"nothing is refused": {func(r *Result) { r.point("(12,6)", 90).Refused = 0 }, ErrPromise},
		"(12,6) keeps up":    {func(r *Result) { r.point("(12,6)", 90).Served = 30 }, ErrPromise},
		"over the envelope":  {func(r *Result) { r.point("tofec", 90).Mean = 370 }, ErrPromise},
		"another simulation": {func(r *Result) { r.point("(1,1)", 90).Simulated.Mean = 250 }, ErrPromise},
		"a wrong byte":       {func(r *Result) { r.Wrong = []string{"(1,1): wrong bytes"} }, ErrPromise},
		"slow machine":       {func(r *Result) { r.Machine[1].Late = 4 }, ErrVoid},
		"slow and broken":    {func(r *Result) { r.Machine[1].Late, r.Wrong = 4, []string{"x"} }, ErrVoid},
	} {
		r := good(t)
		c.change(r)
		err := r.judge()
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		var text strings.Builder
		if e := r.Text(&text); e != nil || !strings.Contains(text.String(), "kept:") && !strings.Contains(text.String(), "void") {
			t.Errorf("%s: %v, %s", name, e, text.String())
		}
	}
	// By chance a mean may lie farther off.
	r := good(t)
	p := r.point("tofec", 90)
	p.Mean, p.Simulated.Error = 370, 40
	if err := r.judge(); err != nil {
		t.Error(err)
	}
}

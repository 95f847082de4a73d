package simcoder_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"penstock/consumers/decider/coding/threshold"
	"penstock/consumers/executor/coder/queue"
	"penstock/pipeline/experiment/coding/delays"
	"penstock/pipeline/experiment/coding/simcoder"
)

// paper is the setting of PAPERS §3.3.
var paper = threshold.Limits{Connections: 16, SizeMB: 3, KMax: 6, NMax: 12, RMax: 2}

func lawOf(m threshold.Model) delays.Law {
	return delays.Law{Kind: delays.Exponential, Delta: m.Delta, DeltaPerMB: m.DeltaPerMB, Psi: m.Psi, PsiPerMB: m.PsiPerMB}
}

// options are those of the paper's setting under one code.
func options(n, k int, perSecond float64) simcoder.Options {
	return simcoder.Options{
		Seed: 1, Connections: 16, Chooser: queue.Fixed{N: n, K: k}, Law: lawOf(threshold.DefaultRead),
		Bytes: []int64{3_000_000}, Rate: simcoder.Steady(perSecond), Warm: 1000, Requests: 10_000,
	}
}

func run(t testing.TB, o simcoder.Options) *simcoder.Outcome {
	t.Helper()
	out, err := simcoder.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func near(got, want, share float64) bool { return math.Abs(got-want) <= share*math.Abs(want) }

// TestWithoutAQueue: a request that never waits takes S(n,k), and holds U(n,k) of the
// connections (PAPERS §3.3).
func TestWithoutAQueue(t *testing.T) {
	m := threshold.DefaultRead
	for _, c := range [][2]int{{1, 1}, {2, 1}, {2, 2}, {4, 2}, {6, 3}, {12, 6}} {
		const perSecond = 0.5
		out := run(t, options(c[0], c[1], perSecond))
		if s := m.Service(3, c[0], c[1]); !near(out.Mean, s, 0.02) {
			t.Errorf("(%d,%d): %.2f ms, expected S %.2f", c[0], c[1], out.Mean, s)
		}
		if u := m.Usage(3, c[0], c[1]); !near(out.Busy*16/perSecond*1000, u, 0.04) {
			t.Errorf("(%d,%d): %.1f connections × ms a request, expected U %.1f", c[0], c[1], out.Busy*16/perSecond*1000, u)
		}
		if out.Requests != 10_000 || out.Tasks != int64(10_000*c[0]) || out.K[c[1]] != 10_000 || out.N[c[0]] != 10_000 {
			t.Errorf("(%d,%d): %+v", c[0], c[1], out)
		}
		if share, _ := out.Neighbours(); share != 1 {
			t.Errorf("(%d,%d): %v of requests on two k", c[0], c[1], share)
		}
	}
}

// TestWithAQueue: means of static codes are those of the formulas of package threshold: to
// within a tenth at all loads for codes of which two requests fit into the connections, and
// for larger ones to within 3 % at the loads where they are ever chosen. Above those their
// formula is on the safe side, by up to an eighth.
func TestWithAQueue(t *testing.T) {
	m := threshold.DefaultRead
	for _, tc := range []struct {
		n, k   int
		rho    float64
		within float64
	}{
		{1, 1, 0.5, 0.1},
		{1, 1, 0.8, 0.1},
		{3, 2, 0.5, 0.1},
		{3, 2, 0.8, 0.1},
		{6, 3, 0.5, 0.1},
		{6, 3, 0.8, 0.1},
		{12, 6, 0.1, 0.03},
		{12, 6, 0.2, 0.03},
		{12, 6, 0.4, 0.03},
		{12, 6, 0.5, 0.1},
		{12, 6, 0.8, 0.125},
	} {
		rate := tc.rho * m.Capacity(3, tc.n, tc.k, 16)
		want, backlog := threshold.Delay(m, paper, tc.n, tc.k, rate)
		out := run(t, options(tc.n, tc.k, rate))
		if !near(out.Mean, want, tc.within) {
			t.Errorf("(%d,%d) at %v: %.1f ms, by formula %.1f", tc.n, tc.k, tc.rho, out.Mean, want)
		}
		if out.Backlog > 2*backlog+0.1 || out.P50 > out.P90 || out.P90 > out.P99 || out.SD <= 0 {
			t.Errorf("(%d,%d) at %v: %+v, by formula %.2f wait", tc.n, tc.k, tc.rho, out.Figures, backlog)
		}
	}
}

// TestSaturated: a coder that always has work carries L/E(delay) of whole objects, and
// never has an idle connection.
func TestSaturated(t *testing.T) {
	o := options(1, 1, 0)
	o.Rate, o.Waiting, o.Requests = nil, 32, 20_000
	out := run(t, o)
	if want := threshold.DefaultRead.Capacity(3, 1, 1, 16); !near(out.Throughput(), want, 0.02) {
		t.Errorf("%.1f requests a second, expected %.1f", out.Throughput(), want)
	}
	if out.Backlog < 31 || out.Busy < 0.999 {
		t.Errorf("%.1f waited, %.3f of connections were busy", out.Backlog, out.Busy)
	}
}

// TestHedge: spare chunks are asked for after the delay only, and only by requests that
// have no answer by then.
func TestHedge(t *testing.T) {
	const after = 150 * time.Millisecond
	o := options(2, 1, 0.5)
	o.Chooser = queue.Fixed{N: 2, K: 1, Hedge: after}
	out := run(t, o)
	late := math.Exp(-(150.0 - 56) / 70)
	if got := float64(out.Tasks)/float64(out.Requests) - 1; !near(got, late, 0.06) {
		t.Errorf("%.3f of requests asked again, expected %.3f", got, late)
	}
	alone := run(t, options(1, 1, 0.5))
	if out.P50 != alone.P50 || out.P99 >= alone.P99 {
		t.Errorf("hedged %+v, not hedged %+v", out.Figures, alone.Figures)
	}
	o.Chooser = queue.Fixed{N: 2, K: 1, Hedge: time.Hour}
	if never := run(t, o); never.Tasks != int64(never.Requests) || never.Figures != alone.Figures {
		t.Errorf("a hedge that never comes: %+v, expected %+v", never.Figures, alone.Figures)
	}
}

// TestCancelsThatTakeTime hold connections for as long, and no answer back.
func TestCancelsThatTakeTime(t *testing.T) {
	o := options(12, 6, 0.2)
	at := run(t, o)
	o.Cancel = 10 * time.Millisecond
	later := run(t, o)
	// Of six tasks of Exp(20 ms) that are told to end, each ends by itself before.
	more := 6 * 20 * (1 - math.Exp(-0.5))
	if got := (later.Busy - at.Busy) * 16 / 0.2 * 1000; !near(got, more, 0.1) {
		t.Errorf("%.1f connections × ms more a request, expected %.1f", got, more)
	}
	if !near(later.Mean, at.Mean, 0.001) {
		t.Errorf("%.2f ms, without %.2f", later.Mean, at.Mean)
	}
}

// TestSizesInTurn: sizes come in order, from another place each seed.
func TestSizesInTurn(t *testing.T) {
	o := options(1, 1, 0.5)
	o.Law = delays.Law{Kind: delays.Exponential, DeltaPerMB: 100, Psi: 1e-9}
	o.Bytes, o.Requests = []int64{1_000_000, 2_000_000, 4_000_000, 5_000_000}, 8000
	out := run(t, o)
	if !near(out.Mean, 300, 1e-3) || !near(out.P50, 200, 1e-3) || !near(out.P99, 500, 1e-3) {
		t.Errorf("%+v", out.Figures)
	}
}

// TestCourse: under a step and a ramp arrivals come as the rate says, and each bin's
// admissions and answers are all that were.
func TestCourse(t *testing.T) {
	o := options(1, 1, 0)
	o.Rate = simcoder.Rate{{At: 0, PerSecond: 10}, {At: 60 * time.Second, PerSecond: 10}, {At: 60 * time.Second, PerSecond: 50}, {At: 120 * time.Second, PerSecond: 90}}
	o.Requests, o.Until, o.Bin = 0, 180*time.Second, 10*time.Second
	out := run(t, o)
	if len(out.Course) != 18 {
		t.Fatalf("%d bins", len(out.Course))
	}
	arrived, answered := 0, 0
	for i, b := range out.Course {
		want := 100.0
		switch {
		case i >= 12:
			want = 900
		case i >= 6:
			want = 10 * (50 + 40*(float64(i)-5.5)/6)
		}
		if math.Abs(float64(b.Arrived)-want) > 4*math.Sqrt(want) {
			t.Errorf("bin %d: %d arrived, expected about %.0f", i, b.Arrived, want)
		}
		if b.K != b.Admitted || b.N != b.Admitted {
			t.Errorf("bin %d: %+v", i, b)
		}
		arrived += b.Arrived
		answered += b.Answered
	}
	if arrived != out.Requests || answered != out.Answered || arrived-answered > 60 {
		t.Errorf("%d arrived and %d were answered, the outcome says %d and %d", arrived, answered, out.Requests, out.Answered)
	}
}

// TestTheSameAgain: a seed is one run, another seed another.
func TestTheSameAgain(t *testing.T) {
	a, b := run(t, options(6, 3, 30)), run(t, options(6, 3, 30))
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%+v and %+v", a, b)
	}
	o := options(6, 3, 30)
	o.Seed = 2
	if c := run(t, o); c.Mean == a.Mean {
		t.Errorf("seeds 1 and 2 both have a mean of %v", c.Mean)
	}
}

func TestOptionsThatAreNone(t *testing.T) {
	for name, change := range map[string]func(*simcoder.Options){
		"no connection": func(o *simcoder.Options) { o.Connections = 0 },
		"no chooser":    func(o *simcoder.Options) { o.Chooser = nil },
		"no law":        func(o *simcoder.Options) { o.Law = delays.Law{} },
		"no sizes":      func(o *simcoder.Options) { o.Bytes = nil },
		"no arrivals":   func(o *simcoder.Options) { o.Rate = simcoder.Steady(0) },
		"no end":        func(o *simcoder.Options) { o.Requests = 0 },
		"no bins":       func(o *simcoder.Options) { o.Until = time.Second },
		"below zero":    func(o *simcoder.Options) { o.Cancel = -1 },
	} {
		o := options(1, 1, 1)
		change(&o)
		if _, err := simcoder.Run(context.Background(), o); !errors.Is(err, simcoder.ErrOptions) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := simcoder.Run(ctx, options(1, 1, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, expected the context's end", err)
	}
}

// BenchmarkRun measures a request of 8 tasks at half its capacity; allocations are of
// the whole run.
func BenchmarkRun(b *testing.B) {
	b.ReportAllocs()
	o := options(8, 4, 24)
	o.Requests = 100_000
	for b.Loop() {
		run(b, o)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/101_000, "ns/request")
}

// TestNothingIsAllocatedPerEvent: what a run allocates does not grow with its requests,
// but for the list of delays.
func TestNothingIsAllocatedPerEvent(t *testing.T) {
	o := options(8, 4, 24)
	o.Requests = 20_000
	if n := testing.AllocsPerRun(1, func() { run(t, o) }); n > 500 {
		t.Errorf("%v allocations for 20,000 requests of 8 tasks", n)
	}
}

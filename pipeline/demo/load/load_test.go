package load

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"penstock/infra/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func take(p Pace, most int) (out []time.Duration) {
	for range most {
		at, ok := p.Next()
		if !ok {
			break
		}
		out = append(out, at)
	}
	return out
}

func TestEvenPace(t *testing.T) {
	for _, c := range []struct {
		rate float64
		want []time.Duration
	}{
		{4, []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, 750 * time.Millisecond}},
		{0.5, []time.Duration{0}},
		{3, []time.Duration{0, 333333333, 666666666}},
	} {
		if got := take(Until(Even(c.rate), time.Second), 10); !slices.Equal(got, c.want) {
			t.Errorf("%v a second: %v, expected %v", c.rate, got, c.want)
		}
	}
	// The plan is absolute: the millionth is where it belongs.
	p := take(Even(1000), 1_000_001)
	if last := p[1_000_000]; last != 1000*time.Second {
		t.Errorf("the millionth at 1000/s is at %v", last)
	}
}

func TestPoissonPaceHasItsRateAndSpread(t *testing.T) {
	const rate, seconds = 200.0, 500
	p := take(Until(Poisson(rate, rand.New(rand.NewPCG(7, 7))), seconds*time.Second), math.MaxInt32)
	var counts [seconds]float64
	for i, at := range p {
		if i > 0 && at < p[i-1] {
			t.Fatalf("%v after %v", at, p[i-1])
		}
		counts[at/time.Second]++
	}
	mean := float64(len(p)) / seconds
	if sd := math.Sqrt(rate / seconds); math.Abs(mean-rate) > 4*sd {
		t.Errorf("%.1f a second, expected %.0f", mean, rate)
	}
	var variance float64
	for _, c := range counts {
		variance += (c - mean) * (c - mean) / seconds
	}
	if variance < 0.75*rate || variance > 1.3*rate { // of Poisson counts it is their mean
		t.Errorf("variance %.1f, mean %.1f", variance, mean)
	}
	if again := take(Poisson(rate, rand.New(rand.NewPCG(7, 7))), 100); !slices.Equal(again, p[:100]) {
		t.Error("another plan from the same seed")
	}
}

// TestAStallShowsInLatencies is PROBLEMS P29: while the service stands still for a
// second, requests go on to be due, and each counts the time since then.
func TestAStallShowsInLatencies(t *testing.T) {
	m := clock.NewManual(time.Unix(1000, 0))
	stalled := make(chan struct{})
	var s Samples[string]
	done := make(chan Report)
	var due sync.WaitGroup
	due.Add(100)
	go func() {
		r, err := Run(t.Context(), Options{Clock: m, Pace: Until(Even(100), time.Second), Draw: each(func(_ context.Context, shot Shot) {
			due.Done()
			<-stalled
			s.Add(shot.Due, m.Now().Sub(shot.Due), "stalled")
		})})
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	for range 99 {
		if err := m.Await(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		m.Advance(10 * time.Millisecond)
	}
	due.Wait()
	m.Advance(10 * time.Millisecond)
	close(stalled)
	if r := <-done; r.Due != 100 || r.Sent != 100 || r.MaxLag != 0 {
		t.Errorf("%+v", r)
	}
	l := s.Where(func(*Sample[string]) bool { return true })
	if len(l) != 100 || l.Quantile(0.5) != 500*time.Millisecond || l.Quantile(0.99) != 990*time.Millisecond || l.Quantile(1) != time.Second {
		t.Errorf("%d samples, p50 %v, p99 %v, most %v", len(l), l.Quantile(0.5), l.Quantile(0.99), l.Quantile(1))
	}
}

// each is a Draw of requests that are all alike.
func each(do func(context.Context, Shot)) func(Shot) func(context.Context) {
	return func(s Shot) func(context.Context) { return func(ctx context.Context) { do(ctx, s) } }
}

// late is a clock whose sleeper is woken up too late once.
type late struct {
	*clock.Manual
	after int
}

func (l *late) Sleep(_ context.Context, d time.Duration) error {
	if l.after--; l.after == 0 {
		d += 700 * time.Millisecond
	}
	l.Advance(d)
	return nil
}

func TestALateGeneratorFails(t *testing.T) {
	c := &late{Manual: clock.NewManual(time.Unix(1000, 0)), after: 3}
	var sent []time.Time
	var mu sync.Mutex
	r, err := Run(t.Context(), Options{Clock: c, Pace: Until(Even(10), 2*time.Second), MaxLag: 450 * time.Millisecond, Draw: each(func(_ context.Context, s Shot) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, s.Due)
	})})
	// 700, 600 and 500 ms late are the one that slept and the two after it.
	if !errors.Is(err, ErrLate) || r.MaxLag != 700*time.Millisecond || r.Late != 3 || r.Sent != 20 || r.Due != 20 || len(sent) != 20 {
		t.Errorf("%+v, %d sent: %v", r, len(sent), err)
	}
	slices.SortFunc(sent, time.Time.Compare)
	for i, at := range sent {
		if want := time.Unix(1000, 0).Add(time.Duration(i) * 100 * time.Millisecond); !at.Equal(want) {
			t.Errorf("request %d was due at %v, expected %v", i, at, want)
		}
	}
}

func TestTooManyUnderWay(t *testing.T) {
	c := &late{Manual: clock.NewManual(time.Unix(1000, 0))}
	answer := make(chan struct{})
	n := 0
	pace := paceFunc(func() (time.Duration, bool) {
		if n++; n == 11 {
			close(answer)
			return 0, false
		}
		return time.Duration(n) * time.Millisecond, true
	})
	r, err := Run(t.Context(), Options{Clock: c, Pace: pace, MaxInFlight: 4, Draw: each(func(context.Context, Shot) { <-answer })})
	if !errors.Is(err, ErrCrowded) || r.Due != 10 || r.Sent != 4 || r.Crowded != 6 {
		t.Errorf("%+v: %v", r, err)
	}
}

// TestRequestsAreDrawnInOrder also where they are not sent.
func TestRequestsAreDrawnInOrder(t *testing.T) {
	c := &late{Manual: clock.NewManual(time.Unix(1000, 0))}
	answer := make(chan struct{})
	var drawn []uint64
	_, err := Run(t.Context(), Options{Clock: c, Pace: Until(Even(10), time.Second), MaxInFlight: 1, Draw: func(s Shot) func(context.Context) {
		if drawn = append(drawn, s.Number); len(drawn) == 10 {
			close(answer)
		}
		return func(context.Context) { <-answer }
	}})
	if !errors.Is(err, ErrCrowded) || !slices.Equal(drawn, []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("%v: %v", drawn, err)
	}
}

type paceFunc func() (time.Duration, bool)

func (f paceFunc) Next() (time.Duration, bool) { return f() }

func TestTheEndOfTheContextEndsARun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, err := Run(ctx, Options{Clock: clock.System(), Pace: Even(1000), Draw: each(func(_ context.Context, s Shot) {
		if s.Number == 5 {
			cancel()
		}
	})})
	if err != nil || r.Sent < 6 {
		t.Errorf("%+v: %v", r, err)
	}
}

func TestQuantilesAreThoseOfTheSortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Int64Range(0, 50), 1, 60).Draw(t, "latencies")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		var s Samples[int]
		for i, v := range list {
			s.Add(time.Unix(int64(i), 0), time.Duration(v), i)
		}
		got := s.Where(func(*Sample[int]) bool { return true }).Quantile(q)
		// The least value that at least q of all do not exceed.
		slices.Sort(list)
		for _, v := range list {
			atMost := 0
			for _, w := range list {
				if w <= v {
					atMost++
				}
			}
			if float64(atMost) >= q*float64(len(list)) {
				if got != time.Duration(v) {
					t.Fatalf("quantile %v of %v is %v, expected %v", q, list, got, v)
				}
				return
			}
		}
	})
}

func TestRecentSamples(t *testing.T) {
	var s Samples[bool]
	start := time.Unix(1000, 0)
	for i := range 300 {
		s.Add(start.Add(time.Duration(i)*time.Second), time.Duration(i), i%2 == 0)
	}
	got := s.Recent(start.Add(290*time.Second), func(a *Sample[bool]) bool { return a.Of })
	if want := (Latencies{290, 292, 294, 296, 298}); !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
	if (Latencies{}).Quantile(0.5) != 0 {
		t.Error("a quantile of nothing")
	}
}

package shaped

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/chunks/chunkstest"
	"penstock/infra/clock"
	"penstock/schemas/control"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// paper is the default read fit of PAPERS §3.2.
var paper = control.CodingDelay{Delta: 20, DeltaPerMB: 12, Psi: 10, PsiPerMB: 20}

// TestSuite: a shaped store is a store.
func TestSuite(t *testing.T) {
	t.Parallel()
	tiny := Exponential(control.CodingDelay{Psi: 0.01})
	chunkstest.Suite(t, func(*testing.T) chunks.Store {
		return New(Options{Inner: chunks.NewMemory("memory"), Delays: Delays{tiny, tiny}})
	})
}

// TestLaws against their means and, of the exponential, the quantiles.
func TestLaws(t *testing.T) {
	t.Parallel()
	const n, mb = 200_000, 0.5
	least, mean := 26.0, 46.0
	for name, law := range map[string]Law{"exponential": Exponential(paper), "lomax": Lomax(paper, 3)} {
		r := rand.New(rand.NewPCG(1, 2))
		all := make([]float64, n)
		sum := 0.0
		for i := range all {
			all[i] = float64(law(mb, r)) / float64(time.Millisecond)
			sum += all[i]
		}
		slices.Sort(all)
		if math.Abs(sum/n-mean) > 0.5 || all[0] < least-1e-6 {
			t.Errorf("%s: mean %v, least %v", name, sum/n, all[0])
		}
		for _, q := range []float64{0.5, 0.9, 0.99} {
			want := least - (mean-least)*math.Log(1-q)
			if name == "lomax" {
				want = least + (mean-least)*2*(math.Pow(1-q, -1.0/3)-1)
			}
			if got := all[int(q*n)]; math.Abs(got-want) > 0.03*want {
				t.Errorf("%s: quantile %v is %v, want %v", name, q, got, want)
			}
		}
	}
	if got := milliseconds(math.Inf(1)); got != longest {
		t.Errorf("the longest delay is %v", got)
	}
}

// call starts a call and says when it has ended.
func begin(f func() error) <-chan error {
	c := make(chan error, 1)
	go func() { c <- f() }()
	return c
}

// TestDelaysAreSeeded: two stores of one seed take the same time, each as the law says,
// and a store is asked only after its delay.
func TestDelaysAreSeeded(t *testing.T) {
	t.Parallel()
	var took [2][]time.Duration
	for run := range took {
		c := clock.NewManual(time.Unix(0, 0))
		inner := chunks.NewMemory("memory")
		s := New(Options{Inner: inner, Seed: 7, Clock: c, Delays: Delays{Exponential(paper), Exponential(control.CodingDelay{Delta: 40, Psi: 5})}})
		for range 5 {
			done := begin(func() error { return s.Put(t.Context(), "k", strings.NewReader("abc"), 3) })
			took[run] = append(took[run], advance(t, c, done, func() {
				if l, err := inner.List(t.Context(), "", "", 1); err != nil || len(l) > 0 {
					t.Errorf("stored before its time: %v, %v", l, err)
				}
			}))
			if err := inner.Delete(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !slices.Equal(took[0], took[1]) {
		t.Errorf("%v and %v", took[0], took[1])
	}
	if slices.Min(took[0]) < 40*time.Millisecond || slices.Max(took[0]) == slices.Min(took[0]) {
		t.Errorf("%v", took[0])
	}
}

// advance lets time pass until a call has ended, and says how much.
func advance(t *testing.T, c *clock.Manual, done <-chan error, waiting func()) time.Duration {
	t.Helper()
	if err := c.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	waiting()
	for at := time.Millisecond; ; at += time.Millisecond {
		c.Advance(time.Millisecond)
		if c.Waiting() == 0 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			return at
		}
	}
}

// TestADelayEndsWithItsContext, and the store isn't asked.
func TestADelayEndsWithItsContext(t *testing.T) {
	t.Parallel()
	slow := Exponential(control.CodingDelay{Delta: 3_600_000})
	inner := chunks.NewMemory("memory")
	c := clock.NewManual(time.Unix(0, 0))
	s := New(Options{Inner: inner, Clock: c, Delays: Delays{slow, slow}})
	for i, f := range []func(ctx context.Context) error{
		func(ctx context.Context) error { return s.Put(ctx, "k", strings.NewReader("x"), 1) },
		func(ctx context.Context) error { _, err := s.Get(ctx, "k", 0, 1, io.Discard); return err },
		func(ctx context.Context) error { return s.Delete(ctx, "k") },
		func(ctx context.Context) error { _, err := s.List(ctx, "", "", 1); return err },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		done := begin(func() error { return f(ctx) })
		if err := c.Await(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if got := s.Counts().Waiting; got != 1 {
			t.Errorf("%d waiting", got)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if got := s.Counts(); got.Waiting != 0 || got.Cancelled != 4 || got.Gets+got.Puts+got.Deletes+got.Lists != 4 {
		t.Errorf("%+v", got)
	}
	if l, _ := inner.List(t.Context(), "", "", 1); len(l) > 0 {
		t.Error("stored all the same")
	}
}

// TestToldWhileRunning: laws change under calls.
func TestToldWhileRunning(t *testing.T) {
	t.Parallel()
	s := New(Options{Inner: chunks.NewMemory("memory"), Seed: 3})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = s.Get(ctx, "a/1", 0, 10, io.Discard)
				_ = s.Put(ctx, "a/2", strings.NewReader("x"), 1)
			}
		})
	}
	for range 200 {
		s.SetDelays(Delays{Read: Exponential(control.CodingDelay{Psi: 0.001})})
	}
	cancel()
	wg.Wait()
	if got := s.Counts().Waiting; got != 0 {
		t.Errorf("%d still wait", got)
	}
}

// TestWhoAsksForAllThereIsWaitsForThat: owner marks and logs are read without knowing how
// many bytes they have.
func TestWhoAsksForAllThereIsWaitsForThat(t *testing.T) {
	t.Parallel()
	c := clock.NewManual(time.Unix(0, 0))
	inner := chunks.NewMemory("memory")
	for key, n := range map[string]int{"k": 100_000, "k/longer": 1} {
		if err := inner.Put(t.Context(), key, bytes.NewReader(make([]byte, n)), int64(n)); err != nil {
			t.Fatal(err)
		}
	}
	s := New(Options{Inner: inner, Clock: c, Delays: Delays{Read: Exponential(control.CodingDelay{Delta: 5, DeltaPerMB: 1000})}})
	for _, test := range []struct {
		off, n int64
		want   time.Duration
	}{{0, 1 << 30, 105 * time.Millisecond}, {90_000, math.MaxInt64, 15 * time.Millisecond}, {200_000, 1 << 30, 5 * time.Millisecond}} {
		done := begin(func() error { _, err := s.Get(t.Context(), "k", test.off, test.n, io.Discard); return err })
		if took := advance(t, c, done, func() {}); took != test.want {
			t.Errorf("%d bytes from %d took %v, want %v", test.n, test.off, took, test.want)
		}
	}
}

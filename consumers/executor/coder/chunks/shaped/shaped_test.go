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

// TestSuite: a shaped store without faults is a store.
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
	for name, hang := range map[string]bool{"slow": false, "hanging": true} {
		inner := chunks.NewMemory("memory")
		c := clock.NewManual(time.Unix(0, 0))
		s := New(Options{Inner: inner, Clock: c, Delays: Delays{slow, slow}, Faults: Faults{Hang: hang}})
		for i, f := range []func(ctx context.Context) error{
			func(ctx context.Context) error { return s.Put(ctx, "k", strings.NewReader("x"), 1) },
			func(ctx context.Context) error { _, err := s.Get(ctx, "k", 0, 1, io.Discard); return err },
			func(ctx context.Context) error { return s.Delete(ctx, "k") },
			func(ctx context.Context) error { _, err := s.List(ctx, "", "", 1); return err },
		} {
			ctx, cancel := context.WithCancel(t.Context())
			done := begin(func() error { return f(ctx) })
			if !hang {
				if err := c.Await(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				if got := s.Counts().Waiting; got != 1 {
					t.Errorf("%s: %d waiting", name, got)
				}
			}
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("%s, call %d: %v", name, i, err)
			}
		}
		if got := s.Counts(); got.Waiting != 0 || got.Cancelled != 4 || got.Gets+got.Puts+got.Deletes+got.Lists != 4 {
			t.Errorf("%s: %+v", name, got)
		}
		if l, _ := inner.List(t.Context(), "", "", 1); len(l) > 0 {
			t.Errorf("%s: stored all the same", name)
		}
	}
}

func filled(t *testing.T) *Store {
	t.Helper()
	s := New(Options{Inner: chunks.NewMemory("memory"), Seed: 3})
	for _, key := range []string{"a/1", "a/2", "b/1"} {
		content := strings.Repeat(key, 10)
		if err := s.Put(t.Context(), key, strings.NewReader(content), int64(len(content))); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func get(t *testing.T, s chunks.Store, key string) (string, error) {
	t.Helper()
	var b bytes.Buffer
	n, err := s.Get(t.Context(), key, 0, 100, &b)
	if int(n) != b.Len() {
		t.Fatalf("%d of %d bytes", n, b.Len())
	}
	return b.String(), err
}

// bits counts in how many bits two texts of one length differ.
func bits(a, b string) (n int) {
	for i := range len(a) {
		for x := a[i] ^ b[i]; x > 0; x &= x - 1 {
			n++
		}
	}
	return n
}

// check says what is wrong with a blob after a fault.
func check(t *testing.T, kind Kind, want, got string, err error) {
	t.Helper()
	switch {
	case kind == Missing && errors.Is(err, chunks.ErrNotFound):
	case err != nil:
		t.Errorf("%v: %v", kind, err)
	case kind == Flipped && len(got) == len(want) && bits(got, want) == 1,
		kind == Truncated && len(got) < len(want) && strings.HasPrefix(want, got),
		kind == Foreign && len(got) == len(want) && got != want && strings.Contains(got, "/"),
		kind == Right && got == want:
	default:
		t.Errorf("%v: %q became %q", kind, want, got)
	}
}

// TestAnswersAreWrongAsTold and right again when the fault is over; what is stored stays.
func TestAnswersAreWrongAsTold(t *testing.T) {
	t.Parallel()
	s := filled(t)
	for _, kind := range append([]Kind{Right}, Kinds...) {
		s.SetFaults(Faults{Answer: kind, Only: func(write bool, key string) bool { return !write && key != "b/1" }})
		if got := s.Faults().Answer; got != kind {
			t.Errorf("%v is in force", got)
		}
		for _, key := range []string{"a/1", "a/2", "b/1"} {
			told := kind
			if key == "b/1" {
				told = Right
			}
			got, err := get(t, s, key)
			check(t, told, strings.Repeat(key, 10), got, err)
		}
	}
	s.SetFaults(Faults{})
	for _, key := range []string{"a/1", "a/2", "b/1"} {
		got, err := get(t, s, key)
		check(t, Right, strings.Repeat(key, 10), got, err)
	}
	if got := s.Counts().Altered; got != 8 {
		t.Errorf("%d altered", got)
	}
}

// TestHarmStays until it is mended.
func TestHarmStays(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds {
		s := filled(t)
		n, err := s.Harm(t.Context(), kind, "a/", func(key string) bool { return key != "a/2" })
		if n != 1 || err != nil {
			t.Fatalf("%v: %d, %v", kind, n, err)
		}
		for _, key := range []string{"a/1", "a/2", "b/1"} {
			told := kind
			if key != "a/1" {
				told = Right
			}
			got, err := get(t, s, key)
			check(t, told, strings.Repeat(key, 10), got, err)
		}
		if err := s.Put(t.Context(), "a/1", strings.NewReader("mended"), 6); err != nil {
			t.Fatal(err)
		}
		if got, err := get(t, s, "a/1"); got != "mended" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// TestCallsFailAsTold.
func TestCallsFailAsTold(t *testing.T) {
	t.Parallel()
	s := filled(t)
	s.SetFaults(Faults{Dead: true})
	_, err := get(t, s, "a/1")
	_, listed := s.List(t.Context(), "", "", 1)
	for _, err := range []error{err, listed, s.Delete(t.Context(), "a/1"), s.Put(t.Context(), "k", strings.NewReader("x"), 1)} {
		if !errors.Is(err, ErrInjected) {
			t.Errorf("dead: %v", err)
		}
	}
	s.SetFaults(Faults{ErrorEvery: 3})
	failed := 0
	for range 30 {
		if got, err := get(t, s, "a/1"); errors.Is(err, ErrInjected) {
			failed++
		} else {
			check(t, Right, strings.Repeat("a/1", 10), got, err)
		}
	}
	if failed != 10 {
		t.Errorf("%d of 30 failed", failed)
	}
	if got := s.Counts().Injected; got != 14 {
		t.Errorf("%d injected", got)
	}
}

// TestSlowMultiplies a delay.
func TestSlowMultiplies(t *testing.T) {
	t.Parallel()
	s := New(Options{Inner: chunks.NewMemory("memory")})
	law := Exponential(control.CodingDelay{Delta: 10})
	for _, c := range []struct {
		slow float64
		want time.Duration
	}{{0, 10 * time.Millisecond}, {1, 10 * time.Millisecond}, {50, 500 * time.Millisecond}} {
		if got, fails := s.draw(&Faults{Slow: c.slow}, call{law: law}); got != c.want || fails {
			t.Errorf("×%v: %v", c.slow, got)
		}
	}
}

// TestToldWhileRunning: laws and faults change under calls.
func TestToldWhileRunning(t *testing.T) {
	t.Parallel()
	s := filled(t)
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
	for i := range 200 {
		s.SetFaults(Faults{Answer: Kind(i % 5), Hang: i%7 == 0, Dead: i%3 == 0, ErrorEvery: i % 4})
		s.SetDelays(Delays{Read: Exponential(control.CodingDelay{Psi: 0.001})})
		if _, err := s.Harm(t.Context(), Flipped, "b/", nil); err != nil {
			t.Fatal(err)
		}
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

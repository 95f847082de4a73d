package codes

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/consumers/decider/coding/threshold"
	"penstock/consumers/executor/coder/queue"
	"penstock/schemas/control"
)

// paper is the thresholds of PAPERS §3.4 for the default fit.
var paper = control.CodingCodes{
	K:    []float64{2.811, .869, .310, .120, .050},
	N:    []float64{4.666, 2.205, 1.266, .798, .535, .375, .267, .198, .149, .115, .090},
	RMax: 2,
}

func tableOf(p control.CodingPolicy, c control.CodingCodes) control.CodingTable {
	return control.CodingTable{Policy: p, Read: c, Write: c}
}

// always is a table of one code.
func always(p control.CodingPolicy, n, k int) control.CodingTable {
	h := func(n int) []float64 { return slices.Repeat([]float64{control.MaxBacklog}, n-1) }
	return tableOf(p, control.CodingCodes{K: h(k), N: h(n), RMax: float64(n)})
}

func chooser(t testing.TB, table control.CodingTable, smoothing float64) *Chooser {
	t.Helper()
	c, err := New(Options{Default: table, Smoothing: smoothing})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCodes says which code each policy gives at a backlog (smoothed by nothing) and a
// number of idle connections.
func TestCodes(t *testing.T) {
	t.Parallel()
	hedged := always(control.CodingHedge, 4, 2)
	hedged.Read.HedgeUS = 20_000
	type at struct{ backlog, idle int }
	for _, tc := range []struct {
		name  string
		table control.CodingTable
		want  map[at]queue.Code
	}{
		{"tofec", tableOf(control.CodingTOFEC, paper), map[at]queue.Code{
			{0, 16}: {N: 12, K: 6}, {1, 1}: {N: 4, K: 2}, {2, 16}: {N: 3, K: 2}, {3, 16}: {N: 2, K: 1}, {5, 16}: {N: 1, K: 1},
		}},
		{"static", always(control.CodingStatic, 6, 3), map[at]queue.Code{{0, 1}: {N: 6, K: 3}, {1000, 16}: {N: 6, K: 3}}},
		{"replicate", always(control.CodingReplicate, 2, 1), map[at]queue.Code{{0, 1}: {N: 2, K: 1}, {1000, 16}: {N: 2, K: 1}}},
		{"hedge", hedged, map[at]queue.Code{{0, 1}: {N: 4, K: 2, Hedge: 20 * time.Millisecond}}},
		{"greedy", tableOf(control.CodingGreedy, paper), map[at]queue.Code{
			{0, 16}: {N: 12, K: 6}, {9, 12}: {N: 12, K: 6}, {0, 7}: {N: 7, K: 6}, {0, 5}: {N: 5, K: 5}, {0, 1}: {N: 1, K: 1},
		}},
	} {
		for at, want := range tc.want {
			c := chooser(t, tc.table, 1)
			c.Arrived(at.backlog)
			if got := c.Choose(queue.Read, at.idle); got != want {
				t.Errorf("%s at %+v: %+v, expected %+v", tc.name, at, got, want)
			}
		}
	}
	c := chooser(t, hedged, 1)
	if got := c.Choose(queue.Write, 1); got.Hedge != 0 {
		t.Errorf("a hedge of reads at a write: %+v", got)
	}
}

// TestCodesAgainstThePlainForm of the rule, for all tables that can be.
func TestCodesAgainstThePlainForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		falling := func(name string, least, most int) []float64 {
			h := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(0, 10), rapid.Just(control.MaxBacklog)), least, most).Draw(t, name)
			slices.Sort(h)
			slices.Reverse(h)
			return h
		}
		k := falling("k", 0, control.MaxCodingK-1)
		c := control.CodingCodes{K: k, N: falling("n", len(k), control.MaxCodingN-1), RMax: rapid.Float64Range(1, control.MaxCodingN).Draw(t, "rmax")}
		x, err := New(Options{Default: tableOf(control.CodingTOFEC, c), Smoothing: 1})
		if err != nil {
			t.Fatal(err)
		}
		q := rapid.IntRange(0, 12).Draw(t, "backlog")
		x.Arrived(q)
		got := x.Choose(queue.Write, rapid.IntRange(1, 20).Draw(t, "idle"))
		n, m := threshold.Table{K: c.K, N: c.N}.Code(float64(q), c.RMax)
		if got != (queue.Code{N: n, K: m}) {
			t.Fatalf("%+v, the plain form says (%d,%d)", got, n, m)
		}
	})
}

// TestGreedyStaysWithinItsBounds whatever is idle.
func TestGreedyStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := always(control.CodingGreedy, rapid.IntRange(6, 14).Draw(t, "n"), rapid.IntRange(1, 6).Draw(t, "k"))
		table.Read.RMax = rapid.Float64Range(1, 4).Draw(t, "rmax")
		x, err := New(Options{Default: table})
		if err != nil {
			t.Fatal(err)
		}
		idle := rapid.IntRange(1, 40).Draw(t, "idle")
		c := x.Choose(queue.Read, idle)
		if c.K != min(idle, len(table.Read.K)+1) || c.N < c.K || c.N > idle || c.N > len(table.Read.N)+1 ||
			float64(c.N) > max(float64(c.K), table.Read.RMax*float64(c.K)+1e-9) {
			t.Fatalf("%d idle, k up to %d, n up to %d, r up to %v: %+v", idle, len(table.Read.K)+1, len(table.Read.N)+1, table.Read.RMax, c)
		}
	})
}

// TestSmoothing is q̄ = a·q + (1−a)·q̄, from 0, over all tables.
func TestSmoothing(t *testing.T) {
	t.Parallel()
	c := chooser(t, tableOf(control.CodingTOFEC, paper), 0)
	want := 0.0
	for i, q := range []int{3, 0, 7, 7, 1} {
		c.Arrived(q)
		want = threshold.Smoothing*float64(q) + (1-threshold.Smoothing)*want
		if got := c.State().Backlog; math.Abs(got-want) > 1e-15 {
			t.Errorf("after %d: %v, expected %v", i, got, want)
		}
	}
	table := always(control.CodingStatic, 2, 1)
	if err := c.Set(&table, 3, time.Unix(9, 0)); err != nil {
		t.Fatal(err)
	}
	if s := c.State(); s.Epoch != 3 || !s.Until.Equal(time.Unix(9, 0)) || math.Abs(s.Backlog-want) > 1e-15 || s.Table.Policy != control.CodingStatic {
		t.Errorf("state %+v", s)
	}
	if got := c.Choose(queue.Read, 1); got != (queue.Code{N: 2, K: 1}) {
		t.Errorf("%+v", got)
	}
	if c.Expire(time.Unix(8, 0)) || !c.Expire(time.Unix(9, 0)) || c.Expire(time.Unix(10, 0)) || c.State().Epoch != 0 {
		t.Errorf("a ttl: %+v", c.State())
	}
}

// TestTablesThatCanNotBe are refused, and what was in force stays.
func TestTablesThatCanNotBe(t *testing.T) {
	t.Parallel()
	c := chooser(t, always(control.CodingStatic, 3, 2), 0)
	rising := tableOf(control.CodingTOFEC, paper)
	rising.Write.K = []float64{1, 2}
	short := tableOf(control.CodingTOFEC, paper)
	short.Read.N = []float64{1}
	for name, bad := range map[string]control.CodingTable{
		"nothing": {}, "rising": rising, "fewer n than k": short, "policy": tableOf("best", paper),
		"not a number": tableOf(control.CodingTOFEC, control.CodingCodes{K: []float64{}, N: []float64{math.NaN()}, RMax: 1}),
		"no r_max":     tableOf(control.CodingTOFEC, control.CodingCodes{K: []float64{}, N: []float64{}}),
	} {
		if err := c.Set(&bad, 1, time.Time{}); !errors.Is(err, ErrTable) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := New(Options{Default: bad}); !errors.Is(err, ErrTable) {
			t.Errorf("%s, as a default: %v", name, err)
		}
	}
	for _, a := range []float64{-1, 1.5, math.NaN()} {
		if _, err := New(Options{Default: always(control.CodingStatic, 1, 1), Smoothing: a}); !errors.Is(err, ErrOptions) {
			t.Errorf("smoothing %v: %v", a, err)
		}
	}
	if s := c.State(); s.Epoch != 0 || c.Choose(queue.Read, 9) != (queue.Code{N: 3, K: 2}) {
		t.Errorf("in force: %+v", s)
	}
}

// TestATableIsItsOwn: who brought it into force may change it.
func TestATableIsItsOwn(t *testing.T) {
	t.Parallel()
	table := always(control.CodingStatic, 3, 2)
	c := chooser(t, table, 0)
	table.Read.K[0], table.Read.N[0] = 0, 0
	if got := c.Choose(queue.Read, 1); got != (queue.Code{N: 3, K: 2}) {
		t.Errorf("%+v", got)
	}
}

// TestSwapsAreWhole: a code is of one table or the other while they change under it.
func TestSwapsAreWhole(t *testing.T) {
	t.Parallel()
	one, other := always(control.CodingStatic, 12, 6), always(control.CodingStatic, 3, 1)
	c := chooser(t, one, 0)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 2000 {
				c.Arrived(1)
				if got := c.Choose(queue.Read, 1); got != (queue.Code{N: 12, K: 6}) && got != (queue.Code{N: 3, K: 1}) {
					t.Errorf("half a table: %+v", got)
				}
			}
		})
	}
	for i := range 200 {
		table := &one
		if i%2 == 0 {
			table = &other
		}
		if err := c.Set(table, uint64(i), time.Unix(1, 0)); err != nil {
			t.Error(err)
		}
		c.Expire(time.Unix(2, 0))
	}
	group.Wait()
	// None of 8,000 arrivals was lost: 1 − (1−a)^n.
	if got := c.State().Backlog; math.Abs(got-1) > 1e-9 {
		t.Errorf("smoothed backlog %v", got)
	}
}

// TestLookUpAllocatesNothing on the path of a request (DESIGN §7).
func TestLookUpAllocatesNothing(t *testing.T) {
	c := chooser(t, tableOf(control.CodingTOFEC, paper), 0)
	if n := testing.AllocsPerRun(1000, func() {
		c.Arrived(1)
		c.Choose(queue.Read, 4)
	}); n != 0 {
		t.Errorf("%v allocations a look-up", n)
	}
}

// BenchmarkCode is the look-up of (n,k), DESIGN §7: at most 100 ns and no allocation.
func BenchmarkCode(b *testing.B) {
	widest := control.CodingCodes{RMax: 4}
	for i := range control.MaxCodingN - 1 {
		widest.N = append(widest.N, 100/float64(i+1))
	}
	widest.K = widest.N[:control.MaxCodingK-1]
	for _, tc := range []struct {
		name  string
		table control.CodingTable
	}{
		{"tofec", tableOf(control.CodingTOFEC, paper)}, {"greedy", tableOf(control.CodingGreedy, paper)}, {"widest", tableOf(control.CodingTOFEC, widest)},
	} {
		b.Run(fmt.Sprintf("policy=%s", tc.name), func(b *testing.B) {
			c := chooser(b, tc.table, 0)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				c.Arrived(i & 7)
				if c.Choose(queue.Op(i&1), 16).K == 0 {
					b.Fatal("no code")
				}
				i++
			}
		})
	}
}

// TestSized: k is that of the table times the root of the size, within the table's limits,
// and n goes with it; the paper's model agrees that this is no slower at a small size, and
// cheaper.
func TestSized(t *testing.T) {
	three := paper
	three.MB = 3
	c := chooser(t, tableOf(control.CodingTOFEC, three), 0)
	plain := chooser(t, tableOf(control.CodingTOFEC, paper), 0)
	code := func(n, k int) queue.Code { return queue.Code{N: n, K: k} }
	for _, tc := range []struct {
		chosen queue.Code
		bytes  int64
		want   queue.Code
	}{
		{code(12, 6), 3_000_000, code(12, 6)},
		{code(12, 6), 64 << 10, code(2, 1)},
		{code(12, 6), 750_000, code(6, 3)},
		{code(12, 6), 8 << 20, code(12, 6)}, // no more than the table has
		{code(3, 2), 8 << 20, code(5, 3)},
		{code(1, 1), 64 << 10, code(1, 1)},
		{code(1, 1), 1, code(1, 1)},
		{code(4, 3), 1_300_000, code(3, 2)},
		{code(2, 2), 0, code(2, 2)},
	} {
		if got := c.Sized(queue.Read, tc.chosen, tc.bytes); got != tc.want {
			t.Errorf("%v of %d bytes: %v, expected %v", tc.chosen, tc.bytes, got, tc.want)
		}
		if got := plain.Sized(queue.Read, tc.chosen, tc.bytes); got != tc.chosen {
			t.Errorf("a table that says no size: %v of %d bytes: %v", tc.chosen, tc.bytes, got)
		}
	}
}

// TestSizedStays: whatever is chosen of whatever size, the code is one of the table's.
func TestSizedStays(t *testing.T) {
	three := paper
	three.MB = 3
	c := chooser(t, tableOf(control.CodingTOFEC, three), 0)
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 6).Draw(t, "k")
		n := rapid.IntRange(k, 2*k).Draw(t, "n")
		small, large := rapid.Int64Range(1, 1<<40).Draw(t, "bytes"), rapid.Int64Range(1, 1<<40).Draw(t, "more")
		if small > large {
			small, large = large, small
		}
		a, b := c.Sized(queue.Write, queue.Code{N: n, K: k, Hedge: 5}, small), c.Sized(queue.Write, queue.Code{N: n, K: k, Hedge: 5}, large)
		for _, x := range []queue.Code{a, b} {
			if x.K < 1 || x.K > 6 || x.N < x.K || x.N > 2*x.K || x.Hedge != 5 {
				t.Fatalf("(%d,%d) became %v", n, k, x)
			}
		}
		if a.K > b.K {
			t.Fatalf("(%d,%d): k falls from %d to %d as the size rises", n, k, a.K, b.K)
		}
	})
}

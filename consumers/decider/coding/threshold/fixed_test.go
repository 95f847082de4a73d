package threshold

import (
	"math"
	"testing"
)

// Where k is fixed, n alone is chosen: k of any backlog, more the fewer wait, and all of
// it within what a coder's rule makes of the lists.
func TestFixedK(t *testing.T) {
	l := Limits{Connections: 16, SizeMB: 3, KMin: 4, KMax: 4, NMax: 6, RMax: 1.5}
	for name, of := range map[string]func(Model, Limits) (Table, error){"corrected": Corrected, "uncorrected": Uncorrected} {
		table, err := of(DefaultRead, l)
		if err != nil {
			t.Fatal(err)
		}
		if len(table.K) != 3 || len(table.N) != 5 {
			t.Fatalf("%s: %+v", name, table)
		}
		for _, h := range append(table.K, table.N[:3]...) {
			if !math.IsInf(h, 1) {
				t.Errorf("%s: %+v, expected no backlog to change what is needed", name, table)
			}
		}
		if !(table.N[3] > table.N[4] && table.N[4] > 0) {
			t.Errorf("%s: %v does not fall", name, table.N)
		}
		for q, want := range map[float64]int{0: 6, table.N[4] * 1.01: 5, table.N[3] * 1.01: 4, 1e9: 4} {
			if n, k := table.Code(q, l.RMax); n != want || k != 4 {
				t.Errorf("%s: backlog %v: (%d,%d), expected (%d,4)", name, q, n, k, want)
			}
		}
	}
}

// The delay with the table of a fixed k stays near that of the best n at every load.
func TestFixedKFollowsTheEnvelope(t *testing.T) {
	l := Limits{Connections: 16, SizeMB: 3, KMin: 4, KMax: 4, NMax: 6, RMax: 1.5}
	table, err := Corrected(DefaultRead, l)
	if err != nil {
		t.Fatal(err)
	}
	n, seeds, loads := 8000, 2, []float64{.1, .5, .9}
	if whole() {
		n, seeds, loads = 30_000, 6, []float64{.05, .2, .35, .5, .65, .8, .9}
	}
	for _, load := range loads {
		rate := load * DefaultRead.Capacity(3, 4, 4, 16)
		mean := simulated(DefaultRead, l, rate, n, seeds)
		best := math.Inf(1)
		for n := 4; n <= 6; n++ {
			if rate < DefaultRead.Capacity(3, n, 4, 16) {
				best = min(best, mean(static(n, 4)))
			}
		}
		if got := mean(table.adaptive(l.RMax)); got > 1.06*best {
			t.Errorf("load %.2f: %.1f ms, the best n alone %.1f ms", load, got, best)
		}
	}
}

// A coder with fewer connections than k still asks for k.
func TestFewerConnectionsThanK(t *testing.T) {
	l := Limits{Connections: 2, SizeMB: 3, KMin: 4, KMax: 4, NMax: 6, RMax: 1.5}
	for _, of := range []func(Model, Limits) (Table, error){Corrected, Uncorrected} {
		table, err := of(DefaultRead, l)
		if err != nil {
			t.Fatal(err)
		}
		if n, k := table.Code(1e6, l.RMax); n != 4 || k != 4 {
			t.Errorf("(%d,%d) of %+v", n, k, table)
		}
	}
	for _, l := range []Limits{{Connections: 2, SizeMB: 3, KMin: -1, KMax: 4, NMax: 6, RMax: 1.5}, {Connections: 2, SizeMB: 3, KMin: 5, KMax: 4, NMax: 6, RMax: 1.5}} {
		if l.Validate() == nil {
			t.Errorf("%+v is taken", l)
		}
	}
}

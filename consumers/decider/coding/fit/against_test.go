package fit

import (
	"math"
	"testing"

	"penstock/consumers/decider/coding/threshold"
)

// TestAgainst: tasks of the model itself are not off by more than chance, whatever the
// code; those of a slower or a faster store are, and one time-out is not.
func TestAgainst(t *testing.T) {
	t.Parallel()
	truth := threshold.DefaultRead
	for seed := range uint64(5) {
		s := newShop(truth, seed)
		for _, c := range [][2]int{{12, 6}, {6, 3}, {2, 1}, {1, 1}} {
			s.requests(300, c[0], c[1], 3, 0)
		}
		if ratio, z, n := Against(s.list(), truth); math.Abs(ratio-1) > 0.1 || math.Abs(z) > 5 || n != 300*11 {
			t.Errorf("its own: %v, %v of %d", ratio, z, n)
		}
		s.list()[0].Done.Add(60_000_000, 1)
		if ratio, z, _ := Against(s.list(), truth); math.Abs(ratio-1) > 0.1 || math.Abs(z) > 5 {
			t.Errorf("with a time-out: %v, %v", ratio, z)
		}
		for name, other := range map[string]threshold.Model{
			"slower":       {Delta: 20, DeltaPerMB: 12, Psi: 20, PsiPerMB: 40},
			"later":        {Delta: 60, DeltaPerMB: 30, Psi: 10, PsiPerMB: 20},
			"fifty times":  {Delta: 1000, DeltaPerMB: 600, Psi: 500, PsiPerMB: 1000},
			"faster":       {Delta: 10, DeltaPerMB: 6, Psi: 5, PsiPerMB: 10},
			"like memory":  {Delta: 0.1, DeltaPerMB: 0.1, Psi: 0.1, PsiPerMB: 0.1},
			"with no wait": {Delta: 20, DeltaPerMB: 12, Psi: 1, PsiPerMB: 2},
		} {
			ratio, z, _ := Against(s.list(), other) // the other way round
			up := other.Mean(1)+other.Fixed(1) < truth.Mean(1)+truth.Fixed(1)
			if up && (ratio < 1.5 || z < 8) || !up && (ratio > 1/1.5 || z > -8) {
				t.Errorf("%s: %v, %v", name, ratio, z)
			}
		}
	}
	if ratio, z, n := Against(nil, truth); ratio != 1 || z != 0 || n != 0 {
		t.Error("of nothing")
	}
}

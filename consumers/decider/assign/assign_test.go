package assign

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestAgainstBruteForce is what issue 3 asks for: 1,000 random instances, equal
// where said to be exact, inside the bound where not; and all of them once more by
// the way of large ones.
func TestAgainstBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1000))
	var exact, largeExact, largeBest int
	for range 1000 {
		c := randomTable(r)
		best := c.optimum()
		s := Solve(c.problem(1), Options{})
		check(t, c, s, best)
		if s.Exact {
			exact++
		} else {
			t.Logf("not exact: %+v %+v", c, s)
		}
		l := Solve(c.problem(1), Options{Cells: 1})
		check(t, c, l, best)
		if l.Exact {
			largeExact++
		}
		if best.Cmp(big.NewInt(l.Cost)) == 0 {
			largeBest++
		}
	}
	t.Logf("exact and proved: %d of 1,000; by prices: %d proved, %d optimal", exact, largeExact, largeBest)
	if exact < 1000 {
		t.Errorf("%d of 1,000 small instances are solved exactly, expected all", exact)
	}
}

package solve_test

import (
	"math"
	"testing"

	"penstock/consumers/decider/split/solve"
)

// feasible checks that a plan sends every call somewhere and goes over no
// capacity but by overload.
func feasible(t *testing.T, in *solve.Instance, p *solve.Plan, over bool) {
	t.Helper()
	const eps = 1e-6
	m := in.Sites
	load := make([]float64, len(in.Service))
	for c := range in.Choices {
		ch := &in.Choices[c]
		for i, x := range p.Flow[c] {
			if !(x >= -eps) {
				t.Fatalf("choice %d: flow %v", c, x)
			}
			for _, l := range ch.Legs {
				if x > eps && math.IsInf(l.Cost[i], 1) {
					t.Fatalf("choice %d: %v on a link that is not allowed", c, x)
				}
				load[l.To*m+i%m] += x * l.Ratio
			}
		}
	}
	for r := range load {
		size := 1 + in.Demand(r/m)
		if math.Abs(load[r]-p.Load[r]) > eps*size {
			t.Fatalf("replica %d: load %v, calls %v", r, p.Load[r], load[r])
		}
		if load[r] > eps*size && math.IsInf(in.Service[r], 1) {
			t.Fatalf("replica %d is not there and gets %v", r, load[r])
		}
		if most := in.Capacity[r] * p.Overload[r/m]; !over && load[r] > most+eps*size {
			t.Fatalf("replica %d: load %v, capacity %v", r, load[r], most)
		}
	}
	for c := range in.Choices {
		ch := &in.Choices[c]
		if ch.From == solve.Source {
			var sum float64
			for _, x := range p.Flow[c] {
				sum += x
			}
			if math.Abs(sum+p.Unplaced[c]-ch.Rate) > eps*(1+ch.Rate) {
				t.Fatalf("source %d: %v of %v", c, sum, ch.Rate)
			}
			continue
		}
		for n := range m {
			var sum float64
			for q := range m {
				sum += p.Flow[c][n*m+q]
			}
			if x := p.Load[ch.From*m+n]; math.Abs(sum-x) > eps*(1+x) {
				t.Fatalf("choice %d at %d: %v leave, %v arrive", c, n, sum, x)
			}
		}
	}
}

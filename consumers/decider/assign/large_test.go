package assign

import (
	"math"
	"slices"
	"testing"
)

// TestLargeKinds holds the way by prices against its own bound on instances that
// are hard for it: many items without a preference, all of one mind, one that is
// more than any site can take, less room than load.
func TestLargeKinds(t *testing.T) {
	t.Parallel()
	const items, sites = 20_000, 9
	fill := func(cost func(j int) int64) func(_, lo, hi int, out []int64) {
		return func(_, lo, hi int, out []int64) {
			for k := range out[:(hi-lo)*sites] {
				out[k] = cost(k % sites)
			}
		}
	}
	for _, c := range []struct {
		name string
		gap  float64
		// alter makes the hard instance another one.
		alter func(p *Problem)
	}{
		{"hard", 1e-3, func(*Problem) {}},
		{"no preference", 0, func(p *Problem) { p.Rows = fill(func(int) int64 { return 0 }) }},
		{"one mind", 1e-2, func(p *Problem) { p.Rows = fill(func(j int) int64 { return int64(j) * 1e7 }) }},
		{"one load and mind", 1e-2, func(p *Problem) {
			for i := range p.Load {
				p.Load[i] = 3000
			}
			p.Rows = fill(func(j int) int64 { return int64(j) * 1e7 })
		}},
		{"coarse costs", 1e-2, func(p *Problem) {
			rows := p.Rows
			p.Rows = func(worker, lo, hi int, out []int64) {
				rows(worker, lo, hi, out)
				for k, v := range out[:(hi-lo)*sites] {
					out[k] = v / 1e8 * 1e8
				}
			}
		}},
		{"one giant", 1e-2, func(p *Problem) { p.Load[7] = 3 * slices.Max(p.Room) }},
		{"half the room", 1e-3, func(p *Problem) {
			for j := range p.Room {
				p.Room[j] /= 2
			}
		}},
		{"no room at all", 1e-9, func(p *Problem) { clear(p.Room) }},
		{"room for all", 0, func(p *Problem) {
			for j := range p.Room {
				p.Room[j] = math.MaxInt64
			}
		}},
		{"two sites a part of the items", 1e-3, func(p *Problem) {
			rows := p.Rows
			p.Rows = func(worker, lo, hi int, out []int64) {
				rows(worker, lo, hi, out)
				for i := lo; i < hi; i++ {
					for j := range sites {
						if i%10 == 0 && j > 1 {
							out[(i-lo)*sites+j] = Forbidden
						}
					}
				}
			}
		}},
	} {
		p := hard(items, sites, 2)
		c.alter(p)
		s := Solve(p, Options{Cells: 1, Sample: 1 << 11})
		cost, weight, over := p.Evaluate(s.Site)
		if cost != s.Cost || weight != s.Weight || !slices.Equal(over, s.Over) {
			t.Errorf("%s: %d, %d, %v; evaluated as %d, %d, %v", c.name, s.Cost, s.Weight, s.Over, cost, weight, over)
		}
		flow := Solve(p, Options{Nodes: -1})
		if s.Bound > flow.Cost || flow.Bound > s.Cost {
			t.Errorf("%s: by prices %d to %d, by flow %d to %d", c.name, s.Bound, s.Cost, flow.Bound, flow.Cost)
		}
		t.Logf("%-30s gap %.2g in %d rounds; by flow %.2g", c.name, s.Gap(), s.Rounds, flow.Gap())
		if s.Gap() > c.gap || flow.Gap() > c.gap {
			t.Errorf("%s: gap %g by prices, %g by flow, expected %g at most", c.name, s.Gap(), flow.Gap(), c.gap)
		}
	}
}

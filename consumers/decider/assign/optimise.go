package assign

import "math"

// answer is an assignment of a core and what is known about it.
type answer struct {
	slot  []int32 // by item
	value wide
	bound wide
	price []float64 // a byte
	nodes int
}

// optimise solves a core: relaxation, rounding, and branch and bound on what the
// bound leaves open, for as many nodes as there are. Nodes < 0 is for the default
// by size.
func (c *core) optimise(prices []float64, nodes int) answer {
	f, bytes := c.relax()
	p := make([]float64, f.sites)
	for j := range min(len(prices), len(p)) {
		p[j] = prices[j] * float64(bytes)
	}
	p = c.solve(f, p)
	l := c.rounded(f)
	l.improve(f, p)
	a := answer{slot: l.slot, value: c.value(l.slot), bound: c.bound(f, bytes, p)}
	root := a.bound
	a.price = make([]float64, f.sites)
	for j := range a.price {
		a.price[j] = min(p[j]/float64(bytes), c.overload)
	}
	// The first search is short: what it finds makes the second one's core less.
	for _, part := range []int{8, 1} {
		if !a.bound.less(a.value) || nodes == 0 {
			break
		}
		budget := nodes
		if nodes < 0 {
			budget = c.budget(f, p, a.value.minus(root).float())
		}
		if budget == 0 {
			break
		}
		less, was := c.without(f, p, root, a.value)
		found := less.branch(a.value, max(budget/part-a.nodes, 0), a.price)
		a.nodes += found.nodes
		if found.slot != nil {
			a.slot, a.value = c.back(f, p, less, was, found.slot), found.value
		}
		// Slots left out cost at least the value before, which is at least this one.
		a.bound = a.bound.greatest(found.bound.least(a.value))
	}
	return a
}

// budget is how many nodes take about half a second, with the slots that without
// would leave; none if they are too few to find anything.
func (c *core) budget(f *flow, prices []float64, gap float64) int {
	open := 64
	for i := range c.item {
		least := c.lowest(f, i, prices)
		for s := c.off[i]; s < c.off[i+1]; s++ {
			if c.worse(f, i, s, prices, least) <= gap {
				open++
			}
		}
	}
	if n := min(1<<15, (1<<22)/open); n >= 32 {
		return n
	}
	return 0
}

// back is an assignment of a core without some slots as one of the core.
func (c *core) back(f *flow, prices []float64, less *core, was, slot []int32) []int32 {
	out := make([]int32, c.items())
	for i := range out {
		// An item that was settled has the one slot that is worth having.
		best, value := c.off[i], math.Inf(1)
		for s := c.off[i]; s < c.off[i+1]; s++ {
			if v := c.regret(f, i, s, prices); v < value {
				best, value = s, v
			}
		}
		out[i] = best
	}
	for k, i := range less.item {
		out[i] = was[slot[k]]
	}
	return out
}

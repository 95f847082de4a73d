package assign

import (
	"cmp"
	"math"
	"slices"
)

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
	c.tighten(f, p)
	f.solve(p)
	p = slices.Clone(f.price[:f.sites])
	for j, r := range c.room {
		if r < 0 {
			p[j] = f.last // It is over already: nothing is to be had for less.
		}
	}
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
		less, was := c.without(f, p, root, a.value)
		budget := nodes
		if nodes < 0 {
			budget = less.budget()
		}
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

// budget is how many nodes take about a second.
func (c *core) budget() int { return min(1<<15, (1<<23)/(len(c.site)+64)) }

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

// search is a branch and bound, depth first. A node holds some items at a slot,
// and is bounded by its own relaxation.
type search struct {
	c      *core
	f      *flow
	bytes  int64
	budget int
	nodes  int
	best   []int32 // nil until something better than value is found
	value  wide
	open   wide // least bound of nodes not looked at
	order  []int32
}

// branch looks for an assignment that costs less than value. The bound is of all
// assignments of this core.
func (c *core) branch(value wide, budget int, prices []float64) answer {
	f, bytes := c.relax()
	f.only = slices.Repeat([]int32{-1}, c.items())
	s := &search{c: c, f: f, bytes: bytes, budget: budget, value: value, open: widest}
	for i := range c.items() {
		s.order = append(s.order, int32(i))
	}
	p := make([]float64, f.sites)
	for j := range p {
		p[j] = prices[j] * float64(bytes)
	}
	if budget > 0 {
		s.node(p)
	} else {
		s.open = wide{math.MinInt64, 0}
	}
	return answer{slot: s.best, value: s.value, bound: s.open.least(s.value), nodes: s.nodes}
}

func (s *search) node(prices []float64) {
	s.nodes++
	f, c := s.f, s.c
	c.tighten(f, prices)
	f.solve(prices)
	p := slices.Clone(f.price[:f.sites])
	bound := c.bound(f, s.bytes, p)
	if !bound.less(s.value) {
		return
	}
	item, slots := s.choose(p)
	l := c.rounded(f)
	for n := 0; n < passes && l.moves(s.order) > 0; n++ {
	}
	if v := c.value(l.slot); v.less(s.value) {
		s.best, s.value = l.slot, v
	}
	if item < 0 {
		return // All is held: the assignment of this node has been valued.
	}
	least := math.Inf(1)
	for _, e := range slots {
		least = min(least, e.cost)
	}
	for _, e := range slots {
		step := e.cost - least - 1e-9*math.Abs(e.cost) - 1
		switch {
		case step > 0 && !bound.plus(wideOfFloat(step)).less(s.value):
			continue // Its price alone is too much.
		case s.nodes >= s.budget:
			s.open = s.open.least(bound)
			continue
		}
		f.only[item] = e.slot
		s.node(p)
		f.only[item] = -1
	}
}

type branchSlot struct {
	slot  int32
	share int64
	cost  float64
}

// choose is the item to branch on and its slots, most share first: the split one
// with the most load off its main site; without one, the free item with the most
// load. It is -1 if all are held.
func (s *search) choose(prices []float64) (item int, slots []branchSlot) {
	f := s.f
	item = -1
	var most int64
	for i, w := range f.load {
		if !f.split(i) {
			continue
		}
		var main int64
		for _, v := range f.shares[-1-f.at[i]] {
			main = max(main, v)
		}
		if w-main > most {
			item, most = i, w-main
		}
	}
	for i, w := range s.c.load {
		if item < 0 || most == 0 {
			if !f.held(i) && (item < 0 || w > s.c.load[item]) {
				item = i
			}
		}
	}
	if item < 0 {
		return -1, nil
	}
	for t := f.off[item]; t < f.off[item+1]; t++ {
		slots = append(slots, branchSlot{t, f.amount(int32(item), t), s.c.regret(f, item, t, prices)})
	}
	slices.SortStableFunc(slots, func(a, b branchSlot) int {
		return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(a.cost, b.cost))
	})
	return item, slots
}

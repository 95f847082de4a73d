package assign

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// search is a branch and bound, least bound first. A node holds some items at a
// slot each, and is bounded by its own relaxation. After a node comes its most
// likely child, so that whole assignments are found early.
type search struct {
	c     *core
	f     *flow
	bytes int64
	nodes int
	best  []int32 // nil until something better than value is found
	value wide
	open  frontier
	order []int32 // the items, for rounds of moves
}

// node is one that is to be looked at: its parent's holds and one more.
type node struct {
	parent *node
	item   int32 // -1 for the root
	slot   int32
	number int       // by birth
	bound  wide      // of the parent, and what the slot costs above its others
	prices []float64 // of the parent
}

// branch looks for an assignment that costs less than value. The bound is of all
// assignments of this core.
func (c *core) branch(value wide, budget int, prices []float64) answer {
	f, bytes := c.relax()
	f.only = slices.Repeat([]int32{-1}, c.items())
	s := &search{c: c, f: f, bytes: bytes, value: value}
	for i := range c.items() {
		s.order = append(s.order, int32(i))
	}
	p := make([]float64, f.sites)
	for j := range p {
		p[j] = prices[j] * float64(bytes)
	}
	next := &node{item: -1, prices: p, bound: wide{math.MinInt64, 0}}
	born := 0
	for ; s.nodes < budget; s.nodes++ {
		if next == nil {
			if len(s.open) == 0 || !s.open[0].bound.less(s.value) {
				break
			}
			next = heap.Pop(&s.open).(*node)
		}
		children := s.visit(next)
		next = nil
		for k, child := range children {
			born++
			if child.number = born; k == 0 {
				next = child
			} else {
				heap.Push(&s.open, child)
			}
		}
	}
	if next != nil {
		heap.Push(&s.open, next)
	}
	least := s.value
	if len(s.open) > 0 {
		least = least.least(s.open[0].bound)
	}
	return answer{slot: s.best, value: s.value, bound: least, nodes: s.nodes}
}

// visit solves a node's relaxation, and returns what is left to be looked at of
// it, the most likely first.
func (s *search) visit(n *node) []*node {
	f, c := s.f, s.c
	for i := range f.only {
		f.only[i] = -1
	}
	for h := n; h.item >= 0; h = h.parent {
		f.only[h.item] = h.slot
	}
	p := c.solve(f, n.prices)
	bound := c.bound(f, s.bytes, p).greatest(n.bound)
	if !bound.less(s.value) {
		return nil
	}
	s.round()
	item, slots := s.choose(p)
	if item < 0 {
		return nil // All is held: round has found nothing that costs more.
	}
	least := math.Inf(1)
	for _, e := range slots {
		least = min(least, e.cost)
	}
	var children []*node
	for _, e := range slots {
		child := &node{parent: n, item: int32(item), slot: e.slot, bound: bound, prices: p}
		// Rounding mustn't lift a bound.
		if step := e.cost - least - float64(1e-9*math.Abs(e.cost)) - 1; step > 0 {
			child.bound = bound.plus(wideOfFloat(step))
		}
		if child.bound.less(s.value) {
			children = append(children, child)
		}
	}
	return children
}

// round makes a whole assignment of the relaxation, which is kept if it is the
// best so far. It need not keep to what is held.
func (s *search) round() {
	l := s.c.rounded(s.f)
	for range passes {
		if l.moves(s.order) == 0 && (len(s.order) > nearby/4 || l.exchanges(s.order) == 0) {
			break
		}
	}
	if v := s.c.value(l.slot); v.less(s.value) {
		s.best, s.value = l.slot, v
	}
}

// frontier is a heap of nodes, the least bound first, of equal ones the youngest.
type frontier []*node

func (q frontier) Len() int { return len(q) }
func (q frontier) Less(a, b int) bool {
	if q[a].bound != q[b].bound {
		return q[a].bound.less(q[b].bound)
	}
	return q[a].number > q[b].number
}
func (q frontier) Swap(a, b int) { q[a], q[b] = q[b], q[a] }
func (q *frontier) Push(v any)   { *q = append(*q, v.(*node)) }
func (q *frontier) Pop() any {
	last := len(*q) - 1
	v := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return v
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

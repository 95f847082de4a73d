package assign

import (
	"math"
	"slices"
)

// flow is the relaxation: items may be split between sites. It is a
// transportation problem, and is solved exactly, by shortest augmenting paths
// with potentials [Ahuja, Magnanti, Orlin: Network Flows, §9.7] on a graph of the
// sites and one sink. An arc from site a to b is the item on a that goes to b for
// the least cost a unit of load; a heap for each pair of sites knows it. The
// potential of a site is the price of a unit of load there.
//
// A site's load costs 0 a unit up to first, middle up to second and last beyond.
type flow struct {
	sites  int
	load   []int64   // by item, > 0
	off    []int32   // by item and one more: its slots
	site   []uint16  // by slot, of one item all different
	unit   []float64 // by slot: cost a unit of load
	only   []int32   // by item: the slot it is held at, or -1; nil holds none
	first  []int64
	second []int64
	middle []float64
	last   float64
	left   []int64 // by site: room that held items leave; nil if it isn't used

	at     []int32   // by item: its slot, or -1-k of shares[k]
	shares [][]int64 // of a split item: load by slot
	free   []int32   // shares that nobody uses
	heaps  [][]arc   // by site from, site to
	heaped []bool
	arena  []arc
	count  []int32
	price  []float64 // potentials: sites, then the sink
	excess []int64   // sites, then the sink
	sunk   []int64   // by site: load that has gone to the sink
	path   paths
	steps  int // augmentations of the last solve
}

// arc is an item that may go from one of its slots to another.
type arc struct {
	key      float64
	item     int32
	from, to uint16 // slots, counted from the item's first
}

// paths are what a search for the nearest deficit keeps by node.
type paths struct {
	dist []float64
	done []bool
	prev []int32
	by   []arc
}

// ready makes room for the state; what has been made before is used again.
func (f *flow) ready() {
	n, nodes := len(f.load), f.sites+1
	f.at = slices.Grow(f.at[:0], n)[:n]
	if f.heaps == nil {
		f.heaps = make([][]arc, f.sites*f.sites)
		f.heaped = make([]bool, f.sites*f.sites)
		f.count = make([]int32, f.sites*f.sites)
		f.price, f.excess, f.sunk = make([]float64, nodes), make([]int64, nodes), make([]int64, f.sites)
		f.path = paths{make([]float64, nodes), make([]bool, nodes), make([]int32, nodes), make([]arc, nodes)}
	}
	f.free = f.free[:0]
	for k := range f.shares {
		f.free = append(f.free, int32(k))
	}
	clear(f.excess)
	clear(f.heaped)
	clear(f.count)
	f.steps = 0
}

// solve starts at prices, which may be any within [0, last]; the nearer to the
// answer, the fewer steps.
func (f *flow) solve(prices []float64) {
	f.ready()
	for j := range f.sites {
		f.price[j] = min(max(prices[j], 0), f.last)
	}
	f.price[f.sites] = 0
	var total int64
	for i, w := range f.load {
		s := f.cheapest(i)
		f.at[i] = s
		a := int(f.site[s])
		f.excess[a] += w
		total += w
		if f.held(i) {
			continue
		}
		for t := f.off[i]; t < f.off[i+1]; t++ {
			f.count[a*f.sites+int(f.site[t])]++
		}
	}
	f.fill()
	f.excess[f.sites] = -total
	for j := range f.sites {
		f.sunk[j] = f.begin(j)
		f.excess[j] -= f.sunk[j]
		f.excess[f.sites] += f.sunk[j]
	}
	// Each step uses up a share, a segment or an excess. The limit is far beyond
	// what happens; a flow that ends early is still one to round, at prices that
	// bound.
	for limit := 64*(len(f.load)+f.sites) + 1<<16; f.steps < limit; f.steps++ {
		target := f.nearest()
		if target < 0 {
			break
		}
		f.augment(target)
	}
	for j := range f.sites {
		f.price[j] = min(max(f.price[j]-f.price[f.sites], 0), f.last)
	}
	f.price[f.sites] = 0
}

func (f *flow) held(i int) bool { return f.only != nil && f.only[i] >= 0 }

// cheapest is the slot of least cost at the prices, the first one of several.
func (f *flow) cheapest(i int) int32 {
	if f.held(i) {
		return f.only[i]
	}
	best, value := f.off[i], math.Inf(1)
	for s := f.off[i]; s < f.off[i+1]; s++ {
		if v := f.unit[s] + f.price[f.site[s]]; v < value {
			best, value = s, v
		}
	}
	return best
}

// fill puts all arcs of whole items into heaps, side by side in one arena.
func (f *flow) fill() {
	var sum int
	for _, c := range f.count {
		sum += int(c)
	}
	f.arena = slices.Grow(f.arena[:0], sum)[:sum]
	var o int
	for k, c := range f.count {
		f.heaps[k] = f.arena[o : o : o+int(c)]
		o += int(c)
	}
	for i := range f.load {
		if !f.held(i) {
			f.offer(int32(i), f.at[i], false)
		}
	}
}

// offer enters the arcs of an item that has come to a slot.
func (f *flow) offer(i, from int32, sift bool) {
	lo, a := f.off[i], int(f.site[from])*f.sites
	for t := lo; t < f.off[i+1]; t++ {
		if t == from {
			continue
		}
		k := a + int(f.site[t])
		f.heaps[k] = append(f.heaps[k], arc{f.unit[t] - f.unit[from], i, uint16(from - lo), uint16(t - lo)})
		if sift && f.heaped[k] {
			siftUp(f.heaps[k])
		}
	}
}

// begin is what a site sends to the sink at its starting price.
func (f *flow) begin(j int) int64 {
	p, has, lo, hi := f.price[j], f.excess[j], f.first[j], f.second[j]
	switch {
	case p <= 0:
		return min(has, lo)
	case p >= f.last:
		return max(has, hi)
	case lo == hi || p < f.middle[j]:
		return lo
	case p > f.middle[j]:
		return hi
	}
	return min(max(has, lo), hi)
}

// more is what the next unit into the sink costs, and for how many; less the
// same for the last one.
func (f *flow) more(j int) (cost float64, room int64) {
	switch s := f.sunk[j]; {
	case s < f.first[j]:
		return 0, f.first[j] - s
	case s < f.second[j]:
		return f.middle[j], f.second[j] - s
	}
	return f.last, math.MaxInt64
}

func (f *flow) less(j int) (cost float64, room int64) {
	switch s := f.sunk[j]; {
	case s > f.second[j]:
		return f.last, s - f.second[j]
	case s > f.first[j]:
		return f.middle[j], s - f.first[j]
	default:
		return 0, s
	}
}

// nearest finds the deficit nearest to any excess (Dijkstra from all of them at
// once) and moves the potentials on, or returns -1 if nothing is in excess.
func (f *flow) nearest() int {
	p, nodes := &f.path, f.sites+1
	some := false
	for v := range nodes {
		p.dist[v], p.done[v], p.prev[v] = math.Inf(1), false, -1
		if f.excess[v] > 0 {
			p.dist[v], some = 0, true
		}
	}
	if !some {
		return -1
	}
	for {
		u := -1
		for v := range nodes {
			if !p.done[v] && (u < 0 || p.dist[v] < p.dist[u]) {
				u = v
			}
		}
		if u < 0 || math.IsInf(p.dist[u], 1) {
			return -1
		}
		p.done[u] = true
		if f.excess[u] < 0 {
			d := p.dist[u]
			for v := range nodes {
				if p.dist[v] < d {
					f.price[v] += d - p.dist[v]
				}
			}
			return u
		}
		f.relax(u)
	}
}

// relax looks along all arcs out of u. Lengths are reduced by the potentials, so
// none is negative but by rounding.
func (f *flow) relax(u int) {
	p, sink := &f.path, f.sites
	base := p.dist[u]
	if u == sink {
		for j := range f.sites {
			if cost, room := f.less(j); room > 0 && !p.done[j] {
				if d := base + max(f.price[j]-f.price[sink]-cost, 0); d < p.dist[j] {
					p.dist[j], p.prev[j] = d, int32(u)
				}
			}
		}
		return
	}
	cost, _ := f.more(u)
	if d := base + max(cost+f.price[sink]-f.price[u], 0); !p.done[sink] && d < p.dist[sink] {
		p.dist[sink], p.prev[sink] = d, int32(u)
	}
	for j := range f.sites {
		if p.done[j] {
			continue
		}
		top, ok := f.top(u*f.sites + j)
		if !ok {
			continue
		}
		if d := base + max(top.key+f.price[j]-f.price[u], 0); d < p.dist[j] {
			p.dist[j], p.prev[j], p.by[j] = d, int32(u), top
		}
	}
}

// top is the cheapest arc of a pair of sites; arcs of items that have left are
// thrown out here.
func (f *flow) top(k int) (arc, bool) {
	h := f.heaps[k]
	if len(h) == 0 {
		return arc{}, false
	}
	if !f.heaped[k] {
		for i := len(h)/2 - 1; i >= 0; i-- {
			siftDown(h, i)
		}
		f.heaped[k] = true
	}
	for len(h) > 0 && f.amount(h[0].item, f.off[h[0].item]+int32(h[0].from)) == 0 {
		h[0] = h[len(h)-1]
		h = h[:len(h)-1]
		siftDown(h, 0)
	}
	f.heaps[k] = h
	if len(h) == 0 {
		return arc{}, false
	}
	return h[0], true
}

// augment sends as much as fits along the path to target.
func (f *flow) augment(target int) {
	p, sink := &f.path, f.sites
	amount := -f.excess[target]
	v := target
	for p.prev[v] >= 0 {
		u := int(p.prev[v])
		var room int64
		switch {
		case v == sink:
			_, room = f.more(u)
		case u == sink:
			_, room = f.less(v)
		default:
			room = f.amount(p.by[v].item, f.off[p.by[v].item]+int32(p.by[v].from))
		}
		amount = min(amount, room)
		v = u
	}
	amount = min(amount, f.excess[v])
	f.excess[v] -= amount
	f.excess[target] += amount
	for v = target; p.prev[v] >= 0; v = int(p.prev[v]) {
		u := int(p.prev[v])
		switch {
		case v == sink:
			f.sunk[u] += amount
		case u == sink:
			f.sunk[v] -= amount
		default:
			f.shift(p.by[v], amount)
		}
	}
}

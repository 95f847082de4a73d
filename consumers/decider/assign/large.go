package assign

import (
	"math"
	"slices"
)

const (
	// slots is how many sites a candidate of the repair may choose from; some of
	// them are chosen as if sites that aren't full cost nothing.
	slots, vacant = 8, 3
	// candidates is how many items a repair looks at again at most.
	candidates = 1 << 18
)

// large solves a problem whose rows are not held: prices from a sample, one pass
// over all rows at these, which bounds as well, and repair by the items that lose
// least.
func (p *Problem) large(o Options, total int64) *Solution {
	prices, jitter := p.sample(o, total)
	t := terms{room: p.Room, overload: p.Overload, jitter: jitter, least: slices.Min(p.Room)}
	var best *Solution
	var cost wide
	bound := wide{math.MinInt64, 0}
	for round := 1; round <= o.Rounds; round++ {
		t.prices = prices
		r := p.pass(t, total)
		if bound.less(r.bound) {
			bound = r.bound
		}
		s := &Solution{Site: r.site, Prices: prices, Method: MethodPrices}
		value, next := p.repair(r, t, o.Goal, s)
		s.Cost = value.int64()
		if best == nil || value.less(cost) {
			best, cost = s, value
		}
		best.Rounds = round
		if best.close(cost, bound).Gap() <= o.Goal {
			break
		}
		prices = next
	}
	return best
}

// pass is what one reading of all rows at some prices tells.
type pass struct {
	site   []uint16  // by item: where it costs least
	second []uint16  // and next to that
	regret []float32 // and what a byte loses there
	used   []int64   // by site
	weight wide
	bound  wide
}

// tally is what a worker adds up. All of it is whole numbers, so that it doesn't
// matter who adds what.
type tally struct {
	out    []int64
	used   []int64
	weight wide
	dual   wide
	least  wide
	_      [64]byte // Workers don't share a cache line.
}

// terms are what sites ask for, besides an item's costs.
type terms struct {
	room     []int64
	overload float64
	prices   []float64
	jitter   float64 // cost a byte
	least    int64   // of the rooms
}

// value is what an item costs at a site: its cost there, the price of what fits,
// and overload for what alone is more than the room.
func (t *terms) value(cost int64, j int, load int64) float64 {
	v := float64(cost) + float64(t.prices[j]*float64(load))
	if load > t.least {
		v += t.surcharge(j, load)
	}
	return v
}

func (t *terms) surcharge(j int, load int64) float64 {
	return float64((t.overload - t.prices[j]) * float64(max(load-t.room[j], 0)))
}

// pass gives each item its best site at the prices. Sites that are as good as the
// best but for jitter a byte are drawn by lot: many items without a preference
// would otherwise all go one way, and no price could part them.
func (p *Problem) pass(at terms, total int64) *pass {
	n, m := len(p.Load), p.Sites
	r := &pass{
		site: make([]uint16, n), second: make([]uint16, n), regret: make([]float32, n), used: make([]int64, m),
	}
	free := true
	for _, v := range at.prices {
		free = free && v == 0
	}
	if free {
		at.jitter = 0 // Least costs are the optimum if they fit; only equal ones are drawn.
	}
	by := make([]tally, p.Workers)
	inBlocks(p.Workers, n, func(worker, lo, hi int) {
		t := &by[worker]
		if t.out == nil {
			t.out, t.used = make([]int64, min(block, n)*m), make([]int64, m)
		}
		p.Rows(worker, lo, hi, t.out[:(hi-lo)*m])
		for i := lo; i < hi; i++ {
			r.place(t, i, p.Load[i], t.out[(i-lo)*m:(i-lo+1)*m], &at)
		}
	})
	var least wide
	for _, t := range by {
		for j, v := range t.used {
			r.used[j] += v
		}
		r.weight, r.bound, least = r.weight.plus(t.weight), r.bound.plus(t.dual), least.plus(t.least)
	}
	for j, v := range at.prices {
		r.bound = r.bound.minus(priceUp(v, min(p.Room[j], total)))
	}
	// Least costs bound too, and better where prices are made of jitter.
	r.bound = r.bound.greatest(least)
	return r
}

// place finds the best two sites of an item and counts it.
func (r *pass) place(t *tally, i int, load int64, row []int64, at *terms) {
	r.site[i], r.second[i], r.regret[i] = NoSite, NoSite, float32(math.Inf(1))
	if load == 0 {
		if j := least(row); j != NoSite {
			r.site[i] = j
			v := wideOf(row[j])
			t.weight, t.dual, t.least = t.weight.plus(v), t.dual.plus(v), t.least.plus(v)
		}
		return
	}
	w := float64(load)
	x := noTwo()
	lowest := int64(Forbidden)
	for j, c := range row {
		if c == Forbidden {
			continue
		}
		lowest = min(lowest, c)
		x.take(j, at.value(c, j, load))
	}
	if x.first == NoSite {
		return
	}
	t.least = t.least.plus(wideOf(lowest))
	// A cost and its price are rounded by a part in 2^52; the bound gives way.
	t.dual = t.dual.plus(wideOfFloat(math.Floor(x.best - x.best*0x1p-50)))
	if lift := at.jitter * w; x.next-x.best <= lift {
		x = draw(i, load, row, at, x.best, lift)
	}
	r.site[i], r.second[i] = uint16(x.first), uint16(x.second)
	r.regret[i] = float32((x.next - x.best) / w)
	t.used[x.first] += load
	t.weight = t.weight.plus(wideOf(row[x.first]))
}

// bestTwo are the best two sites of an item, the earlier of equal ones first, and
// their values.
type bestTwo struct {
	first, second int
	best, next    float64
}

func noTwo() bestTwo { return bestTwo{NoSite, NoSite, math.Inf(1), math.Inf(1)} }

// take looks at one more site.
func (x *bestTwo) take(site int, v float64) {
	switch {
	case v >= x.next:
	case v < x.best:
		x.second, x.next = x.first, x.best
		x.first, x.best = site, v
	default:
		x.second, x.next = site, v
	}
}

// draw is the best two sites once a lot of up to lift is added to each cost.
func draw(i int, load int64, row []int64, at *terms, least, lift float64) bestTwo {
	two := noTwo()
	width := lift
	if width == 0 {
		width = 1e-3 // Only equal ones have a lot, and any width parts them.
	}
	for j, c := range row {
		if c == Forbidden {
			continue
		}
		v := at.value(c, j, load)
		if lift > 0 || v == least {
			v += float64(width * lot(i, j, len(row)))
		}
		two.take(j, v)
	}
	return two
}

// repair solves again for the items that are best moved to get all sites within
// their rooms, all others staying; for ever more of them, as long as that leaves a
// gap. It returns what the solution costs then, and better prices.
func (p *Problem) repair(r *pass, at terms, goal float64, s *Solution) (value wide, next []float64) {
	left := make([]int64, p.Sites)
	for j, v := range r.used {
		left[j] = p.Room[j] - v
	}
	c := newCore(left, p.Overload)
	c.settled = r.weight
	value, next = c.value(nil), at.prices
	var a answer
	last := 0
	for times := 2.0; times <= 512; times *= 4 {
		picked := p.pick(r, at.prices, times)
		if len(picked) <= last {
			break
		}
		last = len(picked)
		d := newCore(left, p.Overload)
		d.settled = r.weight
		p.again(d, r, picked, &at)
		b := d.optimise(at.prices, 0)
		if next = b.price; b.value.less(value) {
			value, c, a = b.value, d, b
		}
		if value.minus(r.bound).float() <= goal/8*math.Abs(r.bound.float()) || last == candidates {
			break
		}
	}
	for k, i := range c.item {
		from, to := r.site[i], c.site[a.slot[k]]
		r.site[i] = to
		left[from] += p.Load[i]
		left[to] -= p.Load[i]
	}
	s.Over = make([]int64, p.Sites)
	var beyond int64
	for j, v := range left {
		s.Over[j] = max(0, -v)
		beyond += s.Over[j]
	}
	s.Weight = value.minus(priceUp(p.Overload, beyond)).int64()
	return value, next
}

// again reads the rows of picked items and makes them a core: each has its site
// the ones next best at the prices, and the best of those with room.
func (p *Problem) again(c *core, r *pass, picked []int32, at *terms) {
	m := p.Sites
	keep := min(slots, m)
	site, cost := make([]uint16, len(picked)*keep), make([]int64, len(picked)*keep)
	have := make([]uint8, len(picked))
	type row struct {
		cost  []int64
		value []float64
	}
	rows := make([]row, p.Workers)
	inBlocks(p.Workers, len(picked), func(worker, lo, hi int) {
		r0 := &rows[worker]
		if r0.cost == nil {
			*r0 = row{make([]int64, m), make([]float64, m)}
		}
		for k := lo; k < hi; k++ {
			i := int(picked[k])
			p.Rows(worker, i, i+1, r0.cost)
			for j, c := range r0.cost {
				// Without the lots, items that are alike would all choose from the same.
				r0.value[j] = at.value(c, j, p.Load[i]) + float64(at.jitter*float64(p.Load[i])*lot(i, j, m))
				if c == Forbidden {
					r0.value[j] = math.Inf(1)
				}
			}
			r0.value[r.site[i]] = math.Inf(-1)
			n := k * keep
			n += nearest(r0.value, r0.cost, site[n:n+keep-min(vacant, keep-1)], cost[n:])
			for _, j := range site[k*keep : n] {
				r0.value[j] = math.Inf(1)
			}
			for j, v := range r.used {
				if v < p.Room[j] {
					r0.value[j] -= float64(at.prices[j] * float64(p.Load[i]))
				}
			}
			n += nearest(r0.value, r0.cost, site[n:(k+1)*keep], cost[n:])
			have[k] = uint8(n - k*keep)
		}
	})
	for k, i := range picked {
		lo := len(c.site)
		for t := range int(have[k]) {
			c.site, c.cost = append(c.site, site[k*keep+t]), append(c.cost, cost[k*keep+t])
		}
		// What the pass has counted is taken back; with one slot, add counts it again.
		c.room[r.site[i]] += p.Load[i]
		c.settled = c.settled.minus(wideOf(c.cost[lo]))
		c.add(i, p.Load[i])
	}
}

// nearest writes the sites of least value, in order, and returns how many there
// are; infinite is none.
func nearest(value []float64, costs []int64, site []uint16, cost []int64) int {
	n := 0
	for j, v := range value {
		if n == len(site) && v >= value[site[n-1]] || math.IsInf(v, 1) {
			continue
		}
		n = min(n+1, len(site))
		k := n - 1
		for ; k > 0 && v < value[site[k-1]]; k-- {
			site[k], cost[k] = site[k-1], cost[k-1]
		}
		site[k], cost[k] = uint16(j), costs[j]
	}
	return n
}

package assign

import (
	"math"
	"slices"
)

// core is a problem in memory: items that have a choice, with their slots (sites
// where they may be), and what the items left out of it have settled.
type core struct {
	overload float64
	item     []int32  // by item: its index in the problem
	load     []int64  // by item, > 0, bytes
	off      []int32  // by item and one more
	site     []uint16 // by slot, of one item all different
	cost     []int64  // by slot
	room     []int64  // by site: what is left for these items, negative if already over
	settled  wide     // cost of the items left out, without overload
	beyond   int64    // bytes that are over wherever these items go, counted in no load
}

func newCore(room []int64, overload float64) *core {
	return &core{overload: overload, room: slices.Clone(room), off: []int32{0}}
}

// add appends an item with the slots that have been appended to site and cost.
// One with a single slot is settled at once; with none, nothing happens.
func (c *core) add(item int32, load int64) {
	lo := int(c.off[len(c.off)-1])
	if len(c.site)-lo >= 2 {
		c.item, c.load, c.off = append(c.item, item), append(c.load, load), append(c.off, int32(len(c.site)))
		return
	}
	if len(c.site) > lo {
		c.room[c.site[lo]] -= load
		c.settled = c.settled.plus(wideOf(c.cost[lo]))
	}
	c.site, c.cost = c.site[:lo], c.cost[:lo]
}

func (c *core) items() int { return len(c.item) }

// value is what an assignment costs, all in all: by item its slot.
func (c *core) value(slot []int32) wide {
	left, sum := slices.Clone(c.room), c.settled
	for i, s := range slot {
		left[c.site[s]] -= c.load[i]
		sum = sum.plus(wideOf(c.cost[s]))
	}
	over := c.beyond
	for _, v := range left {
		over += max(0, -v)
	}
	return sum.plus(priceUp(c.overload, over))
}

// same reports whether all items have one load. Then a unit of the flow is an
// item instead of a byte, so that no item is split: the relaxation is exact.
func (c *core) same() bool {
	for _, w := range c.load {
		if w != c.load[0] {
			return false
		}
	}
	return len(c.load) > 0
}

// relax makes the flow of the core, and tells how many bytes its unit has.
func (c *core) relax() (f *flow, bytes int64) {
	m := len(c.room)
	f = &flow{
		sites: m, load: c.load, off: c.off, site: c.site, unit: make([]float64, len(c.site)),
		first: make([]int64, m), second: make([]int64, m), middle: make([]float64, m), last: c.overload,
	}
	bytes = 1
	if c.same() {
		bytes = c.load[0]
		f.load = slices.Repeat([]int64{1}, len(c.load))
		f.last = c.overload * float64(bytes)
	}
	var total int64
	for i, w := range f.load {
		total += w
		for s := f.off[i]; s < f.off[i+1]; s++ {
			f.unit[s] = float64(c.cost[s]) / float64(w)
		}
	}
	for j, r := range c.room {
		r = max(r, 0)
		f.first[j], f.second[j] = min(r/bytes, total), min(r/bytes, total)
		if part := r % bytes; part > 0 && f.first[j] < total {
			f.second[j]++
			f.middle[j] = c.overload * float64(bytes-part)
		}
	}
	return f, bytes
}

// excessOf is the part of an item's load that is over at a site for certain,
// because the item alone is more than what items that are held leave there. An
// item that costs a price for what fits and overload for its excess costs at most
// what it adds: if it is there, all other load of the site is over as well. A
// bound with this is the better the less room there is, as in a knapsack.
func (f *flow) excessOf(i int, s int32) int64 {
	if f.left == nil || f.held(i) {
		return 0
	}
	return max(0, f.load[i]-f.left[f.site[s]])
}

// solve solves the flow with what the held items leave: the excess of all others
// costs what it costs above the prices to begin with. It returns its prices.
func (c *core) solve(f *flow, prices []float64) []float64 {
	if c.same() {
		f.solve(prices) // Whole items are exact already.
		return c.full(f, c.room, f.price)
	}
	if f.left == nil {
		f.left = make([]int64, f.sites)
	}
	copy(f.left, c.room)
	for i, w := range f.load {
		if f.held(i) {
			f.left[f.site[f.only[i]]] -= w
		}
	}
	for j := range f.left {
		f.left[j] = max(f.left[j], 0)
	}
	prices = c.full(f, f.left, prices)
	for i, w := range f.load {
		for s := f.off[i]; s < f.off[i+1]; s++ {
			f.unit[s] = (float64(c.cost[s]) + c.surcharge(f, i, s, prices)) / float64(w)
		}
	}
	f.solve(prices)
	return c.full(f, f.left, f.price)
}

// full is a copy of prices with those of sites that have nothing left at the most
// there is: nothing is to be had there for less, and no bound is the worse for it.
func (c *core) full(f *flow, left []int64, prices []float64) []float64 {
	p := slices.Clone(prices[:f.sites])
	for j, v := range left {
		if v <= 0 {
			p[j] = f.last
		}
	}
	return p
}

// surcharge is what an item's excess costs above its price.
func (c *core) surcharge(f *flow, i int, s int32, prices []float64) float64 {
	x := f.excessOf(i, s)
	if x == 0 {
		return 0
	}
	return float64((f.last - prices[f.site[s]]) * float64(x))
}

// bound is the Lagrangian dual of the core at the flow's prices: no assignment
// that keeps what the flow holds costs less. It is computed in whole numbers of
// 2^-shift units, so that no rounding can lift it; prices that are rounded are
// still prices.
func (c *core) bound(f *flow, bytes int64, prices []float64) wide {
	shift := c.shift(f)
	overload := fixed(c.overload, shift)
	// From the exact product: the flow's own may have been rounded up.
	last := min(fixed(f.last, shift), product(overload, bytes).int64())
	price := make([]int64, f.sites)
	sum := product(overload, c.beyond)
	for j := range price {
		price[j] = min(fixed(prices[j], shift), last)
		sum = sum.minus(c.conjugate(f, j, price[j], overload, bytes))
		if c.room[j] < 0 {
			sum = sum.plus(product(overload, -c.room[j]))
		}
	}
	for i, w := range f.load {
		lo, hi := f.off[i], f.off[i+1]
		if f.held(i) {
			lo, hi = f.only[i], f.only[i]+1
		}
		least := widest
		for s := lo; s < hi; s++ {
			x := f.excessOf(i, s)
			v := wideOf(c.cost[s]).up(shift).plus(product(price[f.site[s]], w-x))
			if x > 0 {
				v = v.plus(product(overload, x))
			}
			least = least.least(v)
		}
		sum = sum.plus(least)
	}
	return sum.downUp(shift).plus(c.settled)
}

// fixed is a price in whole numbers of 2^-shift, rounded down, of 62 bits at most.
func fixed(price float64, shift uint) int64 {
	return int64(math.Floor(min(max(math.Ldexp(price, int(shift)), 0), 1<<62)))
}

// conjugate is the most that load at a site can bring at a price, above what it
// costs there.
func (c *core) conjugate(f *flow, j int, price, overload, bytes int64) wide {
	most := wide{}.greatest(product(price, f.first[j]))
	if f.second[j] > f.first[j] {
		part := bytes - max(c.room[j], 0)%bytes
		most = most.greatest(product(price, f.second[j]).minus(product(overload, part)))
	}
	return most
}

// shift is the greatest for which prices fit 62 bits, and sums 124.
func (c *core) shift(f *flow) uint {
	var total, cost float64
	over := float64(c.beyond)
	for i, w := range f.load {
		total += float64(w)
		var most int64
		for s := f.off[i]; s < f.off[i+1]; s++ {
			most = max(most, c.cost[s], -c.cost[s])
		}
		cost += float64(most)
	}
	for j, r := range c.room {
		over += float64(max(-r, 0))
		total += float64(f.second[j])
	}
	log := func(v float64) int { _, e := math.Frexp(v); return e }
	s := min(60, 61-log(f.last), 61-log(c.overload), 122-log(cost), 122-log(f.last*total), 122-log(c.overload*over))
	return uint(max(s, 0))
}

// without is the core less the slots that no assignment better than value can
// have, by the flow's prices (each costs its regret more than the bound), and
// tells which slot each slot was.
func (c *core) without(f *flow, prices []float64, bound, value wide) (less *core, was []int32) {
	gap := value.minus(bound).float()
	less = newCore(c.room, c.overload)
	less.settled, less.beyond = c.settled, c.beyond
	for i, w := range c.load {
		least, lo := c.lowest(f, i, prices), len(less.site)
		for s := c.off[i]; s < c.off[i+1]; s++ {
			if c.worse(f, i, s, prices, least) <= gap {
				less.site, less.cost = append(less.site, c.site[s]), append(less.cost, c.cost[s])
				was = append(was, s)
			}
		}
		one := len(less.site)-lo == 1
		less.add(int32(i), w)
		if one {
			was = was[:lo]
		}
	}
	return less, was
}

// regret is what a slot costs with its price, and its excess.
func (c *core) regret(f *flow, i int, s int32, prices []float64) float64 {
	return float64(c.cost[s]) + float64(prices[c.site[s]]*float64(f.load[i])) + c.surcharge(f, i, s, prices)
}

// lowest is what an item's best slot costs so.
func (c *core) lowest(f *flow, i int, prices []float64) float64 {
	least := math.Inf(1)
	for s := c.off[i]; s < c.off[i+1]; s++ {
		least = min(least, c.regret(f, i, s, prices))
	}
	return least
}

// worse is how much more a slot costs than the least, less what rounding may add.
func (c *core) worse(f *flow, i int, s int32, prices []float64, least float64) float64 {
	v := c.regret(f, i, s, prices)
	return v - least - float64(1e-9*math.Abs(v)) - 1
}

package line

import (
	"cmp"
	"slices"
)

// order is a block's items by their due instants
//
//	u = due − PerStatic·static − PerDynamic·dynamic
//
// in s from the block's base: at a shift t of the question, see [block.late], the
// late ones are those with u < t, and their penalties are t·Σp − Σp·u, both sums
// read from the place that t has among the u. It is made for the weights of one
// question and stays until others are asked by: a server learns at every
// completion, but every arrival asks all servers.
type order struct {
	perStatic, perDynamic float64
	ordered               bool // dues and steps are of these weights
	placed                bool // dues has the items, in an order of other weights
	asked                 int  // how often the items were walked through for these weights

	dues  []due  // by u
	steps []step // one more than the dues
}

type due struct {
	u       float64
	penalty float64
	row     int32
}

// step is the sums of the dues before.
type step struct{ p, pu float64 }

// patience is how often the items are walked through before they are ordered,
// which costs as much as about that many walks. It bounds what is lost by either
// to as much again, however rarely or often is asked between two changes.
const patience = 12

// late returns the sum of p·max(0, t − due + max(0, x + PerStatic·static +
// PerDynamic·dynamic)) of the block's items, where t is now in s from its base and
// x is what Wait says of the bytes ahead of the block, in s.
//
// The kink at x + … = 0 is where the learned wait would be negative. Usually the
// whole block is on one side of it.
func (b *block) late(t, x float64, w *Wait) float64 {
	least := min(0, w.PerStatic*b.lastStatic) + min(0, w.PerDynamic*b.lastDynamic)
	most := max(0, w.PerStatic*b.lastStatic) + max(0, w.PerDynamic*b.lastDynamic)
	switch {
	case x+least >= 0:
		return b.waiting(t+x, least, most, w, x)
	case x+most <= 0:
		return b.instant(t, w, x)
	}
	return b.walk(0, t, x, w)
}

// waiting is late where nobody's wait is negative, so that it moves all alike. The
// bytes ahead in the block make between least and most s.
func (b *block) waiting(t, least, most float64, w *Wait, x float64) float64 {
	if b.perStatic != w.PerStatic || b.perDynamic != w.PerDynamic {
		b.perStatic, b.perDynamic = w.PerStatic, w.PerDynamic
		b.ordered, b.asked = false, 0
	}
	if b.ordered {
		return b.read(t)
	}
	if t <= seconds(b.soonest-b.base)-most {
		return 0
	}
	if t >= seconds(b.latest-b.base)-least {
		return max(0, t*b.p-(b.pDue-w.PerStatic*b.pStatic-w.PerDynamic*b.pDynamic))
	}
	if b.asked < patience {
		b.asked++
		return b.walk(0, t-x, x, w)
	}
	b.arrange()
	return b.read(t)
}

// instant is late where nobody's wait is positive.
func (b *block) instant(t float64, w *Wait, x float64) float64 {
	if t <= seconds(b.soonest-b.base) {
		return 0
	}
	if t >= seconds(b.latest-b.base) {
		return max(0, t*b.p-b.pDue)
	}
	return b.walk(0, t, x, w)
}

// walk is late of the rows from that one on, one by one.
func (b *block) walk(from int, t, x float64, w *Wait) float64 {
	var sum float64
	perStatic, perDynamic := w.PerStatic, w.PerDynamic
	for i := range b.rows[from:] {
		r := &b.rows[from+i]
		sum += r.penalty * max(0, t-r.due+max(0, x+perStatic*r.static+perDynamic*r.dynamic))
	}
	return sum
}

// read is late by the order.
func (b *block) read(t float64) float64 {
	n := len(b.dues)
	if t <= b.dues[0].u {
		return 0
	}
	if t < b.dues[n-1].u {
		lo := 0
		for n > 1 { // the first n from lo on have the last with u < t
			half := n >> 1
			if b.dues[lo+half].u < t {
				lo += half
			}
			n -= half
		}
		n = lo + 1
	}
	return max(0, t*b.steps[n].p-b.steps[n].pu)
}

// arrange makes the order. What was in order for other weights nearly is for these.
func (b *block) arrange() {
	n := len(b.rows)
	if !b.placed {
		b.dues = slices.Grow(b.dues[:0], n)[:n]
		b.steps = slices.Grow(b.steps[:0], n+1)[:n+1]
		for i := range b.dues {
			b.dues[i].row = int32(i)
		}
	}
	for i := range b.dues {
		d := &b.dues[i]
		r := &b.rows[d.row]
		d.u = r.due - b.perStatic*r.static - b.perDynamic*r.dynamic
		d.penalty = r.penalty
	}
	if !settle(b.dues) {
		slices.SortFunc(b.dues, func(x, y due) int { return cmp.Compare(x.u, y.u) })
	}
	var s step
	for i := range b.dues {
		b.steps[i] = s
		s.p += b.dues[i].penalty
		s.pu += b.dues[i].penalty * b.dues[i].u
	}
	b.steps[n] = s
	b.ordered, b.placed = true, true
}

// settle sorts what is nearly sorted. It gives up, and says so, where that takes
// more moves than a sort.
func settle(dues []due) bool {
	moves := 8 * len(dues)
	for i := 1; i < len(dues); i++ {
		d := dues[i]
		k := i
		for ; k > 0 && dues[k-1].u > d.u; k-- {
			dues[k] = dues[k-1]
		}
		dues[k] = d
		if moves -= i - k; moves < 0 {
			return false
		}
	}
	return true
}

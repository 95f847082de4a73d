package line

import (
	"cmp"
	"math"
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
	ordered               bool  // all below are of these weights
	asked                 int16 // how often the items were walked through for these weights
	finger                int32 // of dues, where the last question was

	dues   []due   // by u; the last is at infinity
	shifts []shift // in the order of the line
}

// due is a due instant and the sums of those before.
type due struct{ u, p, pu float64 }

// shift is an item by its place: what a question about the end of a block, to which
// most come down, reads one after another.
type shift struct {
	deadline int64
	u        float64 // of the order's weights, if it is ordered
	penalty  float64
}

type key struct {
	u   float64
	row int32
}

// patience is how often the items are walked through before they are ordered,
// which costs as much as about that many walks. It bounds what is lost by either
// to as much again, however rarely or often is asked between two changes.
const patience = 12

// late returns the sums of p·max(0, t − due + max(0, x + PerStatic·static +
// PerDynamic·dynamic)) of the block's items from that one on, for two x: where t is
// now in s from the base, and x what Wait says of the bytes ahead of the block, in
// s, without those of it and with them.
//
// The kink at x + … = 0 is where the learned wait would be negative. As a rule the
// whole block is on one side of it.
func (b *block) late(from int, now int64, w *Wait, it *Item) (sum1, sum2 float64) {
	a := &b.ahead
	t := seconds(now - a.base)
	x1 := w.of(a.static, a.dynamic)
	x2 := w.of(a.static+it.Static, a.dynamic+it.Dynamic)
	static, dynamic := w.PerStatic*a.lastStatic, w.PerDynamic*a.lastDynamic
	least, most := min(0, static)+min(0, dynamic), max(0, static)+max(0, dynamic)
	if min(x1, x2)+least < 0 {
		return b.kinked(from, t, x1, x2, w, max(x1, x2)+most <= 0)
	}
	if b.perStatic != w.PerStatic || b.perDynamic != w.PerDynamic {
		b.perStatic, b.perDynamic = w.PerStatic, w.PerDynamic
		b.ordered, b.asked = false, 0
	}
	if !b.ordered {
		if t+max(x1, x2) <= b.soon-most {
			return 0, 0
		}
		if from == 0 && t+min(x1, x2) >= b.end-least {
			sum := b.pDue - w.PerStatic*b.pStatic - w.PerDynamic*b.pDynamic
			return max(0, (t+x1)*b.p-sum), max(0, (t+x2)*b.p-sum)
		}
		if b.asked < patience {
			b.asked++
			return b.walk(from, t, x1, x2, w)
		}
		b.arrange()
	}
	if from > 0 {
		return b.pass(from, t+x1, t+x2)
	}
	b.finger = b.find(b.finger, t+x1)
	return b.dues[b.finger].late(t + x1), b.dues[b.find(b.finger, t+x2)].late(t + x2)
}

// kinked is late where some wait would be negative, or that of all.
func (b *block) kinked(from int, t, x1, x2 float64, w *Wait, all bool) (sum1, sum2 float64) {
	if all && t <= b.soon {
		return 0, 0
	}
	if all && t >= b.end && from == 0 {
		sum := max(0, t*b.p-b.pDue)
		return sum, sum
	}
	return b.walk(from, t, x1, x2, w)
}

// walk is late by the rows.
func (b *block) walk(from int, t, x1, x2 float64, w *Wait) (sum1, sum2 float64) {
	perStatic, perDynamic := w.PerStatic, w.PerDynamic
	rows := b.rows[from:]
	for i := range rows {
		r := &rows[i]
		ahead, slack := perStatic*r.static+perDynamic*r.dynamic, t-r.due
		sum1 += r.penalty * positive(slack+positive(x1+ahead))
		sum2 += r.penalty * positive(slack+positive(x2+ahead))
	}
	return sum1, sum2
}

// pass is late by the shifts.
func (b *block) pass(from int, t1, t2 float64) (sum1, sum2 float64) {
	shifts := b.shifts[from:]
	for i := range shifts {
		s := &shifts[i]
		sum1 += s.penalty * positive(t1-s.u)
		sum2 += s.penalty * positive(t2-s.u)
	}
	return sum1, sum2
}

// positive returns max(0, x) of a finite x, without a branch: half of a row are late.
func positive(x float64) float64 { return (x + math.Abs(x)) / 2 }

// late returns t·Σp − Σp·u over those before, which rounding may take below 0.
func (d *due) late(t float64) float64 { return max(0, t*d.p-d.pu) }

// find returns the first due with u ≥ t, from near where it is: time goes on by
// little from question to question.
func (b *block) find(near int32, t float64) int32 {
	dues, k := b.dues, int(near)
	for range 6 {
		switch {
		case dues[k].u < t:
			k++
		case k == 0 || dues[k-1].u < t:
			return int32(k)
		default:
			k--
		}
	}
	lo, hi := 0, len(dues)-1
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); dues[m].u < t {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return int32(lo)
}

// arrange makes the order. What was in order for other weights nearly is for these.
func (b *block) arrange() {
	n := len(b.rows)
	if !b.placed {
		b.keys = slices.Grow(b.keys[:0], n)[:n]
		b.dues = slices.Grow(b.dues[:0], n+1)[:n+1]
		for i := range b.keys {
			b.keys[i].row = int32(i)
		}
	}
	for i := range b.rows {
		r := &b.rows[i]
		b.shifts[i].u = r.due - b.perStatic*r.static - b.perDynamic*r.dynamic
	}
	for i := range b.keys {
		b.keys[i].u = b.shifts[b.keys[i].row].u
	}
	if !settle(b.keys) {
		slices.SortFunc(b.keys, func(x, y key) int { return cmp.Compare(x.u, y.u) })
	}
	var d due
	for i := range b.keys {
		k := &b.keys[i]
		d.u = k.u
		b.dues[i] = d
		p := b.shifts[k.row].penalty
		d.p += p
		d.pu += p * k.u
	}
	d.u = math.Inf(1)
	b.dues[n] = d
	b.ordered, b.placed = true, true
}

// settle sorts what is nearly sorted. It gives up, and says so, where that takes
// more moves than a sort.
func settle(keys []key) bool {
	moves := 8 * len(keys)
	for i := 1; i < len(keys); i++ {
		d := keys[i]
		k := i
		for ; k > 0 && keys[k-1].u > d.u; k-- {
			keys[k] = keys[k-1]
		}
		keys[k] = d
		if moves -= i - k; moves < 0 {
			return false
		}
	}
	return true
}

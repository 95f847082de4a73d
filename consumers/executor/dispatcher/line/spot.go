package line

import (
	"math"
	"slices"
)

// spot is a place by block: before the item at of the block, or behind its last.
type spot struct {
	block, at int
	Place
}

// fresh makes the sums of blocks that changed anew, and what is ahead of each.
func (l *Line) fresh() {
	if !l.stale {
		return
	}
	l.stale = false
	var items int
	var static, dynamic float64
	for i := range l.blocks {
		b := &l.blocks[i]
		if b.stale {
			b.renew(0, l.fade())
		}
		b.ahead.items, b.ahead.static, b.ahead.dynamic = items, static, dynamic
		items += len(b.rows)
		static += b.sums.static
		dynamic += b.sums.dynamic
	}
}

// fade returns the decay where the discipline has one, otherwise 0.
func (l *Line) fade() float64 {
	if l.discipline == Cost {
		return l.decay
	}
	return 0
}

// spot returns where the item is to be put in.
func (l *Line) spot(now int64, it *Item) spot {
	if len(l.blocks) == 0 {
		return spot{}
	}
	i, at := l.find(now, it)
	a := &l.blocks[i].ahead
	p := Place{Index: a.items + at, Static: a.static, Dynamic: a.dynamic}
	if b := l.blocks[i].store; at < len(b.rows) {
		p.Static += b.rows[at].static
		p.Dynamic += b.rows[at].dynamic
	} else {
		p.Static += b.static
		p.Dynamic += b.dynamic
	}
	return spot{i, at, p}
}

// start returns where the item is to be put in and its wait there, in s.
func (l *Line) start(now int64, it *Item, w *Wait) (block, at int, wait float64) {
	if len(l.blocks) == 0 {
		return 0, 0, w.Bias
	}
	i, at := l.find(now, it)
	b := &l.blocks[i]
	wait = w.of(b.ahead.static, b.ahead.dynamic)
	switch {
	case at == 0:
	case at == len(b.shifts):
		wait += w.PerStatic*b.sums.static + w.PerDynamic*b.sums.dynamic
	case b.ordered && b.perStatic == w.PerStatic && b.perDynamic == w.PerDynamic:
		// By what is read next anyway.
		s := &b.shifts[at]
		wait += seconds(s.deadline-b.base) - s.u
	default:
		r := &b.rows[at]
		wait += w.PerStatic*r.static + w.PerDynamic*r.dynamic
	}
	return i, at, wait
}

// find returns where the item is to be put in, in a line that is not empty.
func (l *Line) find(now int64, it *Item) (block, at int) {
	l.fresh()
	last := len(l.blocks) - 1
	switch l.discipline {
	case FIFO:
		return last, l.blocks[last].len()
	case Cheapest:
		return l.cheapest(now, it)
	case Deadline, Lateness, Cost:
	}
	// The last block that begins with an earlier or the same deadline.
	lo, hi := 0, last
	for lo < hi {
		if m := int(uint(lo+hi+1) >> 1); l.blocks[m].base <= it.Deadline {
			lo = m
		} else {
			hi = m - 1
		}
	}
	b := &l.blocks[lo]
	// Deadlines ascend about evenly, up to the next block's.
	n := float64(len(b.shifts))
	var guess float64
	if lo < last {
		guess = n * (float64(it.Deadline-b.base) / float64(l.blocks[lo+1].base-b.base+1))
	} else {
		guess = n * (float64(it.Deadline-b.base) / float64(b.latest-b.base+1))
	}
	return lo, b.behind(int(max(0, min(guess, n))), it.Deadline)
}

// behind returns how many of the deadlines, which ascend, are not later. It looks
// around the guess first.
func (b *block) behind(guess int, deadline int64) int {
	shifts := b.shifts
	lo, hi := 0, len(shifts)
	for near := 2; near < len(shifts); near *= 2 {
		if k := guess - near; k >= lo && k < hi {
			if shifts[k].deadline > deadline {
				hi = k
				continue
			}
			lo = k + 1
		}
		if k := guess + near; k >= lo && k < hi {
			if shifts[k].deadline <= deadline {
				lo = k + 1
				continue
			}
			hi = k
		}
		break
	}
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); shifts[m].deadline <= deadline {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// cheapest is A2's walk from the tail, see [Line.Insert]. A block is passed at
// once if the most that any of its requests would lose is no more than the least
// that x_i loses behind any of them.
func (l *Line) cheapest(now int64, it *Item) (block, at int) {
	first, index, ok := l.after(it.Deadline)
	if !ok {
		last := len(l.blocks) - 1
		return last, l.blocks[last].len()
	}
	own := it.serviceNs()
	end := l.service // ns, of all up to the block's end
	for i := len(l.blocks) - 1; i >= first; i-- {
		b := &l.blocks[i]
		start := end - b.sums.service
		front := b.most * max(0, seconds(plus(now-b.soonest, (end+own)/l.abreast)))
		if front <= later(now, start/l.abreast, it) {
			end = start
			continue
		}
		stop := 0
		if i == first {
			stop = index
		}
		ahead := end
		items := b.items()
		for at := len(items) - 1; at >= stop; at-- {
			x := &items[at]
			behind := later(now, ahead/l.abreast, it)
			ahead -= x.service
			if later(now, (ahead+own)/l.abreast, &x.Item) > behind {
				return i, at + 1
			}
		}
		end = start
	}
	return first, index
}

// after returns the first item whose deadline is later, and whether there is one.
func (l *Line) after(deadline int64) (block, at int, ok bool) {
	for i := range l.blocks {
		b := &l.blocks[i]
		if b.latest <= deadline {
			continue
		}
		return i, slices.IndexFunc(b.shifts, func(s shift) bool { return s.deadline > deadline }), true
	}
	return 0, 0, false
}

// next returns whom the discipline takes from a line that is not empty: the first
// of those that are worth most. Blocks of which none can be worth more are passed.
func (l *Line) next(now int64) (block, at int) {
	if l.discipline != Lateness && l.discipline != Cost {
		return 0, 0
	}
	l.fresh()
	most := l.worth(&l.blocks[0].items()[0], now)
	for i := range l.blocks {
		b := &l.blocks[i]
		if l.bound(b, now) <= most {
			continue
		}
		items := b.items()
		for k := range items {
			if worth := l.worth(&items[k], now); worth > most {
				block, at, most = i, k, worth
			}
		}
	}
	return block, at
}

// worth returns what the discipline takes the greatest of.
func (l *Line) worth(e *entry, now int64) float64 {
	if l.discipline == Cost {
		return score(e.worth, now, e.Deadline, l.decay)
	}
	return e.penalty(now, 0)
}

// bound returns what no item of the block is worth more than. For Cost it is that
// of the best item, but for rounding, where all are late or none is.
func (l *Line) bound(b *block, now int64) float64 {
	if l.discipline != Cost {
		return b.most * max(0, seconds(now-b.soonest))
	}
	if math.IsInf(b.sums.worth, -1) {
		return b.sums.worth
	}
	passes := l.decay * seconds(b.base-now)
	return min(b.sums.worth, b.prospect-passes) + 1e-12*(1+math.Abs(b.sums.worth)+math.Abs(b.prospect)+math.Abs(passes))
}

package line

import (
	"math"
	"slices"
)

// index is what is ahead of each block, so that a place is found without a look
// at the blocks.
type index struct {
	stale  bool // some block is, or blocks came or went
	firsts []int64
	aheads []ahead
}

// ahead is what is ahead of a block, and what every question needs of the block.
type ahead struct {
	items                   int
	static, dynamic         float64 // bytes
	base                    int64   // the block's
	lastStatic, lastDynamic float64 // bytes ahead of its last, in the block
}

// spot is a place by block: before the item at of the block, or behind its last.
type spot struct {
	block, at int
	Place
}

// fresh makes the sums of blocks that changed, and the index, anew.
func (l *Line) fresh() {
	if !l.index.stale {
		return
	}
	x := &l.index
	x.stale = false
	x.firsts, x.aheads = x.firsts[:0], x.aheads[:0]
	var sum ahead
	for i := range l.blocks {
		b := &l.blocks[i]
		if b.stale {
			b.renew(l.decay)
		}
		sum.base, sum.lastStatic, sum.lastDynamic = b.base, b.lastStatic, b.lastDynamic
		x.firsts, x.aheads = append(x.firsts, b.base), append(x.aheads, sum)
		sum.items += len(b.rows)
		sum.static += b.static
		sum.dynamic += b.dynamic
	}
}

// spot returns where the item is to be put in.
func (l *Line) spot(now int64, it *Item) spot {
	l.fresh()
	last := len(l.blocks) - 1
	if last < 0 {
		return spot{}
	}
	switch l.discipline {
	case FIFO:
		return l.spotAt(last, l.blocks[last].len())
	case Cheapest:
		return l.spotAt(l.cheapest(now, it))
	case Deadline, Lateness, Cost:
	}
	// The last block that begins with an earlier or the same deadline.
	i := max(0, behind(l.index.firsts, 0, it.Deadline)-1)
	b := &l.blocks[i]
	// Deadlines ascend about evenly.
	guess := float64(len(b.deadlines)) * (float64(it.Deadline-b.base) / float64(b.latest-b.base+1))
	return l.spotAt(i, behind(b.deadlines, int(min(guess, float64(len(b.deadlines)))), it.Deadline))
}

// behind returns how many of the deadlines, which ascend, are not later. It looks
// around the guess first.
func behind(deadlines []int64, guess int, deadline int64) int {
	lo, hi := 0, len(deadlines)
	const near = 4
	if k := guess - near; k > 0 && k < hi && deadlines[k] <= deadline {
		lo = k + 1
	}
	if k := guess + near; k >= lo && k < hi && deadlines[k] > deadline {
		hi = k
	}
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); deadlines[m] <= deadline {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// spotAt returns the place before the item at of block i.
func (l *Line) spotAt(i, at int) spot {
	a := &l.index.aheads[i]
	p := Place{Index: a.items + at, Static: a.static, Dynamic: a.dynamic}
	if b := &l.blocks[i]; at < len(b.rows) {
		p.Static += b.rows[at].static
		p.Dynamic += b.rows[at].dynamic
	} else {
		p.Static += b.static
		p.Dynamic += b.dynamic
	}
	return spot{i, at, p}
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
		start := end - b.service
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
		return i, slices.IndexFunc(b.deadlines, func(d int64) bool { return d > deadline }), true
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
	if math.IsInf(b.worth, -1) {
		return b.worth
	}
	passes := l.decay * seconds(b.base-now)
	return min(b.worth, b.prospect-passes) + 1e-12*(1+math.Abs(b.worth)+math.Abs(b.prospect)+math.Abs(passes))
}

package line

import "slices"

// spot is a place by block: before the item at of the block, or behind its last.
type spot struct {
	block, at                 int
	ahead                     int     // items
	static, dynamic           float64 // bytes ahead
	blockStatic, blockDynamic float64 // bytes ahead of the block
}

func (s spot) place() Place {
	return Place{Index: s.ahead, Static: s.static, Dynamic: s.dynamic}
}

// fresh returns the block with sums of the items that it has.
func (l *Line) fresh(i int) *block {
	b := &l.blocks[i]
	b.fresh()
	return b
}

// spot returns where the item is to be put in.
func (l *Line) spot(now int64, it *Item) spot {
	if len(l.blocks) == 0 {
		return spot{}
	}
	switch l.discipline {
	case FIFO:
		return l.tail()
	case Cheapest:
		return l.spotAt(l.cheapest(now, it))
	case Deadline, Lateness, Cost:
	}
	// The last block that begins with an earlier or the same deadline.
	i := 0
	for i+1 < len(l.blocks) && l.blocks[i+1].first() <= it.Deadline {
		i++
	}
	at, _ := slices.BinarySearchFunc(l.fresh(i).deadlines, it.Deadline, func(x, d int64) int {
		if x <= d {
			return -1
		}
		return 1
	})
	return l.spotAt(i, at)
}

// tail returns the place behind all.
func (l *Line) tail() spot {
	last := len(l.blocks) - 1
	return l.spotAt(last, l.blocks[last].len())
}

// spotAt returns the place before the item at of block i, with what is ahead.
func (l *Line) spotAt(i, at int) spot {
	s := spot{block: i, at: at}
	for k := range i {
		b := l.fresh(k)
		s.ahead += b.len()
		s.blockStatic += b.static
		s.blockDynamic += b.dynamic
	}
	s.ahead += at
	s.static, s.dynamic = s.blockStatic, s.blockDynamic
	if b := l.fresh(i); at < b.len() {
		s.static += b.rows[at].static
		s.dynamic += b.rows[at].dynamic
	} else {
		s.static += b.static
		s.dynamic += b.dynamic
	}
	return s
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
		b := l.fresh(i)
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
		b := l.fresh(i)
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
	most := l.worth(&l.blocks[0].items()[0], now)
	for i := range l.blocks {
		b := l.fresh(i)
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

// bound returns what no item of the block is worth more than.
func (l *Line) bound(b *block, now int64) float64 {
	if l.discipline == Cost {
		return score(b.sums.worth, now, b.soonest, l.decay)
	}
	return b.most * max(0, seconds(now-b.soonest))
}

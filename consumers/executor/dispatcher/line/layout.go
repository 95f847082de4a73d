package line

import "slices"

// leastBlock is the limit of a block in a short line.
const leastBlock = 64

// put puts the entry in at the spot.
func (l *Line) put(s spot, e entry) {
	l.stale = true
	l.bear(len(l.where) + 1)
	i := s.block
	switch {
	case len(l.blocks) == 0:
		l.open(0)
	case l.blocks[i].len() < l.limit:
	case i == len(l.blocks)-1 && s.at == l.blocks[i].len():
		// Most lines grow at the tail, where halves would stay halves.
		l.open(i + 1)
		i, s.at = i+1, 0
		l.join(i - 2)
		i = len(l.blocks) - 1
	default:
		l.split(i)
		if half := l.blocks[i].len(); s.at > half {
			i, s.at = i+1, s.at-half
		}
	}
	b := &l.blocks[i]
	b.put(s.at, e, l.fade())
	l.where[e.ID] = b.slot
}

// take takes out the item at of block i.
func (l *Line) take(i, at int) Item {
	l.stale = true
	b := &l.blocks[i]
	l.service -= b.items()[at].service
	it := b.take(at)
	delete(l.where, it.ID)
	l.slacks.went(it.Deadline)
	if b.len() == 0 {
		l.close(i)
		return it
	}
	l.bear(len(l.where))
	if !l.join(i - 1) {
		l.join(i)
	}
	return it
}

// bear sets the limit for n items: about √24n, so that to read the blocks behind an
// item costs about as much as to walk through the rest of its own. It lags where n
// goes to and fro.
func (l *Line) bear(n int) {
	for l.limit*l.limit < 24*n {
		l.limit *= 2
	}
	for l.limit > leastBlock && l.limit*l.limit > 192*n {
		l.limit /= 2
	}
}

// open puts an empty block in.
func (l *Line) open(i int) {
	var b block
	if n := len(l.spare); n > 0 {
		b = l.spare[n-1]
		l.spare = l.spare[:n-1]
	} else {
		b.store = &store{slot: int32(len(l.slots))}
		l.slots = append(l.slots, 0)
	}
	l.blocks = slices.Insert(l.blocks, i, b)
	l.number(i)
}

// close takes a block out whose items are gone, or in another.
func (l *Line) close(i int) {
	b := l.blocks[i]
	b.entries, b.head = b.entries[:0], 0
	l.spare = append(l.spare, b)
	l.blocks = slices.Delete(l.blocks, i, i+1)
	l.number(i)
}

// number tells the slots from that block on where theirs is.
func (l *Line) number(from int) {
	for i := from; i < len(l.blocks); i++ {
		l.slots[l.blocks[i].slot] = int32(i)
	}
}

// split puts the second half of a block into a new one behind it.
func (l *Line) split(i int) {
	l.open(i + 1)
	b, next := &l.blocks[i], &l.blocks[i+1]
	half := b.len() / 2
	next.append(b.items()[half:])
	b.cut(half)
	l.settle(next, next.items())
}

// join puts the block behind i into i if both are less than half of one together,
// and reports that.
func (l *Line) join(i int) bool {
	if i < 0 || i+1 >= len(l.blocks) {
		return false
	}
	b, next := &l.blocks[i], &l.blocks[i+1]
	if b.len()+next.len() > l.limit/2 {
		return false
	}
	b.append(next.items())
	l.settle(b, next.items())
	l.close(i + 1)
	return true
}

// settle notes that the entries are in the block now.
func (l *Line) settle(b *block, entries []entry) {
	for i := range entries {
		l.where[entries[i].ID] = b.slot
	}
}

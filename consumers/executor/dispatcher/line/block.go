package line

import (
	"math"
	"slices"
)

// block is a stretch of the line. What is asked of a line is answered by its
// blocks' sums, of which a change of the line makes those of one block anew.
//
// Nothing here depends on the bytes ahead of the block: they enter every question
// as a shift of time. So who leaves at the head or is put in ahead changes no
// other block, and nothing adds up from change to change: sums are made anew from
// the items, deadlines and bytes counted from the block's own beginning.
type block struct {
	ahead
	order
	*store
}

// ahead is what is ahead of a block, and what every question needs of the block.
type ahead struct {
	base                    int64   // ns, the deadline of the first, which dues count from
	static, dynamic         float64 // bytes ahead of the block
	lastStatic, lastDynamic float64 // bytes ahead of its last, in the block
	items                   int     // ahead of the block
}

// store is the rest of a block, which most questions do without.
type store struct {
	sums
	slot    int32 // the block's number in Line.where
	stale   bool  // all below but the entries is not of the items
	entries []entry
	head    int // entries[head:] are in the line
	rows    []row
	keys    []key // by u, or nearly so
	placed  bool  // keys has the items
}

// entry is an item with what is made of it once.
type entry struct {
	Item
	service int64   // ns
	worth   float64 // log(p/t̂), of the discipline Cost
}

// row is what a penalty is made of.
type row struct {
	due             float64 // the deadline, in s from the block's base
	static, dynamic float64 // bytes ahead in the block
	penalty         float64
}

// sums are those of a block's items.
type sums struct {
	soonest, latest   int64 // deadlines
	service           int64 // ns
	static, dynamic   float64
	nStatic, nDynamic int

	// Σp, Σp·due, Σp·static and Σp·dynamic of the rows.
	p, pDue, pStatic, pDynamic float64
	// The soonest and the latest deadline in s from the base.
	soon, end float64
	// The greatest penalty, worth, and worth − decay·due.
	most, worth, prospect float64
}

func (b *block) len() int { return len(b.entries) - b.head }

// items returns the entries in the line.
func (b *block) items() []entry { return b.entries[b.head:] }

// first and last return the deadlines of the first and of the last.
func (b *block) first() int64 { return b.entries[b.head].Deadline }
func (b *block) last() int64  { return b.entries[len(b.entries)-1].Deadline }

// put puts an entry in. Behind the last of a block only what is of it is made, so
// that a line that grows at the tail costs the same however long it is.
func (b *block) put(at int, e entry, decay float64) {
	if b.head > 0 && len(b.entries) == cap(b.entries) {
		b.entries = b.entries[:copy(b.entries, b.entries[b.head:])]
		b.head = 0
	}
	last := at == b.len() && at > 0
	b.entries = slices.Insert(b.entries, b.head+at, e)
	if last && !b.stale {
		b.renew(at, decay)
	} else {
		b.stale = true
	}
}

// take takes the entry out.
func (b *block) take(at int) Item {
	it := b.entries[b.head+at].Item
	if at == 0 {
		b.head++
	} else {
		b.entries = slices.Delete(b.entries, b.head+at, b.head+at+1)
	}
	b.stale = true
	return it
}

// append puts entries in behind the last.
func (b *block) append(entries []entry) {
	b.entries = append(b.entries, entries...)
	b.stale = true
}

// cut leaves the first n in.
func (b *block) cut(n int) {
	b.entries = b.entries[:b.head+n]
	b.stale = true
}

// renew makes the rows and sums anew from that item on, whatever is before being
// right. The decay is that of the discipline Cost, 0 in others.
func (b *block) renew(from int, decay float64) {
	items := b.items()
	n := len(items)
	b.rows = slices.Grow(b.rows[:from], n-from)[:n]
	b.shifts = slices.Grow(b.shifts[:from], n-from)[:n]
	s := b.store.sums
	if from == 0 {
		b.base = items[0].Deadline
		s = sums{soonest: b.base, latest: b.base, worth: math.Inf(-1), prospect: math.Inf(-1)}
	}
	for i := from; i < n; i++ {
		e, r := &items[i], &b.rows[i]
		*r = row{seconds(e.Deadline - b.base), s.static, s.dynamic, e.Penalty}
		b.shifts[i] = shift{deadline: e.Deadline, penalty: e.Penalty}
		s.soonest, s.latest = min(s.soonest, e.Deadline), max(s.latest, e.Deadline)
		s.service += e.service
		s.p += r.penalty
		s.pDue += r.penalty * r.due
		s.pStatic += r.penalty * r.static
		s.pDynamic += r.penalty * r.dynamic
		s.static += e.Static
		s.dynamic += e.Dynamic
		if e.Dynamic > 0 {
			s.nDynamic++
		}
		if e.Penalty > s.most {
			s.most = e.Penalty
		}
		if decay > 0 {
			s.worth = max(s.worth, e.worth)
			s.prospect = max(s.prospect, e.worth-decay*r.due)
		}
	}
	s.nStatic = n - s.nDynamic
	s.soon, s.end = seconds(s.soonest-b.base), seconds(s.latest-b.base)
	b.store.sums = s
	b.lastStatic, b.lastDynamic = b.rows[n-1].static, b.rows[n-1].dynamic
	b.order = order{dues: b.dues, shifts: b.shifts}
	b.stale, b.placed = false, false
}

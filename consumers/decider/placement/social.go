package placement

import (
	"math"
	"slices"
	"sync"
)

// edge is a user of an owner's data, and a number of the pair.
type edge struct {
	user  int32
	level uint32
}

// edges hold a number for (owner, user), by owner, users in ascending order of
// their names. Numbers are 32 bits wide; the rare greater one stands in big.
type edges struct {
	start  []int64 // users of owner i are list[start[i]:start[i+1]]
	list   []edge
	big    map[uint64]int64
	bigger sync.Mutex // guards big while workers fill
}

// escaped says that the number stands in big.
const escaped = math.MaxUint32

func pair(owner, user int32) uint64 { return uint64(uint32(owner))<<32 | uint64(uint32(user)) }

// grow makes room for owners up to n; new ones have no users.
func (e *edges) grow(n int) {
	var end int64
	if len(e.start) > 0 {
		end = e.start[len(e.start)-1]
	}
	e.start = extend(e.start, n+1, end)
}

// of returns the range of an owner's users.
func (e *edges) of(owner int32) (lo, hi int64) { return e.start[owner], e.start[owner+1] }

// at returns the number at position i, which belongs to owner.
func (e *edges) at(owner int32, i int64) int64 {
	x := e.list[i]
	if x.level != escaped {
		return int64(x.level)
	}
	return e.big[pair(owner, x.user)]
}

// put writes the pair (owner, user) at position i.
func (e *edges) put(owner int32, i int64, user int32, v int64) {
	if v < escaped {
		e.list[i] = edge{user, uint32(v)}
		return
	}
	e.list[i] = edge{user, escaped}
	e.bigger.Lock()
	defer e.bigger.Unlock()
	if e.big == nil {
		e.big = make(map[uint64]int64)
	}
	e.big[pair(owner, user)] = v
}

// addBig adds to the number of a pair in big. While pairs may be repeated it
// holds their sum, which order puts where it belongs.
func (e *edges) addBig(owner, user int32, v int64) {
	e.bigger.Lock()
	defer e.bigger.Unlock()
	if e.big == nil {
		e.big = make(map[uint64]int64)
	}
	e.big[pair(owner, user)] += v
}

// order sorts the users of owners whose rows did not come in order, and adds up
// repeated ones. A merged table of one window needs neither.
func (e *edges) order(rank []int32, workers int) {
	n := len(e.start) - 1
	untidy := make([]bool, workers)
	inParts(workers, n, func(w, lo, hi int) {
		for o := lo; o < hi; o++ {
			for i := e.start[o] + 1; i < e.start[o+1]; i++ {
				if rank[e.list[i-1].user] >= rank[e.list[i].user] {
					untidy[w] = true
					return
				}
			}
		}
	})
	if !slices.Contains(untidy, true) {
		return
	}
	var out int64
	type cell struct {
		user int32
		v    int64
	}
	var cells []cell
	for o := range int32(n) {
		cells = cells[:0]
		for i := e.start[o]; i < e.start[o+1]; i++ {
			cells = append(cells, cell{e.list[i].user, e.rawAt(o, i)})
		}
		slices.SortStableFunc(cells, func(a, b cell) int { return int(rank[a.user]) - int(rank[b.user]) })
		e.start[o] = out
		for k, c := range cells {
			if k > 0 && cells[k-1].user == c.user {
				cells[k].v += cells[k-1].v
				out--
			}
			e.put(o, out, c.user, cells[k].v)
			out++
		}
	}
	e.start[n] = out
	e.list = e.list[:out]
}

// rawAt is at before repeated pairs were added up. Two of them share a cell of
// big, which therefore holds their sum: the first takes it all.
func (e *edges) rawAt(owner int32, i int64) int64 {
	v := e.at(owner, i)
	if e.list[i].level == escaped {
		e.big[pair(owner, e.list[i].user)] = 0
	}
	return v
}

// merging is what mergeInto works with.
type merging struct {
	rank    []int32
	workers int
	// changed is told of each pair that delta has, in no fixed order: from several
	// workers at once, an owner's pairs from one of them.
	changed func(worker int, owner, user int32, before, after int64)
	// touch reads what changed and ranks will read of users. It is called for many
	// at a time, so that memory answers many in the time of one.
	touch func(worker int, list []edge, changed, ranks bool)
}

// ownersAhead is for how many owners at a time users are touched.
const ownersAhead = 16

// each runs f over owners in parts, with what they need touched ahead.
func (m *merging) each(n int, changed, ranks bool, lists []*edges, f func(worker int, owner int32)) {
	inParts(m.workers, n, func(w, lo, hi int) {
		for ; lo < hi; lo += ownersAhead {
			end := min(lo+ownersAhead, hi)
			for _, e := range lists {
				m.touch(w, e.list[e.start[lo]:e.start[end]], changed, ranks)
			}
			for o := int32(lo); o < int32(end); o++ {
				f(w, o)
			}
		}
	})
}

// mergeInto adds delta to e.
func (e *edges) mergeInto(delta *edges, m merging) {
	n := len(delta.start) - 1
	if len(delta.list) == 0 {
		return
	}
	if len(e.list) == 0 {
		m.each(n, true, false, []*edges{delta}, func(w int, o int32) {
			for i := delta.start[o]; i < delta.start[o+1]; i++ {
				m.changed(w, o, delta.list[i].user, 0, delta.at(o, i))
			}
		})
		e.start, e.list, e.big = delta.start, delta.list, delta.big
		return
	}
	start, both := make([]int64, n+1), []*edges{e, delta}
	m.each(n, false, true, both, func(_ int, o int32) { start[o] = e.union(delta, m.rank, o) })
	var total int64
	for o := range start {
		start[o], total = total, total+start[o]
	}
	out := edges{start: start, list: e.list, big: e.big}
	if total != int64(len(e.list)) {
		out.list = make([]edge, total)
	}
	m.each(n, true, true, both, func(w int, o int32) {
		out.fill(e, delta, m.rank, o, func(user int32, before, after int64) { m.changed(w, o, user, before, after) })
	})
	e.start, e.list, e.big = out.start, out.list, out.big
}

// pairs runs through two lists of users in ascending order, one step at a time.
// Ranks are far from each other in memory: each is read once.
type pairs struct {
	a, b         []edge
	rank         []int32
	rankA, rankB int32
	i, j         int // of the step at hand, −1: that list has no part in it
	nextI, nextJ int
}

// done is the rank after the last one.
const done = math.MaxInt32

func newPairs(a, b []edge, rank []int32) pairs {
	p := pairs{a: a, b: b, rank: rank}
	p.rankA, p.rankB = p.rankOf(a, 0), p.rankOf(b, 0)
	return p
}

func (p *pairs) rankOf(list []edge, i int) int32 {
	if i == len(list) {
		return done
	}
	return p.rank[list[i].user]
}

// next goes to the next user of either list, false after the last.
func (p *pairs) next() bool {
	least := min(p.rankA, p.rankB)
	p.i, p.j = -1, -1
	if least == done {
		return false
	}
	if p.rankA == least {
		p.i = p.nextI
		p.nextI++
	}
	if p.rankB == least {
		p.j = p.nextJ
		p.nextJ++
		p.rankB = p.rankOf(p.b, p.nextJ)
	}
	if p.i >= 0 {
		p.rankA = p.rankOf(p.a, p.nextI)
	}
	return true
}

// union counts the users of an owner in e or delta.
func (e *edges) union(delta *edges, rank []int32, o int32) (n int64) {
	p := newPairs(e.list[e.start[o]:e.start[o+1]], delta.list[delta.start[o]:delta.start[o+1]], rank)
	for p.next() {
		n++
	}
	return n
}

// fill writes the sum of a's and delta's users of an owner. Where no pair is
// new, e and a are the same memory, and each cell is read before it is written.
func (e *edges) fill(a, delta *edges, rank []int32, o int32, changed func(user int32, before, after int64)) {
	from, added := a.start[o], delta.start[o]
	p := newPairs(a.list[from:a.start[o+1]], delta.list[added:delta.start[o+1]], rank)
	for k := e.start[o]; p.next(); k++ {
		if p.j < 0 {
			e.list[k] = p.a[p.i]
			continue
		}
		user, before := p.b[p.j].user, int64(0)
		if p.i >= 0 {
			if before = int64(p.a[p.i].level); before == escaped {
				e.bigger.Lock()
				before = a.at(o, from+int64(p.i))
				e.bigger.Unlock()
			}
		}
		after := before + delta.at(o, added+int64(p.j))
		e.put(o, k, user, after)
		changed(user, before, after)
	}
}

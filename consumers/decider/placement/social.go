package placement

import (
	"math"
	"slices"
	"sync"
)

// edges hold a number for (owner, user), by owner, users in ascending order of
// their names. Numbers are 32 bits wide; the rare greater one stands in big.
type edges struct {
	start  []int64 // users of owner i are user[start[i]:start[i+1]]
	user   []int32
	level  []uint32
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
	if v := e.level[i]; v != escaped {
		return int64(v)
	}
	return e.big[pair(owner, e.user[i])]
}

// put sets the number at position i.
func (e *edges) put(owner int32, i, v int64) {
	if v < escaped {
		e.level[i] = uint32(v)
		return
	}
	e.level[i] = escaped
	e.bigger.Lock()
	defer e.bigger.Unlock()
	if e.big == nil {
		e.big = make(map[uint64]int64)
	}
	e.big[pair(owner, e.user[i])] = v
}

// putMore is put while pairs may be repeated: what stands in big adds up, and
// order takes it out again.
func (e *edges) putMore(owner int32, i, v int64) {
	if v >= escaped {
		e.bigger.Lock()
		v += e.big[pair(owner, e.user[i])]
		e.bigger.Unlock()
	}
	e.put(owner, i, v)
}

// rows is a table of (user, owner, number) to be added to edges.
type rows struct {
	n       int
	get     func(i int) (owner, user int32, v int64, ok bool)
	owners  int // ids are below
	workers int
}

// collect sorts rows by owner: each worker counts its part of the rows, then
// puts them at places that follow from the counts, so that rows of one owner
// keep the order of the table, which is that of users.
func collect(r rows, rank []int32) *edges {
	counts := make([][]uint32, r.workers)
	inParts(r.workers, r.n, func(w, lo, hi int) {
		c := make([]uint32, r.owners)
		for i := lo; i < hi; i++ {
			if o, _, _, ok := r.get(i); ok {
				c[o]++
			}
		}
		counts[w] = c
	})
	e := &edges{start: make([]int64, r.owners+1)}
	var total int64
	for o := range r.owners {
		e.start[o] = total
		var before uint32
		for _, c := range counts {
			if c != nil {
				c[o], before = before, before+c[o]
			}
		}
		total += int64(before)
	}
	e.start[r.owners] = total
	if total == 0 {
		return e
	}
	e.user, e.level = make([]int32, total), make([]uint32, total)
	inParts(r.workers, r.n, func(w, lo, hi int) {
		c := counts[w]
		for i := lo; i < hi; i++ {
			if o, u, v, ok := r.get(i); ok {
				p := e.start[o] + int64(c[o])
				c[o]++
				e.user[p] = u
				e.putMore(o, p, v)
			}
		}
	})
	e.order(rank, r.workers)
	return e
}

// order sorts the users of owners whose rows did not come in order, and adds up
// repeated ones. A merged table of one window needs neither.
func (e *edges) order(rank []int32, workers int) {
	n := len(e.start) - 1
	untidy := make([]bool, workers)
	inParts(workers, n, func(w, lo, hi int) {
		for o := lo; o < hi; o++ {
			for i := e.start[o] + 1; i < e.start[o+1]; i++ {
				if rank[e.user[i-1]] >= rank[e.user[i]] {
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
			cells = append(cells, cell{e.user[i], e.rawAt(o, i)})
		}
		slices.SortStableFunc(cells, func(a, b cell) int { return int(rank[a.user]) - int(rank[b.user]) })
		e.start[o] = out
		for k, c := range cells {
			if k > 0 && cells[k-1].user == c.user {
				cells[k].v += cells[k-1].v
				out--
			}
			e.user[out] = c.user
			e.put(o, out, cells[k].v)
			out++
		}
	}
	e.start[n] = out
	e.user, e.level = e.user[:out], e.level[:out]
}

// rawAt is at before repeated pairs were added up. Two of them share a cell of
// big, which therefore holds their sum: the first takes it all.
func (e *edges) rawAt(owner int32, i int64) int64 {
	v := e.at(owner, i)
	if e.level[i] == escaped {
		e.big[pair(owner, e.user[i])] = 0
	}
	return v
}

// mergeInto adds delta to e and tells changed of each pair in no fixed order:
// from several workers at once, an owner's pairs from one of them.
func (e *edges) mergeInto(delta *edges, rank []int32, workers int, changed func(worker int, owner, user int32, before, after int64)) {
	n := len(delta.start) - 1
	if len(delta.user) == 0 {
		return
	}
	if len(e.user) == 0 {
		inParts(workers, n, func(w, lo, hi int) {
			for o := int32(lo); o < int32(hi); o++ {
				for i := delta.start[o]; i < delta.start[o+1]; i++ {
					changed(w, o, delta.user[i], 0, delta.at(o, i))
				}
			}
		})
		e.start, e.user, e.level, e.big = delta.start, delta.user, delta.level, delta.big
		return
	}
	start := make([]int64, n+1)
	inParts(workers, n, func(_, lo, hi int) {
		for o := lo; o < hi; o++ {
			start[o] = e.union(delta, rank, o)
		}
	})
	var total int64
	for o := range start {
		start[o], total = total, total+start[o]
	}
	out := edges{start: start, user: e.user, level: e.level, big: e.big}
	if total != int64(len(e.user)) {
		out.user, out.level = make([]int32, total), make([]uint32, total)
	}
	inParts(workers, n, func(w, lo, hi int) {
		for o := int32(lo); o < int32(hi); o++ {
			out.fill(e, delta, rank, o, func(user int32, before, after int64) { changed(w, o, user, before, after) })
		}
	})
	e.start, e.user, e.level, e.big = out.start, out.user, out.level, out.big
}

// union counts the users of an owner in e or delta.
func (e *edges) union(delta *edges, rank []int32, o int) int64 {
	i, iEnd, j, jEnd := e.start[o], e.start[o+1], delta.start[o], delta.start[o+1]
	n := iEnd - i + jEnd - j
	for i < iEnd && j < jEnd {
		a, b := rank[e.user[i]], rank[delta.user[j]]
		if a == b {
			n--
		}
		if a <= b {
			i++
		}
		if b <= a {
			j++
		}
	}
	return n
}

// fill writes the sum of a's and delta's users of an owner. Where no pair is
// new, out and a are the same memory, and each cell is read before it is
// written.
func (e *edges) fill(a, delta *edges, rank []int32, o int32, changed func(user int32, before, after int64)) {
	i, iEnd, j, jEnd := a.start[o], a.start[o+1], delta.start[o], delta.start[o+1]
	for k := e.start[o]; i < iEnd || j < jEnd; k++ {
		switch {
		case j == jEnd || i < iEnd && rank[a.user[i]] < rank[delta.user[j]]:
			e.user[k], e.level[k] = a.user[i], a.level[i]
			i++
		case i == iEnd || rank[delta.user[j]] < rank[a.user[i]]:
			v := delta.at(o, j)
			e.user[k] = delta.user[j]
			e.put(o, k, v)
			changed(e.user[k], 0, v)
			j++
		default:
			e.bigger.Lock()
			before := a.at(o, i)
			e.bigger.Unlock()
			after := before + delta.at(o, j)
			e.user[k] = a.user[i]
			e.put(o, k, after)
			changed(e.user[k], before, after)
			i, j = i+1, j+1
		}
	}
}

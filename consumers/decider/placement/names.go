package placement

import (
	"slices"
	"sort"
	"unsafe"

	"github.com/cespare/xxhash/v2"
)

// names numbers the ids of owners and users: one number a name, in the order
// in which names were first seen. Names stand in one piece of memory without
// pointers, so that ten million of them cost the garbage collector nothing. A
// sorted permutation takes the place of a hash table: the dictionaries of a
// window are sorted too, so that a lookup is a step of a merge.
type names struct {
	text   []byte
	off    []int64  // text[off[i]:off[i+1]] is name i
	sorted []int32  // ids in byte order of their names
	rank   []int32  // the inverse of sorted
	hash   []uint64 // XXH64 of the name
}

func newNames() *names { return &names{off: []int64{0}} }

func (n *names) len() int { return len(n.hash) }

// at returns a name without copying it. Names are never changed in place: a
// view stays good even when text grows into other memory.
func (n *names) at(id int32) string {
	b := n.text[n.off[id]:n.off[id+1]]
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// append numbers a name that comes after all others.
func (n *names) append(name string) {
	id := int32(n.len())
	n.text = append(n.text, name...)
	n.off = append(n.off, int64(len(n.text)))
	n.hash = append(n.hash, xxhash.Sum64String(name))
	n.sorted, n.rank = append(n.sorted, id), append(n.rank, id)
}

// find returns the id of a name, −1 if it has none.
func (n *names) find(name string) int32 {
	i := sort.Search(len(n.sorted), func(i int) bool { return n.at(n.sorted[i]) >= name })
	if i < len(n.sorted) && n.at(n.sorted[i]) == name {
		return n.sorted[i]
	}
	return -1
}

// lookup is what a worker found of its part of the values.
type lookup struct {
	missing []int32 // positions in the sorted values
	before  []int32 // for each, where it belongs in names.sorted
}

// intern returns the ids of distinct values, numbering those that are new.
func (n *names) intern(values []string, workers int) []int32 {
	order := sortOrder(values)
	at := func(i int) string {
		if order != nil {
			return values[order[i]]
		}
		return values[i]
	}
	ids := make([]int32, len(values)) // by position in sorted order
	found := make([]lookup, workers)
	inParts(workers, len(values), func(w, lo, hi int) { found[w] = n.search(at, ids, lo, hi) })
	n.add(at, ids, found, workers)
	if order == nil {
		return ids
	}
	out := make([]int32, len(values))
	for i, o := range order {
		out[o] = ids[i]
	}
	return out
}

// sortOrder returns positions in order of their values, nil if they are in
// order already.
func sortOrder(values []string) []int32 {
	if slices.IsSorted(values) {
		return nil
	}
	order := make([]int32, len(values))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		switch {
		case values[a] < values[b]:
			return -1
		case values[a] > values[b]:
			return 1
		}
		return 0
	})
	return order
}

// search fills ids[lo:hi] for the sorted values lo to hi, −1 for names that are
// not there. Each step gallops from where the last one ended, so that a few
// values among millions of names cost a few logarithms, and as many values as
// names cost one step each.
func (n *names) search(at func(int) string, ids []int32, lo, hi int) (l lookup) {
	if len(n.sorted) == 0 { // all of them will be missing
		l.missing, l.before = make([]int32, 0, hi-lo), make([]int32, 0, hi-lo)
	}
	pos := 0
	for i := lo; i < hi; i++ {
		v := at(i)
		pos = n.gallop(pos, v)
		if pos < len(n.sorted) {
			if id := n.sorted[pos]; n.at(id) == v {
				ids[i] = id
				pos++
				continue
			}
		}
		ids[i] = -1
		l.missing = append(l.missing, int32(i))
		l.before = append(l.before, int32(pos))
	}
	return l
}

// gallop returns the first position from pos on whose name is not below v.
func (n *names) gallop(pos int, v string) int {
	step := 1
	lo, hi := pos, pos
	for hi < len(n.sorted) && n.at(n.sorted[hi]) < v {
		lo = hi + 1
		hi += step
		step *= 2
	}
	hi = min(hi, len(n.sorted))
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if n.at(n.sorted[mid]) < v {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// add numbers the missing values, in byte order, and merges them into sorted.
func (n *names) add(at func(int) string, ids []int32, found []lookup, workers int) {
	count, size := 0, 0
	for _, f := range found {
		count += len(f.missing)
		for _, m := range f.missing {
			size += len(at(int(m)))
		}
	}
	if count == 0 {
		return
	}
	first := n.len()
	n.text = reserve(n.text, size)
	n.off, n.hash = reserve(n.off, count), reserve(n.hash, count)
	for _, f := range found {
		for _, m := range f.missing {
			ids[m] = int32(len(n.off) - 1)
			n.text = append(n.text, at(int(m))...)
			n.off = append(n.off, int64(len(n.text)))
		}
	}
	n.hash = n.hash[:first+count]
	inParts(workers, count, func(_, lo, hi int) {
		for id := int32(first + lo); id < int32(first+hi); id++ {
			n.hash[id] = xxhash.Sum64String(n.at(id))
		}
	})
	n.merge(found, first, count)
}

// merge puts the count newest ids into sorted, from the back so that no second
// copy is needed, and numbers the ranks that changed.
func (n *names) merge(found []lookup, first, count int) {
	old := len(n.sorted)
	n.sorted = reserve(n.sorted, count)[:old+count]
	n.rank = reserve(n.rank, count)[:old+count]
	from, to, id := old, old+count, int32(first+count)
	for w := len(found) - 1; w >= 0; w-- {
		before := found[w].before
		for i := len(before) - 1; i >= 0; i-- {
			keep := from - int(before[i])
			copy(n.sorted[to-keep:to], n.sorted[from-keep:from])
			to, from = to-keep-1, from-keep
			id--
			n.sorted[to] = id
		}
	}
	for i := to; i < len(n.sorted); i++ {
		n.rank[n.sorted[i]] = int32(i)
	}
}

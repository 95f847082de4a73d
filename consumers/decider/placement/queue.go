package placement

import "cmp"

// entry is an owner in a queue.
type entry struct {
	key  int64 // traffic
	rank int32 // of its name
	id   int32
}

// before reports whether a comes before b: the greater key, then the lesser id.
func before(a, b entry) bool {
	if a.key != b.key {
		return a.key > b.key
	}
	return a.rank < b.rank
}

// queue hands entries out in order: most traffic first, then id. It sorts only
// as far as it is asked (incremental quicksort), so that the first k of n take
// time in n + k log k.
type queue struct {
	entries []entry
	at      int
	bounds  []int // entries[at:bounds[last]] come before the rest; descending
	started bool
}

// next returns the next entry, false after the last.
func (q *queue) next() (entry, bool) {
	if !q.started {
		q.started = true
		q.bounds = append(q.bounds, len(q.entries))
	}
	if q.at >= len(q.entries) {
		return entry{}, false
	}
	for len(q.bounds) > 0 && q.bounds[len(q.bounds)-1] == q.at {
		q.bounds = q.bounds[:len(q.bounds)-1]
	}
	for {
		end := q.bounds[len(q.bounds)-1]
		if end-q.at <= smallSort {
			insertionSort(q.entries[q.at:end])
			// Sorted already: the next ones need no work but this check again.
			e := q.entries[q.at]
			q.at++
			return e, true
		}
		q.bounds = append(q.bounds, q.at+partition(q.entries[q.at:end]))
	}
}

const smallSort = 16

func insertionSort(e []entry) {
	for i := 1; i < len(e); i++ {
		for j := i; j > 0 && before(e[j], e[j-1]); j-- {
			e[j], e[j-1] = e[j-1], e[j]
		}
	}
}

// partition moves entries that come before the others to the front and returns
// how many, at least 1 and less than all. The pivot is the middle one of three
// middle ones of three, which equal and ordered keys don't upset.
func partition(e []entry) int {
	n := len(e)
	s := n / 9
	pivot := median(
		median(e[0], e[s], e[2*s]),
		median(e[n/2-s], e[n/2], e[n/2+s]),
		median(e[n-1-2*s], e[n-1-s], e[n-1]),
	)
	i, j := -1, n
	for {
		for i++; before(e[i], pivot); i++ {
		}
		for j--; before(pivot, e[j]); j-- {
		}
		if i >= j {
			return max(1, min(j+1, n-1))
		}
		e[i], e[j] = e[j], e[i]
	}
}

func median(a, b, c entry) entry {
	if before(b, a) {
		a, b = b, a
	}
	if before(c, b) {
		b = c
		if before(b, a) {
			b = a
		}
	}
	return b
}

// byDestination orders picks as commands come: site in config order, owner.
func byDestination(n *names) func(a, b pick) int {
	return func(a, b pick) int {
		if c := cmp.Compare(a.to, b.to); c != 0 {
			return c
		}
		return cmp.Compare(n.rank[a.id], n.rank[b.id])
	}
}

package placement

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// inParts runs f over n items cut into one run of neighbours a worker. Workers
// write to places of their own only, so that results don't depend on their
// number. Few items are done by the caller: they aren't worth a hand-over.
func inParts(workers, n int, f func(worker, lo, hi int)) {
	if workers <= 1 || n < 2*workers {
		f(0, 0, n)
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { f(w, n*w/workers, n*(w+1)/workers) })
	}
	wg.Wait()
}

// block is how many items a worker takes at a time in inBlocks: enough that
// taking costs nothing, few enough that workers end together.
const block = 4096

// inBlocks runs f over n items in blocks that workers take in turn, where
// items cost unequally much.
func inBlocks(workers, n int, f func(worker, lo, hi int)) {
	if workers <= 1 || n <= block {
		f(0, 0, n)
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for {
				lo := int(next.Add(block)) - block
				if lo >= n {
					return
				}
				f(w, lo, min(lo+block, n))
			}
		})
	}
	wg.Wait()
}

// inEach runs f for each of n items, which workers take in turn; inEachBy tells
// which worker.
func inEach(workers, n int, f func(item int)) {
	inEachBy(workers, n, func(_, item int) { f(item) })
}

func inEachBy(workers, n int, f func(worker, item int)) {
	if workers <= 1 || n <= 1 {
		for i := range n {
			f(0, i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(w, i)
			}
		})
	}
	wg.Wait()
}

// reserve makes room for n more items. It grows by a sixteenth at least, not by
// the quarter of append: columns are long and many.
func reserve[T any](s []T, n int) []T {
	if cap(s)-len(s) >= n {
		return s
	}
	out := make([]T, len(s), len(s)+max(n, len(s)/16+64))
	copy(out, s)
	return out
}

// extend grows s to n items; new ones are v.
func extend[T comparable](s []T, n int, v T) []T {
	old := len(s)
	if n <= old {
		return s
	}
	s = reserve(s, n-old)[:n]
	var zero T
	if v == zero {
		clear(s[old:])
		return s
	}
	for i := old; i < n; i++ {
		s[i] = v
	}
	return s
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

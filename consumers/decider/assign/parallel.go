package assign

import (
	"sync"
	"sync/atomic"
)

// block is how many items a worker takes at a time: enough that taking costs
// nothing, few enough that workers end together and a block's rows stay cached.
const block = 2048

// inBlocks runs f over n items in blocks that workers take in turn. Workers write
// to places of their own, or add up integers, so that results don't depend on
// their number.
func inBlocks(workers, n int, f func(worker, lo, hi int)) {
	workers = max(1, min(workers, (n+block-1)/block))
	var next atomic.Int64
	take := func(worker int) {
		for {
			lo := int(next.Add(block)) - block
			if lo >= n {
				return
			}
			f(worker, lo, min(lo+block, n))
		}
	}
	if workers == 1 {
		take(0)
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { take(w) })
	}
	wg.Wait()
}

// gather returns the items that keep wants, ascending.
func gather(workers, n int, keep func(item int) bool) []int32 {
	workers = max(1, min(workers, n))
	parts := make([][]int32, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := n * w / workers; i < n*(w+1)/workers; i++ {
				if keep(i) {
					parts[w] = append(parts[w], int32(i))
				}
			}
		})
	}
	wg.Wait()
	all := parts[0]
	for _, p := range parts[1:] {
		all = append(all, p...)
	}
	return all
}

// hash spreads an item's index over 64 bits (the finaliser of SplitMix64). It is
// all the randomness there is.
func hash(v uint64) uint64 {
	v += 0x9e3779b97f4a7c15
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// chance is a number of [0, 1) that belongs to v.
func chance(v uint64) float64 { return float64(hash(v)>>11) * 0x1p-53 }

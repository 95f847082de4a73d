package rollup

import (
	"math/bits"

	"penstock/schemas/window"
)

// samples is a histogram that is being filled. The bins of the latest samples
// wait and are counted together: looking for the place of each among the sorted
// bins, and making room there, took most of the time of a row with delays.
type samples struct {
	bins    window.Bins
	waiting []uint16
}

const (
	// leastWaiting and mostWaiting bound how many samples wait: in between as many
	// as there are bins, since all of these are visited when they are counted.
	leastWaiting, mostWaiting = 32, 256
	// Estimated bytes of a bin and of a sample that waits.
	binBytes     = 2 + 8
	waitingBytes = 2
)

// scratch counts by bin, for one histogram at a time; it is all zero in between.
type scratch struct {
	counts []int64
	used   [(window.NumBins + 63) / 64]uint64 // which of the counts are not zero
}

// add counts a delay (µs, not negative) and returns by how many bytes that makes
// the state larger.
func (h *samples) add(v int64, s *scratch) int {
	h.waiting = append(h.waiting, window.Bin(v))
	waiting, bins := len(h.waiting), len(h.bins.Index)
	if waiting < max(leastWaiting, min(bins, mostWaiting)) {
		return waitingBytes
	}
	h.fold(s)
	return waitingBytes*(1-waiting) + binBytes*(len(h.bins.Index)-bins)
}

// fold counts the samples that wait.
func (h *samples) fold(s *scratch) {
	if s.counts == nil {
		s.counts = make([]int64, window.NumBins)
	}
	for i, b := range h.bins.Index {
		s.counts[b] = h.bins.Counts[i]
		s.used[b/64] |= 1 << (b % 64)
	}
	for _, b := range h.waiting {
		s.counts[b]++
		s.used[b/64] |= 1 << (b % 64)
	}
	h.waiting = h.waiting[:0]
	h.bins.Index, h.bins.Counts = h.bins.Index[:0], h.bins.Counts[:0]
	for i, word := range s.used {
		for ; word != 0; word &= word - 1 {
			b := i*64 + bits.TrailingZeros64(word)
			h.bins.Index = append(h.bins.Index, uint16(b))
			h.bins.Counts = append(h.bins.Counts, s.counts[b])
			s.counts[b] = 0
		}
		s.used[i] = 0
	}
}

// take returns the whole histogram.
func (h *samples) take(s *scratch) window.Bins {
	if len(h.waiting) > 0 {
		h.fold(s)
	}
	return h.bins
}

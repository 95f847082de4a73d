package window

import (
	"math/bits"
	"slices"
)

// Bins of a log-linear histogram over whole microseconds (HdrHistogram's
// layout): a value below 256 is its own bin; above, a bin is the bit length
// and the 7 bits after the leading one, so that the relative width of a bin is
// at most 2^-7 and its middle is off by less than 0.4 %.
const (
	subBits  = 7
	exactLow = 1 << (subBits + 1)
	// NumBins is the number of bins that an int64 can fall into.
	NumBins = exactLow + (63-subBits-1)*(1<<subBits)
)

// Bin returns the bin of v microseconds. Negative values have none: the caller
// flags and excludes them (P18).
func Bin(v int64) uint16 {
	if v < exactLow {
		return uint16(max(v, 0))
	}
	shift := bits.Len64(uint64(v)) - subBits - 1
	sub := uint64(v)>>shift - 1<<subBits
	return uint16(exactLow + (shift-1)<<subBits + int(sub))
}

// BinBounds returns the least and the greatest value (µs) of a bin.
func BinBounds(bin uint16) (least, most int64) {
	b := int64(bin)
	if b < exactLow {
		return b, b
	}
	shift := (b-exactLow)>>subBits + 1
	sub := (b-exactLow)&(1<<subBits-1) + 1<<subBits
	return sub << shift, sub<<shift + 1<<shift - 1
}

// Bins is a sparse histogram: ascending bins with their counts, all positive.
type Bins struct {
	Index  []uint16
	Counts []int64
}

// Add counts n values of v microseconds.
func (h *Bins) Add(v, n int64) {
	b := Bin(v)
	i, ok := slices.BinarySearch(h.Index, b)
	if ok {
		h.Counts[i] += n
		return
	}
	h.Index = slices.Insert(h.Index, i, b)
	h.Counts = slices.Insert(h.Counts, i, n)
}

// Merge adds another histogram bin by bin.
func (h *Bins) Merge(o Bins) {
	if len(o.Index) == 0 {
		return
	}
	out := Bins{
		Index:  make([]uint16, 0, len(h.Index)+len(o.Index)),
		Counts: make([]int64, 0, len(h.Index)+len(o.Index)),
	}
	out.addBoth(h, &o)
	*h = out
}

// addBoth appends the sum of two histograms to an empty one.
func (h *Bins) addBoth(a, b *Bins) {
	i, j := 0, 0
	for i < len(a.Index) && j < len(b.Index) {
		switch x, y := a.Index[i], b.Index[j]; {
		case x < y:
			h.Index, h.Counts = append(h.Index, x), append(h.Counts, a.Counts[i])
			i++
		case y < x:
			h.Index, h.Counts = append(h.Index, y), append(h.Counts, b.Counts[j])
			j++
		default:
			h.Index, h.Counts = append(h.Index, x), append(h.Counts, a.Counts[i]+b.Counts[j])
			i, j = i+1, j+1
		}
	}
	h.Index, h.Counts = append(h.Index, a.Index[i:]...), append(h.Counts, a.Counts[i:]...)
	h.Index, h.Counts = append(h.Index, b.Index[j:]...), append(h.Counts, b.Counts[j:]...)
}

// Count returns the number of samples.
func (h *Bins) Count() int64 {
	var n int64
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile returns the q-quantile (0 to 1) in µs, the middle of the bin in
// which it lies, and false if there are no samples.
func (h *Bins) Quantile(q float64) (int64, bool) {
	n := h.Count()
	if n == 0 {
		return 0, false
	}
	rank := int64(q*float64(n-1)) + 1
	for i, c := range h.Counts {
		if rank -= c; rank <= 0 {
			least, most := BinBounds(h.Index[i])
			return least + (most-least)/2, true
		}
	}
	least, most := BinBounds(h.Index[len(h.Index)-1])
	return least + (most-least)/2, true
}

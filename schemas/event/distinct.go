package event

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// distinct makes the values of a column distinct. Batches of ours are so
// already; a stranger's need not be, and sums by code rely on it.
type distinct struct {
	slots []int32 // open addressing: 1 + place of a value, 0 is free
	to    []int32
	seed  maphash.Seed
	ready bool
}

// fold removes empty values, which are absent, and repeated ones, and renumbers
// codes accordingly. It returns the values that are left, in order.
func (d *distinct) fold(codes []int32, values []string) []string {
	if len(values) <= 1 && !slices.Contains(values, "") {
		return values
	}
	if !d.ready {
		d.seed, d.ready = maphash.MakeSeed(), true
	}
	size := 1 << bits.Len(uint(2*len(values)))
	d.slots = slices.Grow(d.slots[:0], size)[:size]
	clear(d.slots)
	d.to = slices.Grow(d.to[:0], len(values))[:len(values)]
	left := 0
	for i, v := range values {
		if v == "" {
			d.to[i] = NullCode
			continue
		}
		h := int(maphash.String(d.seed, v)) & (size - 1)
		for d.slots[h] != 0 && values[d.slots[h]-1] != v {
			h = (h + 1) & (size - 1)
		}
		if d.slots[h] == 0 {
			values[left] = v
			left++
			d.slots[h] = int32(left)
		}
		d.to[i] = d.slots[h] - 1
	}
	if left == len(values) {
		return values
	}
	for i, c := range codes {
		if c >= 0 {
			codes[i] = d.to[c]
		}
	}
	clear(values[left:])
	return values[:left]
}

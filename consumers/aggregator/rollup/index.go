package rollup

import (
	"cmp"
	"slices"
)

// index is an open-addressing table from a key, which is never 0, to a number.
// It keeps its memory when it is reset, unless that has grown far beyond what
// was used.
type index struct {
	slots []slot
	used  int
	shift uint8 // 64 − log2(len(slots))

	fetched uint64 // keeps fetches from being taken for useless
}

type slot struct {
	key   uint64
	value int64
}

const leastBits = 5

// leastIndex is the bytes of the smallest index with a key.
const leastIndex = 16 << leastBits

// at returns the value of a key, 0 and new if the key is new. The pointer holds
// until the next call.
func (x *index) at(key uint64) *int64 {
	if 4*(x.used+1) > 3*len(x.slots) {
		x.grow()
	}
	mask := uint64(len(x.slots) - 1)
	for i := hash(key) >> x.shift; ; i = (i + 1) & mask {
		s := &x.slots[i]
		if s.key == key {
			return &s.value
		}
		if s.key == 0 {
			s.key = key
			x.used++
			return &s.value
		}
	}
}

// block is how many keys are looked for at a time: their slots are fetched
// together, so that the waits for memory overlap.
const block = 32

// count adds 1 to the value of each key and returns how many keys were new.
func (x *index) count(keys []uint64) (fresh int) {
	before := x.used
	var sum uint64
	for len(keys) > 0 {
		n := min(block, len(keys))
		for 4*(x.used+n) > 3*len(x.slots) {
			x.grow()
		}
		for _, k := range keys[:n] {
			sum ^= x.slots[hash(k)>>x.shift].key
		}
		for _, k := range keys[:n] {
			*x.at(k)++
		}
		keys = keys[n:]
	}
	x.fetched = sum
	return x.used - before
}

// hash mixes both halves of a key into the upper bits.
func hash(key uint64) uint64 {
	key *= 0x9E3779B97F4A7C15
	key ^= key >> 32
	return key * 0xD6E8FEB86659FD93
}

func (x *index) grow() {
	old := x.slots
	n := max(1<<leastBits, 2*len(old))
	x.slots = make([]slot, n)
	x.shift = 64
	for m := n; m > 1; m >>= 1 {
		x.shift--
	}
	mask := uint64(n - 1)
	for _, s := range old {
		if s.key == 0 {
			continue
		}
		i := hash(s.key) >> x.shift
		for x.slots[i].key != 0 {
			i = (i + 1) & mask
		}
		x.slots[i] = s
	}
}

func (x *index) reset() {
	if len(x.slots) > 16<<leastBits && 16*x.used < len(x.slots) {
		x.slots = nil
	}
	clear(x.slots)
	x.used = 0
}

// radixBits is how many bits of a key one pass of sortSlots looks at.
const radixBits = 11

// sortSlots sorts by key, the greatest of which is known, and returns the sorted
// slots and the other memory; both are one of the two given.
func sortSlots(s, spare []slot, greatest uint64) (sorted, other []slot) {
	if len(s) < 256 {
		slices.SortFunc(s, func(a, b slot) int { return cmp.Compare(a.key, b.key) })
		return s, spare
	}
	spare = slices.Grow(spare[:0], len(s))[:len(s)]
	for shift := 0; greatest>>shift > 0; shift += radixBits {
		var count [1 << radixBits]int32
		for i := range s {
			count[s[i].key>>shift&(1<<radixBits-1)]++
		}
		var sum int32
		for d, c := range count {
			count[d] = sum
			sum += c
		}
		for i := range s {
			d := s[i].key >> shift & (1<<radixBits - 1)
			spare[count[d]] = s[i]
			count[d]++
		}
		s, spare = spare, s
	}
	return s, spare
}

package rollup

import (
	"cmp"
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"penstock/schemas/event"
)

// names gives texts ids 1, 2, 3 …; 0 is absent. Bytes are copied into blocks,
// so that a name neither holds a decoded batch nor costs an allocation.
type names struct {
	slots  []uint64 // upper half of the hash, id; 0 is free
	values []string // by id − 1
	block  []byte
	bytes  int
	ranks  []uint32
	sorted []string
}

const (
	leastSlots = 64
	blockSize  = 64 << 10
)

// id returns the id of a text, new if it must be.
func (n *names) id(s string) uint32 {
	if s == "" {
		return 0
	}
	if 2*(len(n.values)+1) > len(n.slots) {
		n.grow()
	}
	h := xxhash.Sum64String(s)
	mask := uint64(len(n.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		slot := n.slots[i]
		if slot == 0 {
			n.values = append(n.values, n.keep(s))
			id := uint32(len(n.values))
			n.slots[i] = h>>32<<32 | uint64(id)
			return id
		}
		if slot>>32 == h>>32 && n.values[uint32(slot)-1] == s {
			return uint32(slot)
		}
	}
}

func (n *names) grow() {
	n.slots = make([]uint64, max(leastSlots, 2*len(n.slots)))
	mask := uint64(len(n.slots) - 1)
	for id, s := range n.values {
		h := xxhash.Sum64String(s)
		i := h & mask
		for n.slots[i] != 0 {
			i = (i + 1) & mask
		}
		n.slots[i] = h>>32<<32 | uint64(id+1)
	}
}

func (n *names) keep(s string) string {
	if len(n.block)+len(s) > cap(n.block) {
		n.block = make([]byte, 0, max(blockSize, len(s)))
	}
	at := len(n.block)
	n.block = append(n.block, s...)
	n.bytes += len(s)
	// The bytes are written once and their block is never moved.
	return unsafe.String(&n.block[at], len(s))
}

// translate returns the id of each value of a batch's dictionary.
func (n *names) translate(d *event.Dict, ids []uint32) []uint32 {
	ids = ids[:0]
	for _, v := range d.Values {
		ids = append(ids, n.id(v))
	}
	return ids
}

// rank sorts the names by their bytes: ranks[id] is the place of an id from 1,
// 0 for absent.
func (n *names) rank() {
	type named struct {
		prefix uint64
		id     uint32
	}
	skip := n.common()
	order := make([]named, len(n.values))
	for i, v := range n.values {
		order[i] = named{prefix(v[skip:]), uint32(i + 1)}
	}
	slices.SortFunc(order, func(a, b named) int {
		if a.prefix != b.prefix {
			if a.prefix < b.prefix {
				return -1
			}
			return 1
		}
		return cmp.Compare(n.values[a.id-1], n.values[b.id-1])
	})
	n.ranks = slices.Grow(n.ranks[:0], len(order)+1)[:len(order)+1]
	n.sorted = n.sorted[:0]
	n.ranks[0] = 0
	for place, o := range order {
		n.ranks[o.id] = uint32(place + 1)
		n.sorted = append(n.sorted, n.values[o.id-1])
	}
}

// common returns the length of the bytes that all names begin with.
func (n *names) common() int {
	if len(n.values) == 0 {
		return 0
	}
	first := n.values[0]
	l := len(first)
	for _, v := range n.values[1:] {
		l = min(l, len(v))
		for l > 0 && v[:l] != first[:l] {
			l--
		}
		if l == 0 {
			break
		}
	}
	return l
}

// prefix returns the first 8 bytes so that they compare as the texts do.
func prefix(s string) uint64 {
	var b [8]byte
	copy(b[:], s)
	return binary.BigEndian.Uint64(b[:])
}

// column turns ranks into a key column that holds the used names alone, in
// order. The ranks are overwritten.
func (n *names) column(ranks []int32) event.Dict {
	used := make([]int32, len(n.sorted)+1)
	for _, r := range ranks {
		used[r] = 1
	}
	var values []string
	used[0] = event.NullCode
	for r := 1; r < len(used); r++ {
		if used[r] != 0 {
			used[r] = int32(len(values))
			values = append(values, n.sorted[r-1])
		}
	}
	for i, r := range ranks {
		ranks[i] = used[r]
	}
	var d event.Dict
	d.Set(ranks, values)
	return d
}

// reset forgets all names. Tables that were handed out keep theirs.
func (n *names) reset() {
	if len(n.slots) > 16*leastSlots && 16*len(n.values) < len(n.slots) {
		n.slots = nil
	}
	clear(n.slots)
	n.values, n.block, n.bytes = n.values[:0:0], nil, 0
	n.sorted = nil
}

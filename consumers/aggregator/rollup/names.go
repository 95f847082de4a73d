package rollup

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"penstock/schemas/event"
)

// names gives texts ids 1, 2, 3 …; 0 is absent. The bytes of all names lie in
// one piece of memory, so that a name neither holds a decoded batch nor costs an
// allocation nor is looked at by the collector.
type names struct {
	slots  []uint64 // upper half of the hash, id; 0 is free
	refs   []ref    // by id − 1
	text   []byte
	ranks  []uint32
	sorted []string
	hint   int // bytes of text at the last reset

	fetched uint64 // keeps fetches from being taken for useless
}

// ref is where the bytes of a name lie.
type ref struct {
	at     uint64
	length uint32
}

const leastSlots = 64

func (n *names) len() int { return len(n.refs) }

// bytes is the size of all names.
func (n *names) bytes() int { return len(n.text) + nameBytes*len(n.refs) }

func (n *names) at(id uint32) []byte {
	r := n.refs[id-1]
	return n.text[r.at : r.at+uint64(r.length)]
}

// id returns the id of a text of that hash, new if it must be; there is room.
func (n *names) id(s string, h uint64) uint32 {
	mask := uint64(len(n.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		slot := n.slots[i]
		if slot == 0 {
			return n.add(s, h, i)
		}
		if slot>>32 == h && string(n.at(uint32(slot))) == s {
			return uint32(slot)
		}
	}
}

func (n *names) add(s string, h, slot uint64) uint32 {
	if n.text == nil {
		n.text = make([]byte, 0, n.hint)
	}
	n.refs = append(n.refs, ref{uint64(len(n.text)), uint32(len(s))})
	n.text = append(n.text, s...)
	id := uint32(len(n.refs))
	n.slots[slot] = h<<32 | uint64(id)
	return id
}

func (n *names) grow() {
	old := n.slots
	n.slots = make([]uint64, max(leastSlots, 2*len(old)))
	mask := uint64(len(n.slots) - 1)
	for _, s := range old {
		if s == 0 {
			continue
		}
		i := s >> 32 & mask
		for n.slots[i] != 0 {
			i = (i + 1) & mask
		}
		n.slots[i] = s
	}
}

// translate appends the id of each value of a batch's dictionary. What is looked
// at for a block of values is fetched together, so that the waits for memory
// overlap.
func (n *names) translate(d *event.Dict, ids []uint32) []uint32 {
	var hashes [block]uint64
	var sum uint64
	for values := d.Values; len(values) > 0; {
		k := min(block, len(values))
		for 2*(n.len()+k) > len(n.slots) {
			n.grow()
		}
		mask := uint64(len(n.slots) - 1)
		for i, v := range values[:k] {
			hashes[i] = xxhash.Sum64String(v) >> 32
			sum += n.slots[hashes[i]&mask]
		}
		for i := range k {
			if id := uint32(n.slots[hashes[i]&mask]); id > 0 {
				sum += n.refs[id-1].at
			}
		}
		for i, v := range values[:k] {
			ids = append(ids, n.id(v, hashes[i]))
		}
		values = values[k:]
	}
	n.fetched = sum
	return ids
}

// rank sorts the names by their bytes: ranks[id] is the place of an id from 1,
// 0 for absent. No name may be added between rank and reset.
func (n *names) rank() {
	skip := n.common()
	order := make([]slot, n.len())
	for i := range order {
		id := uint32(i + 1)
		order[i] = slot{prefix(n.at(id)[skip:]), int64(id)}
	}
	order, _ = sortSlots(order, nil, math.MaxUint64)
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && order[j].key == order[i].key {
			j++
		}
		if j > i+1 {
			slices.SortFunc(order[i:j], func(a, b slot) int {
				return bytes.Compare(n.at(uint32(a.value)), n.at(uint32(b.value)))
			})
		}
		i = j
	}
	n.ranks = slices.Grow(n.ranks[:0], len(order)+1)[:len(order)+1]
	n.sorted = make([]string, 0, len(order))
	n.ranks[0] = 0
	for place, o := range order {
		n.ranks[o.value] = uint32(place + 1)
		b := n.at(uint32(o.value))
		// The text is not written to any more and not used again after reset.
		n.sorted = append(n.sorted, unsafe.String(&b[0], len(b)))
	}
}

// common returns the length of the bytes that all names begin with.
func (n *names) common() int {
	if n.len() == 0 {
		return 0
	}
	first := n.at(1)
	l := len(first)
	for id := 2; id <= n.len() && l > 0; id++ {
		b := n.at(uint32(id))
		l = min(l, len(b))
		for l > 0 && !bytes.Equal(b[:l], first[:l]) {
			l--
		}
	}
	return l
}

// prefix returns the first 8 bytes so that they compare as the texts do.
func prefix(s []byte) uint64 {
	if len(s) >= 8 {
		return binary.BigEndian.Uint64(s)
	}
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
	if len(n.slots) > 16*leastSlots && 16*len(n.refs) < len(n.slots) {
		n.slots = nil
	}
	clear(n.slots)
	n.hint = len(n.text)
	n.refs, n.text, n.sorted = n.refs[:0], nil, nil
}

package event

import (
	"hash/maphash"
	"strings"
	"unsafe"
)

// Dict is a dictionary column: a code a row and the distinct values. Code −1 is
// absent. The zero value is an empty column, ready to use.
type Dict struct {
	Codes  []int32
	Values []string

	// slots is an open-addressing table of the values: the upper half of a
	// value's hash, and its code + 1; 0 is free. A value is only looked at where
	// its hash fits, and emptying the table costs little, unlike a map's.
	slots   []uint64
	indexed int // values that are in slots
	last    string
	code    int32
}

// NullCode is the code of an absent value.
const NullCode int32 = -1

// leastSlots is a power of two.
const leastSlots = 16

// dictSeed keeps those who choose the names from choosing names that collide.
// Codes do not depend on it: they are in the order of appearance.
var dictSeed = maphash.MakeSeed()

// Append adds one row; an empty s is absent. It allocates only for a value
// that the column has not seen since the last Reset. The string is kept.
func (d *Dict) Append(s string) { d.add(s) }

// add is Append; it returns the bytes that a new value adds to the batch.
func (d *Dict) add(s string) int {
	if s == "" {
		d.Codes = append(d.Codes, NullCode)
		return 0
	}
	n := len(d.Values)
	d.Codes = append(d.Codes, d.Intern(s))
	if len(d.Values) > n {
		return len(s) + 4
	}
	return 0
}

// addBytes is add for bytes that are somebody else's.
func (d *Dict) addBytes(b []byte) int {
	n := len(d.Values)
	d.Codes = append(d.Codes, d.intern(unsafe.String(unsafe.SliceData(b), len(b)), true))
	if len(d.Values) > n {
		return len(b) + 4
	}
	return 0
}

// Intern returns the code of s, adding it to Values if it is new.
func (d *Dict) Intern(s string) int32 { return d.intern(s, false) }

// intern is Intern; of a borrowed string a copy is kept.
func (d *Dict) intern(s string, borrowed bool) int32 {
	if s == "" {
		return NullCode
	}
	// Runs of one value are the rule for components and sites.
	if s == d.last && len(d.Values) > 0 {
		return d.code
	}
	if d.indexed != len(d.Values) || 4*d.indexed >= 3*len(d.slots) {
		d.reindex()
	}
	h := maphash.String(dictSeed, s) >> 32
	mask := uint64(len(d.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		slot := d.slots[i]
		if slot == 0 {
			if borrowed {
				s = strings.Clone(s)
			}
			d.Values = append(d.Values, s)
			d.indexed++
			d.slots[i] = h<<32 | uint64(d.indexed)
			d.last, d.code = s, int32(d.indexed-1)
			return d.code
		}
		if slot>>32 == h {
			if c := int32(uint32(slot)) - 1; d.Values[c] == s {
				d.last, d.code = d.Values[c], c
				return c
			}
		}
	}
}

// reindex makes the table of the values anew, with room for more.
func (d *Dict) reindex() {
	n := max(leastSlots, len(d.slots))
	for 3*n <= 4*len(d.Values) {
		n *= 2
	}
	if n == len(d.slots) {
		clear(d.slots)
	} else {
		d.slots = make([]uint64, n)
	}
	mask := uint64(n - 1)
	for c, v := range d.Values {
		h := maphash.String(dictSeed, v) >> 32
		i := h & mask
		for d.slots[i] != 0 {
			i = (i + 1) & mask
		}
		d.slots[i] = h<<32 | uint64(c+1)
	}
	d.indexed = len(d.Values)
}

// At returns the value of row i, "" if absent.
func (d *Dict) At(i int) string {
	if c := d.Codes[i]; c >= 0 {
		return d.Values[c]
	}
	return ""
}

// Len returns the number of rows.
func (d *Dict) Len() int { return len(d.Codes) }

// Reset empties the column and keeps its memory.
func (d *Dict) Reset() {
	d.Codes = d.Codes[:0]
	clear(d.Values)
	d.Values = d.Values[:0]
	d.forget()
}

// Set replaces the column's content; it is for decoders. The slices are kept,
// and Values must be distinct and not empty.
func (d *Dict) Set(codes []int32, values []string) {
	d.Codes, d.Values = codes, values
	d.forget()
}

// forget empties the table of the values.
func (d *Dict) forget() {
	if d.indexed > 0 {
		clear(d.slots)
		d.indexed = 0
	}
	d.last, d.code = "", NullCode
}

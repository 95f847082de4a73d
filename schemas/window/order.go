package window

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"penstock/schemas/event"
)

// rowKeys returns a number for each row that orders rows as (window, keys) do,
// most significant word first: the key of a row is the sequence of its words.
// Mostly all of it fits into one. Key values must be in byte order.
func (t *Table) rowKeys() [][]uint64 {
	n := t.Len()
	if n == 0 {
		return nil
	}
	words := [][]uint64{make([]uint64, n)}
	free := 64
	add := func(width int, value func(out []uint64, shift int)) {
		if width > free {
			words = append(words, make([]uint64, n))
			free = 64
		}
		free -= width
		value(words[len(words)-1], free)
	}
	least, step, width := t.startRange()
	add(width, func(out []uint64, shift int) {
		for i, s := range t.Start {
			out[i] |= (uint64(s-least) / step) << shift
		}
	})
	for k := range t.Keys {
		key := &t.Keys[k]
		add(bits.Len(uint(len(key.Values))), func(out []uint64, shift int) {
			for i, c := range key.Codes {
				out[i] |= uint64(c+1) << shift
			}
		})
	}
	return words
}

// startRange returns the least start, what starts can be divided by, and the
// bits that their distance then takes.
func (t *Table) startRange() (least int64, step uint64, width int) {
	least, most := t.Start[0], t.Start[0]
	for _, s := range t.Start {
		least, most = min(least, s), max(most, s)
	}
	step = uint64(t.Wide().Microseconds())
	for _, s := range t.Start {
		if uint64(s-least)%step != 0 {
			step = 1
			break
		}
	}
	return least, step, bits.Len64(uint64(most-least) / step)
}

// sortOrder returns the rows in the order of their keys, rows of equal keys in
// the order in which they stand.
func sortOrder(words [][]uint64, n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	if inOrder(words, n) {
		return order
	}
	var r radix
	for w := len(words) - 1; w >= 0; w-- {
		order = r.sort(order, words[w])
	}
	return order
}

func inOrder(words [][]uint64, n int) bool {
	for i := 1; i < n; i++ {
		if compareWords(words, i-1, i) > 0 {
			return false
		}
	}
	return true
}

func compareWords(words [][]uint64, a, b int) int {
	for _, w := range words {
		if c := cmp.Compare(w[a], w[b]); c != 0 {
			return c
		}
	}
	return 0
}

// radix sorts by counting, a byte of the key at a time from the least on. It is
// stable, takes no comparison, and leaves out bytes that are the same in all
// keys, which most are.
type radix struct {
	keys, otherKeys []uint64
	other           []int32
}

func (r *radix) sort(order []int32, word []uint64) []int32 {
	n := len(order)
	r.keys = slices.Grow(r.keys[:0], n)[:n]
	r.otherKeys = slices.Grow(r.otherKeys[:0], n)[:n]
	r.other = slices.Grow(r.other[:0], n)[:n]
	var counts [8][256]int32
	for i, o := range order {
		k := word[o]
		r.keys[i] = k
		for b := range counts {
			counts[b][byte(k>>(8*b))]++
		}
	}
	for b := range counts {
		c := &counts[b]
		if c[byte(r.keys[0]>>(8*b))] == int32(n) {
			continue
		}
		at := int32(0)
		for v, m := range c {
			c[v] = at
			at += m
		}
		for i, k := range r.keys {
			p := &c[byte(k>>(8*b))]
			r.otherKeys[*p], r.other[*p] = k, order[i]
			*p++
		}
		r.keys, r.otherKeys = r.otherKeys, r.keys
		order, r.other = r.other, order
	}
	return order
}

// textKey is a text with its next eight bytes as a number, so that most
// comparisons need not follow a pointer.
type textKey struct {
	prefix uint64
	rest   uint8 // bytes that are left, 9 for more than 8: the shorter text comes first
	code   int32
}

func compareTextKeys(a, b textKey) int {
	if c := cmp.Compare(a.prefix, b.prefix); c != 0 {
		return c
	}
	return cmp.Compare(a.rest, b.rest)
}

// sortTexts sorts keys by their texts' bytes from depth on; before it they are
// all equal.
func sortTexts(keys []textKey, values []string, depth int) {
	for len(keys) > 1 {
		depth += commonPrefix(keys, values, depth)
		for i := range keys {
			s := values[keys[i].code][depth:]
			keys[i].rest = uint8(min(len(s), 9))
			keys[i].prefix = prefixOf(s)
		}
		slices.SortFunc(keys, compareTextKeys)
		// Runs of equal keys that have more bytes are sorted by those; the last
		// run is dealt with by the loop, so that depth of calls stays small.
		for len(keys) > 1 {
			n := 1
			for n < len(keys) && keys[n].prefix == keys[0].prefix && keys[n].rest == keys[0].rest {
				n++
			}
			if n == len(keys) {
				break
			}
			if n > 1 && keys[0].rest > 8 {
				sortTexts(keys[:n], values, depth+8)
			}
			keys = keys[n:]
		}
		if len(keys) < 2 || keys[0].rest <= 8 {
			return
		}
		depth += 8
	}
}

func prefixOf(s string) uint64 {
	if len(s) >= 8 {
		return binary.BigEndian.Uint64([]byte(s[:8]))
	}
	var b [8]byte
	copy(b[:], s)
	return binary.BigEndian.Uint64(b[:])
}

// commonPrefix returns how many bytes from depth on all texts share.
func commonPrefix(keys []textKey, values []string, depth int) int {
	first := values[keys[0].code][depth:]
	n := len(first)
	for _, k := range keys[1:] {
		s := values[k.code][depth:]
		n = min(n, len(s))
		if s[:n] == first[:n] {
			continue
		}
		i := 0
		for s[i] == first[i] {
			i++
		}
		if n = i; n == 0 {
			break
		}
	}
	return n
}

// sortDict puts the used values in byte order, each once, and renumbers the
// codes.
func sortDict(d *event.Dict) {
	if orderly(d) {
		return
	}
	used := make([]bool, len(d.Values))
	for _, c := range d.Codes {
		if c >= 0 {
			used[c] = true
		}
	}
	keys := make([]textKey, 0, len(d.Values))
	for c, u := range used {
		if u {
			keys = append(keys, textKey{code: int32(c)})
		}
	}
	sortTexts(keys, d.Values, 0)
	to := make([]int32, len(d.Values))
	values := make([]string, 0, len(keys))
	for _, k := range keys {
		v := d.Values[k.code]
		if n := len(values); n == 0 || values[n-1] != v {
			values = append(values, v)
		}
		to[k.code] = int32(len(values) - 1)
	}
	codes := make([]int32, len(d.Codes))
	for i, c := range d.Codes {
		if codes[i] = c; c >= 0 {
			codes[i] = to[c]
		}
	}
	d.Set(codes, values)
}

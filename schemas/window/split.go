package window

import (
	"penstock/schemas/event"
)

// Bytes of a pane beside its rows: schema, metadata of messages, padding.
const (
	paneOverhead = 4096
	keyOverhead  = 256
)

// Split cuts a sorted table into tables of consecutive rows such that Encode of
// each takes at most maxBytes, however badly its bytes compress. Cuts follow
// from the content alone. A row that takes more than maxBytes by itself is a
// table of its own. The tables are views of t.
func (t *Table) Split(maxBytes int) []*Table {
	// s2 adds at most a sixth of a per mille and a few bytes to what it cannot
	// compress; a hundredth is on the safe side.
	room := maxBytes - maxBytes/100 - paneOverhead - keyOverhead*len(t.Rollup.Keys)
	room = min(room, MaxDecoded-paneOverhead)
	seen := make([][]int32, len(t.Keys)) // the part, from 1, that has a value
	for k := range seen {
		seen[k] = make([]int32, len(t.Keys[k].Values))
	}
	fixed := t.rowBytes()
	var out []*Table
	from, size, part := 0, 0, int32(1)
	for i := range t.Len() {
		n := fixed + t.histBytes(i) + t.newTexts(seen, i, part)
		if i > from && (size+n > room || i-from == MaxRows) {
			out = append(out, t.rows(from, i))
			from, size, part = i, 0, part+1
			n = fixed + t.histBytes(i) + t.newTexts(seen, i, part)
		}
		size += n
	}
	if from < t.Len() {
		out = append(out, t.rows(from, t.Len()))
	}
	return out
}

// rowBytes is what a row takes in columns of fixed width, offsets of lists and
// bitmaps included.
func (t *Table) rowBytes() int {
	n := 8 + 1
	for range t.Keys {
		n += 4 + 1
	}
	for _, v := range t.Rollup.Values {
		n += 8 + 1
		if v.Kind == Histogram {
			n += 4
		}
	}
	return n
}

func (t *Table) histBytes(i int) int {
	n := 0
	for v := range t.Hists {
		if t.Hists[v] != nil {
			n += 10 * len(t.Hists[v][i].Index)
		}
	}
	return n
}

// newTexts is what the keys of row i add to the dictionaries of a part.
func (t *Table) newTexts(seen [][]int32, i int, part int32) int {
	n := 0
	for k := range t.Keys {
		c := t.Keys[k].Codes[i]
		if c >= 0 && seen[k][c] != part {
			seen[k][c] = part
			n += len(t.Keys[k].Values[c]) + 4
		}
	}
	return n
}

// rows returns rows [from, to) as a table with the key values they use.
func (t *Table) rows(from, to int) *Table {
	if from == 0 && to == t.Len() {
		return t
	}
	out := t.Like()
	out.Start = t.Start[from:to:to]
	for k := range t.Keys {
		pick(&out.Keys[k], &t.Keys[k], from, to)
	}
	for v := range t.Ints {
		if t.Ints[v] != nil {
			out.Ints[v] = t.Ints[v][from:to:to]
		}
		if t.Hists[v] != nil {
			out.Hists[v] = t.Hists[v][from:to:to]
		}
	}
	return out
}

// pick fills a key with the rows [from, to) of another, values in their order.
func pick(out, in *event.Dict, from, to int) {
	codes := make([]int32, to-from)
	copy(codes, in.Codes[from:to])
	least, most := int32(len(in.Values)), int32(-1)
	for _, c := range codes {
		if c >= 0 {
			least, most = min(least, c), max(most, c)
		}
	}
	if most < 0 {
		out.Set(codes, nil)
		return
	}
	used := make([]int32, most-least+1)
	n := 0
	for _, c := range codes {
		if c >= 0 && used[c-least] == 0 {
			used[c-least] = 1
			n++
		}
	}
	values := make([]string, 0, n)
	for i, u := range used {
		if u != 0 {
			used[i] = int32(len(values))
			values = append(values, in.Values[least+int32(i)])
		}
	}
	for i, c := range codes {
		if c >= 0 {
			codes[i] = used[c-least]
		}
	}
	out.Set(codes, values)
}

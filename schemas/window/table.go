package window

import (
	"math"
	"time"

	"penstock/schemas/event"
)

// NullInt is the absent value of Min, Max and Latest columns.
const NullInt = event.NullInt

// Table is rows of one rollup in columns: a pane while it travels, or a whole
// window once merged. All columns have Len rows. A finished table is sorted by
// (Start, keys in order) with absent keys first, texts in byte order, and holds
// each (Start, key) once (Sort, Merge).
type Table struct {
	Rollup *Rollup
	Width  time.Duration // of its windows; 0 is the rollup's own
	Start  []int64       // window starts, µs
	Keys   []event.Dict  // as Rollup.Keys
	Ints   [][]int64     // as Rollup.Values; nil for histograms
	Hists  [][]Bins      // as Rollup.Values; nil for integers
}

// NewTable returns an empty table of windows as wide as the rollup's own.
func NewTable(r *Rollup) *Table { return r.table(r.Width) }

// Like returns an empty table of the same rollup and width.
func (t *Table) Like() *Table { return t.Rollup.table(t.Wide()) }

// Wide is the width of the table's windows.
func (t *Table) Wide() time.Duration {
	if t.Width == 0 {
		return t.Rollup.Width
	}
	return t.Width
}

func (r *Rollup) table(width time.Duration) *Table {
	t := &Table{Rollup: r, Width: width, Keys: make([]event.Dict, len(r.Keys)), Ints: make([][]int64, len(r.Values)), Hists: make([][]Bins, len(r.Values))}
	return t
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.Start) }

// Append adds a row: its window's start, its keys and its integer values in
// the order of Rollup.Values (a histogram's place is ignored), and its
// histograms in order. The slices of the histograms are kept.
func (t *Table) Append(start int64, keys []string, ints []int64, hists ...Bins) {
	t.Start = append(t.Start, start)
	for i, k := range keys {
		t.Keys[i].Append(k)
	}
	h := 0
	for i, v := range t.Rollup.Values {
		if v.Merging == Hist {
			t.Hists[i] = append(t.Hists[i], hists[h])
			h++
			continue
		}
		t.Ints[i] = append(t.Ints[i], ints[i])
	}
}

// AppendRow adds row i of another table of the same rollup.
func (t *Table) AppendRow(o *Table, i int) {
	t.Start = append(t.Start, o.Start[i])
	for k := range t.Keys {
		t.Keys[k].Append(o.Keys[k].At(i))
	}
	for v := range t.Rollup.Values {
		if t.Rollup.Values[v].Merging == Hist {
			t.Hists[v] = append(t.Hists[v], o.Hists[v][i])
		} else {
			t.Ints[v] = append(t.Ints[v], o.Ints[v][i])
		}
	}
}

// End returns the end (µs) of the window of row i.
func (t *Table) End(i int) int64 { return t.Start[i] + t.Wide().Microseconds() }

// Column returns the integer column of that name, nil if there is none.
func (t *Table) Column(name string) []int64 {
	for i, v := range t.Rollup.Values {
		if v.Name == name {
			return t.Ints[i]
		}
	}
	return nil
}

// Key returns the key column of that name, nil if there is none.
func (t *Table) Key(name string) *event.Dict {
	for i, k := range t.Rollup.Keys {
		if k == name {
			return &t.Keys[i]
		}
	}
	return nil
}

// HistColumn returns the histogram column of that name, nil if there is none.
func (t *Table) HistColumn(name string) []Bins {
	for i, v := range t.Rollup.Values {
		if v.Name == name {
			return t.Hists[i]
		}
	}
	return nil
}

// FromFloat32 and ToFloat32 convert a Float32 value to and from how a table
// holds it.
func FromFloat32(f float32) int64 { return int64(math.Float32bits(f)) }

// ToFloat32 is the inverse of FromFloat32.
func ToFloat32(v int64) float32 { return math.Float32frombits(uint32(v)) }

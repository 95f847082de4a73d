package window

import (
	"cmp"
	"slices"

	"penstock/schemas/event"
)

// Merge returns the sorted merge of tables of one rollup: each (window, key)
// once. The inputs are unchanged, need not be sorted, and may share histogram
// memory with the result. Merging is exact, associative and commutative.
func Merge(r *Rollup, tables ...*Table) *Table {
	all := NewTable(r)
	n := 0
	for _, t := range tables {
		n += t.Len()
	}
	all.Start = make([]int64, 0, n)
	for _, t := range tables {
		all.concat(t)
	}
	all.Sort()
	return all
}

// concat appends the rows of o; key values are mapped once a table, not once a
// row.
func (t *Table) concat(o *Table) {
	t.Start = append(t.Start, o.Start...)
	for k := range t.Keys {
		to, from := &t.Keys[k], &o.Keys[k]
		codes := make([]int32, len(from.Values))
		for i, v := range from.Values {
			codes[i] = to.Intern(v)
		}
		for _, c := range from.Codes {
			if c >= 0 {
				c = codes[c]
			}
			to.Codes = append(to.Codes, c)
		}
	}
	for v := range t.Rollup.Values {
		t.Ints[v] = append(t.Ints[v], o.Ints[v]...)
		t.Hists[v] = append(t.Hists[v], o.Hists[v]...)
	}
}

// Sort sorts the table and combines rows of one (window, key). Key values end
// up distinct, used and in byte order, so that equal content has equal bytes.
func (t *Table) Sort() {
	for k := range t.Keys {
		sortDict(&t.Keys[k])
	}
	order := make([]int32, t.Len())
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		if c := cmp.Compare(t.Start[a], t.Start[b]); c != 0 {
			return c
		}
		for k := range t.Keys {
			if c := cmp.Compare(t.Keys[k].Codes[a], t.Keys[k].Codes[b]); c != 0 {
				return c
			}
		}
		return cmp.Compare(a, b)
	})
	t.gather(order)
}

// gather rebuilds the columns in the given order and folds equal neighbours.
func (t *Table) gather(order []int32) {
	out := NewTable(t.Rollup)
	for k := range out.Keys {
		out.Keys[k].Set(make([]int32, 0, len(order)), t.Keys[k].Values)
	}
	for v := range t.Rollup.Values {
		if t.Rollup.Values[v].Merging != Hist {
			out.Ints[v] = make([]int64, 0, len(order))
		}
	}
	out.Start = make([]int64, 0, len(order))
	for _, i := range order {
		if n := out.Len(); n > 0 && out.Start[n-1] == t.Start[i] && out.sameKey(n-1, t, i) {
			out.fold(n-1, t, int(i))
			continue
		}
		out.Start = append(out.Start, t.Start[i])
		for k := range out.Keys {
			out.Keys[k].Codes = append(out.Keys[k].Codes, t.Keys[k].Codes[i])
		}
		for v := range t.Rollup.Values {
			if t.Rollup.Values[v].Merging == Hist {
				out.Hists[v] = append(out.Hists[v], t.Hists[v][i])
			} else {
				out.Ints[v] = append(out.Ints[v], t.Ints[v][i])
			}
		}
	}
	*t = *out
}

func (t *Table) sameKey(row int, o *Table, i int32) bool {
	for k := range t.Keys {
		if t.Keys[k].Codes[row] != o.Keys[k].Codes[i] {
			return false
		}
	}
	return true
}

// fold merges row i of o into a row of t.
func (t *Table) fold(row int, o *Table, i int) {
	takeLatest := false
	decided := false
	for v, val := range t.Rollup.Values {
		switch val.Merging {
		case Sum:
			t.Ints[v][row] += o.Ints[v][i]
		case Min:
			if x := o.Ints[v][i]; x != NullInt && (t.Ints[v][row] == NullInt || x < t.Ints[v][row]) {
				t.Ints[v][row] = x
			}
		case Max:
			t.Ints[v][row] = max(t.Ints[v][row], o.Ints[v][i])
		case Latest:
			if !decided {
				takeLatest, decided = t.later(row, o, i), true
			}
			if takeLatest {
				t.Ints[v][row] = o.Ints[v][i]
			}
		case Hist:
			h := t.Hists[v][row]
			h.Merge(o.Hists[v][i])
			t.Hists[v][row] = h
		}
	}
}

// later reports whether the Latest columns of row i of o are greater than those
// of a row of t.
func (t *Table) later(row int, o *Table, i int) bool {
	for v, val := range t.Rollup.Values {
		if val.Merging != Latest {
			continue
		}
		a, b := t.Ints[v][row], o.Ints[v][i]
		c := cmp.Compare(b, a)
		if val.Kind == Float32 {
			c = cmp.Compare(ToFloat32(b), ToFloat32(a))
		}
		if c != 0 {
			return c > 0
		}
	}
	return false
}

// sortDict puts the used values in byte order and renumbers the codes.
func sortDict(d *event.Dict) {
	used := make([]bool, len(d.Values))
	for _, c := range d.Codes {
		if c >= 0 {
			used[c] = true
		}
	}
	order := make([]int32, 0, len(d.Values))
	for c, u := range used {
		if u {
			order = append(order, int32(c))
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(d.Values[a], d.Values[b]) })
	to := make([]int32, len(d.Values))
	values := make([]string, len(order))
	for n, c := range order {
		to[c], values[n] = int32(n), d.Values[c]
	}
	codes := make([]int32, len(d.Codes))
	for i, c := range d.Codes {
		if c < 0 {
			codes[i] = c
			continue
		}
		codes[i] = to[c]
	}
	d.Set(codes, values)
}

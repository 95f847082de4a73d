package window

import (
	"cmp"
	"slices"
)

// Merge returns the sorted merge of tables of one rollup and width: each
// (window, key) once. The inputs are unchanged, need not be sorted, and may share histogram
// memory with the result. Merging is exact, associative and commutative.
func Merge(r *Rollup, tables ...*Table) *Table {
	all := NewTable(r)
	if len(tables) > 0 {
		all = tables[0].Like()
	}
	n := 0
	for _, t := range tables {
		n += t.Len()
	}
	all.Start = make([]int64, 0, n)
	for v, val := range r.Values {
		if val.Merging == Hist {
			all.Hists[v] = make([]Bins, 0, n)
		} else {
			all.Ints[v] = make([]int64, 0, n)
		}
	}
	for _, t := range tables {
		all.concat(t)
	}
	all.Sort()
	return all
}

// concat appends the rows of o. Its key values are appended as they are: a
// value may then stand there twice, until Sort.
func (t *Table) concat(o *Table) {
	t.Start = append(t.Start, o.Start...)
	for k := range t.Keys {
		to, from := &t.Keys[k], &o.Keys[k]
		base := int32(len(to.Values))
		codes := slices.Grow(to.Codes, len(from.Codes))
		for _, c := range from.Codes {
			if c >= 0 {
				c += base
			}
			codes = append(codes, c)
		}
		to.Set(codes, append(to.Values, from.Values...))
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
	words := t.rowKeys()
	t.gather(sortOrder(words, t.Len()), words)
}

// gather rebuilds the columns in the given order and folds equal neighbours.
func (t *Table) gather(order []int32, words [][]uint64) {
	// from[i] is where the rows that become row i begin in order.
	from := make([]int32, 0, len(order)+1)
	for i, o := range order {
		if i == 0 || compareWords(words, int(order[i-1]), int(o)) != 0 {
			from = append(from, int32(i))
		}
	}
	rows := len(from)
	from = append(from, int32(len(order)))
	if rows == len(order) && ascending(order) {
		return
	}
	out := t.Like()
	out.Start = pickRows(t.Start, order, from)
	for k := range out.Keys {
		out.Keys[k].Set(pickRows(t.Keys[k].Codes, order, from), t.Keys[k].Values)
	}
	for v := range t.Rollup.Values {
		if t.Rollup.Values[v].Merging == Hist {
			out.Hists[v] = pickRows(t.Hists[v], order, from)
		} else {
			out.Ints[v] = pickRows(t.Ints[v], order, from)
		}
	}
	if rows < len(order) {
		t.fold(out, order, from)
	}
	*t = *out
}

func ascending(order []int32) bool {
	for i, o := range order {
		if int(o) != i {
			return false
		}
	}
	return true
}

// pickRows returns the first row of each group.
func pickRows[T any](column []T, order, from []int32) []T {
	out := make([]T, len(from)-1)
	for i := range out {
		out[i] = column[order[from[i]]]
	}
	return out
}

// fold merges the other rows of each group of t into the group's row of out.
func (t *Table) fold(out *Table, order, from []int32) {
	latest := t.Rollup.has(Latest)
	var h histMerger
	for g := range from[:len(from)-1] {
		group := order[from[g]:from[g+1]]
		if len(group) == 1 {
			continue
		}
		best := group[0]
		if latest {
			for _, i := range group[1:] {
				if t.later(int(best), int(i)) {
					best = i
				}
			}
		}
		for v, val := range t.Rollup.Values {
			switch val.Merging {
			case Latest:
				out.Ints[v][g] = t.Ints[v][best]
			case Hist:
				out.Hists[v][g] = h.merge(t.Hists[v], group)
			default:
				out.Ints[v][g] = foldInts(val.Merging, t.Ints[v], group)
			}
		}
	}
}

func (r *Rollup) has(m Merging) bool {
	return slices.ContainsFunc(r.Values, func(v Value) bool { return v.Merging == m })
}

// foldInts merges the values of the rows of a group.
func foldInts(m Merging, column []int64, group []int32) int64 {
	x := column[group[0]]
	for _, i := range group[1:] {
		switch y := column[i]; m {
		case Sum:
			x += y
		case Min:
			if y != NullInt && (x == NullInt || y < x) {
				x = y
			}
		case Max:
			x = max(x, y)
		}
	}
	return x
}

// later reports whether the Latest columns of row b are greater than those of
// row a.
func (t *Table) later(a, b int) bool {
	for v, val := range t.Rollup.Values {
		if val.Merging != Latest {
			continue
		}
		x, y := t.Ints[v][a], t.Ints[v][b]
		if x == y {
			continue
		}
		if val.Kind == Float32 && x != NullInt && y != NullInt {
			if c := cmp.Compare(ToFloat32(y), ToFloat32(x)); c != 0 {
				return c > 0
			}
		}
		// Also two spellings of one number, such as 0 and −0, have an order, so
		// that the result does not hang on which came first.
		return y > x
	}
	return false
}

// histMerger merges histograms; it keeps its memory from one group to the next.
type histMerger struct {
	a, b Bins
}

// merge returns the sum of the histograms of a group, in memory of its own.
func (m *histMerger) merge(column []Bins, group []int32) Bins {
	m.a.Index, m.a.Counts = m.a.Index[:0], m.a.Counts[:0]
	for _, i := range group {
		m.b.Index, m.b.Counts = m.b.Index[:0], m.b.Counts[:0]
		m.b.addBoth(&m.a, &column[i])
		m.a, m.b = m.b, m.a
	}
	return Bins{Index: slices.Clone(m.a.Index), Counts: slices.Clone(m.a.Counts)}
}

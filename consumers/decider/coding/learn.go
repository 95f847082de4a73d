package coding

import (
	"cmp"
	"slices"
	"strconv"

	"penstock/schemas/window"
)

// learned is what a window has shown beside what went into the state.
type learned struct {
	bad     int64
	unknown map[string]int64 // tasks by store
	failed  []int64          // tasks by store
	reads   []float64        // by store: reads, by their tasks
	asked   []int64          // by store: tasks of reads
}

// learn takes the rows of a window into the state. Sums are integers, so that they do
// not depend on an order.
func (t *Policy) learn(tables map[string]*window.Table, end int64) *learned {
	s := t.state
	l := &learned{unknown: map[string]int64{}, failed: make([]int64, len(s.stores)), reads: make([]float64, len(s.stores)), asked: make([]int64, len(s.stores))}
	s.now = end
	number := end / t.config.Window.Microseconds()
	panes := make([][ops]pane, len(s.stores))
	if table := tables[window.Storage.Name]; table != nil {
		t.read(l, panes, table)
	}
	for i := range s.stores {
		for op := range ops {
			o := &s.stores[i].ops[op]
			if p := panes[i][op]; len(p.cells) > 0 {
				p.window = number
				slices.SortFunc(p.cells, compareCells)
				o.history = append(o.history, p)
			}
			o.history = slices.DeleteFunc(o.history, func(p pane) bool { return p.window <= number-int64(t.config.History) })
		}
	}
	return l
}

func compareCells(a, b cell) int {
	return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.k, b.k), cmp.Compare(a.bits, b.bits))
}

// read adds up the rows of a table.
func (t *Policy) read(l *learned, panes [][ops]pane, table *window.Table) {
	stores, opsOf, outcomes := table.Key("store"), table.Key("op"), table.Key("outcome")
	ns, ks, sizes := table.Key("n"), table.Key("k"), table.Key("bits")
	tasks, bytes, smallest := table.Column("tasks"), table.Column("bytes"), table.Column("bytes_least")
	least, delays := table.Column("delay_least_us"), table.HistColumn("delay")
	for i := range table.Len() {
		op := slices.Index(opNames[:], opsOf.At(i))
		n, k, size := number(ns.At(i)), number(ks.At(i)), number(sizes.At(i))
		outcome := outcomes.At(i)
		if op < 0 || k < 1 || n < k || n > 255 || size < 0 || size > 63 || tasks[i] < 1 || bytes[i] < 0 || stores.At(i) == "" ||
			outcome != "done" && outcome != "cancelled" && outcome != "failed" {
			l.bad += max(tasks[i], 1)
			continue
		}
		at, ok := t.index[stores.At(i)]
		if !ok {
			l.unknown[stores.At(i)] += tasks[i]
			continue
		}
		t.state.stores[at].seen = t.state.now
		if op == read {
			l.asked[at] += tasks[i]
			l.reads[at] += float64(tasks[i]) / float64(n)
		}
		c := panes[at][op].cell(n, k, size)
		c.tasks += tasks[i]
		c.bytes += bytes[i]
		c.smallest = lower(c.smallest, smallest[i])
		switch outcome {
		case "done":
			c.done.Merge(delays[i])
			c.least = lower(c.least, least[i])
		case "cancelled":
			c.cancelled.Merge(delays[i])
		default:
			l.failed[at] += tasks[i]
		}
	}
}

// cell finds the cell of a code and size, a new one if it must be.
func (p *pane) cell(n, k, size int64) *cell {
	for i := range p.cells {
		if c := &p.cells[i]; c.n == n && c.k == k && c.bits == size {
			return c
		}
	}
	p.cells = append(p.cells, cell{n: n, k: k, bits: size, least: window.NullInt, smallest: window.NullInt})
	return &p.cells[len(p.cells)-1]
}

// lower is the lower of two values, of which either may be unknown; one below zero
// cannot be.
func lower(a, b int64) int64 {
	if b == window.NullInt || b < 0 || a != window.NullInt && a <= b {
		return a
	}
	return b
}

// number reads a key that is a number; −1 if it is none.
func number(text string) int64 {
	v, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return -1
	}
	return int64(v)
}

// together merges the cells of a history by code and size.
func together(history []pane) []cell {
	var sum pane
	for _, p := range history {
		for _, c := range p.cells {
			to := sum.cell(c.n, c.k, c.bits)
			to.tasks += c.tasks
			to.bytes += c.bytes
			to.done.Merge(c.done)
			to.cancelled.Merge(c.cancelled)
			to.least, to.smallest = lower(to.least, c.least), lower(to.smallest, c.smallest)
		}
	}
	slices.SortFunc(sum.cells, compareCells)
	return sum.cells
}

package coding

import (
	"cmp"
	"slices"
	"strconv"

	"penstock/schemas/event"
	"penstock/schemas/window"
)

// learned is what a window has shown beside what went into the state.
type learned struct {
	bad      int64
	unknown  map[string]int64 // tasks by store
	unlisted map[string]int64 // gauges by coder
	coders   []shown
}

// shown is what a window has shown of a coder.
type shown struct {
	panes      [][ops]pane // by member
	failed     []int64     // tasks by member
	background int64       // tasks
	gauges     int64       // of its queue, with
	backlog    int64       // their sum and the greatest
	most       int64
}

// learn takes the rows of a window into the state. Sums are integers, so that they do
// not depend on an order.
func (t *Policy) learn(tables map[string]*window.Table, end int64) *learned {
	s := t.state
	l := &learned{unknown: map[string]int64{}, unlisted: map[string]int64{}, coders: make([]shown, len(s.coders))}
	for i := range s.coders {
		n := len(s.coders[i].members)
		l.coders[i] = shown{panes: make([][ops]pane, n), failed: make([]int64, n)}
	}
	s.now = end
	if table := tables[window.Storage.Name]; table != nil {
		t.read(l, table)
	}
	number := end / t.config.Window.Microseconds()
	for i := range s.coders {
		for j := range s.coders[i].members {
			for op := range ops {
				o := &s.coders[i].members[j].ops[op]
				if p := l.coders[i].panes[j][op]; len(p.cells) > 0 {
					p.window = number
					slices.SortFunc(p.cells, compareCells)
					o.history = append(o.history, p)
				}
				o.history = slices.DeleteFunc(o.history, func(p pane) bool { return p.window <= number-int64(t.config.History) })
			}
		}
	}
	return l
}

func compareCells(a, b cell) int {
	return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.k, b.k), cmp.Compare(a.bits, b.bits))
}

// storageRow is a row of the rollup.
type storageRow struct {
	store, op, outcome     string
	n, k, size             int64 // −1: no number
	codeless               bool  // neither n nor k
	tasks, bytes, smallest int64
	least                  int64
	delay                  window.Bins
}

// read adds up the rows of a table.
func (t *Policy) read(l *learned, table *window.Table) {
	stores, opsOf, outcomes := table.Key("store"), table.Key("op"), table.Key("outcome")
	ns, ks, sizes := table.Key("n"), table.Key("k"), table.Key("bits")
	tasks, bytes, smallest := table.Column("tasks"), table.Column("bytes"), table.Column("bytes_least")
	least, delays := table.Column("delay_least_us"), table.HistColumn("delay")
	gauges, backlog, most := table.Column("gauges"), table.Column("backlog"), table.Column("backlog_most")
	for i := range table.Len() {
		if opsOf.At(i) == "" && tasks[i] == 0 {
			at, ok := t.index[stores.At(i)]
			if !ok {
				l.unlisted[stores.At(i)] += gauges[i]
				continue
			}
			x := &l.coders[at]
			x.gauges, x.backlog, x.most = x.gauges+gauges[i], x.backlog+backlog[i], max(x.most, most[i])
			continue
		}
		t.take(l, &storageRow{
			store: stores.At(i), op: opsOf.At(i), outcome: outcomes.At(i), n: number(ns.At(i)), k: number(ks.At(i)), size: number(sizes.At(i)),
			codeless: ns.At(i) == "" && ks.At(i) == "",
			tasks:    tasks[i], bytes: bytes[i], smallest: smallest[i], least: least[i], delay: delays[i],
		})
	}
}

// usable says whether a row can be what it says to be.
func (r *storageRow) usable() bool {
	return slices.Contains(opNames[:], r.op) && r.size >= 0 && r.size <= 63 && r.tasks >= 1 && r.bytes >= 0 && r.store != "" &&
		event.IsTask(r.outcome) &&
		(r.codeless || r.k >= 1 && r.n >= r.k && r.n <= 255)
}

// take adds a row of tasks up.
func (t *Policy) take(l *learned, r *storageRow) {
	if !r.usable() {
		l.bad += max(r.tasks, 1)
		return
	}
	at, ok := t.stores[r.store]
	if !ok {
		l.unknown[r.store] += r.tasks
		return
	}
	x := &l.coders[at.coder]
	if r.codeless {
		x.background += r.tasks
		return
	}
	t.state.coders[at.coder].seen = t.state.now
	c := x.panes[at.member][slices.Index(opNames[:], r.op)].cell(r.n, r.k, r.size)
	c.tasks += r.tasks
	c.bytes += r.bytes
	c.smallest = lower(c.smallest, r.smallest)
	switch r.outcome {
	case event.TaskDone:
		c.done.Merge(r.delay)
		c.least = lower(c.least, r.least)
	case event.TaskCancelled:
		c.cancelled.Merge(r.delay)
	default:
		x.failed[at.member] += r.tasks
	}
}

// requests are those of cells, by their tasks: one of n is the n-th part of a request.
func requests(cells []cell) (of float64, tasks int64) {
	for i := range cells {
		of += float64(cells[i].tasks) / float64(cells[i].n)
		tasks += cells[i].tasks
	}
	return of, tasks
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

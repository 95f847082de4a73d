package panes

import (
	"fmt"
	"math"
	"slices"
	"time"

	"penstock/schemas/window"
)

// Options says which windows an assembler puts together.
type Options struct {
	// Group is the group of rollups, window.Owners or window.Fast.
	Group string
	// Partitions is the number of partitions of the bus: a window closes when
	// all of them have passed it.
	Partitions int
	// Width of the windows, a multiple of the width of each rollup that is to
	// be seen: others of the group are left out. Default: the greatest width of
	// the group's rollups.
	Width time.Duration
	// Widths are the bus's: panes of others are foreign.
	Widths window.Widths
}

// Stats counts what was read and what was set aside, by reason. Panes are
// messages.
type Stats struct {
	Flushes int64 // applied
	Panes   int64 // applied
	Known   int64 // messages at or below the partition's sequence, seen before
	// Abandoned panes have no commit: their flush was sent again under another
	// batch, or its aggregator was fenced.
	Abandoned int64
	Missed    int64 // flushes that are gone from the stream, counted where the gap shows
	Cut       int64 // panes of flushes of which the beginning is gone
	LateRows  int64 // rows of the late rollup, handed out with their flush
	// TooLate are rows of a window that had closed, IntervalsTooLate the
	// incomplete intervals of closed windows. Aggregators send neither.
	TooLate          int64
	IntervalsTooLate int64
	// CountsOnly are counted and late rows of windows without panes.
	CountsOnly int64
}

// Assembler puts windows together from panes and commits in the order of the
// stream. It is pure and not safe for concurrent use.
type Assembler struct {
	opts       Options
	width      int64 // µs
	parts      []partition
	open       map[int64]*open // by window start
	starts     []int64         // of open, ascending
	counts     map[int64]window.WindowCount
	incomplete []window.Interval
	stats      Stats
}

// partition is how far one partition was read.
type partition struct {
	seq       uint64 // of its last commit, 0 before the first
	watermark int64
	total     window.Account
	missed    bool // a gap whose end is not known yet
	from      int64
	flush     string // of pending
	pending   []*window.Table
}

// open is a window that is not closed yet.
type open struct {
	panes map[string][]*window.Table // by rollup
}

// Flush is a committed flush as it was applied.
type Flush struct {
	Partition int
	Seq       uint64 // of the commit
	Commit    *window.Commit
	// Late are the flush's tables of the late rollup: they belong to no window
	// that a policy sees, and may be of windows that have closed.
	Late []*window.Table
}

// New returns an assembler that has read nothing.
func New(opts Options) *Assembler {
	if opts.Width == 0 {
		for _, w := range opts.Widths.Group(opts.Group) {
			opts.Width = max(opts.Width, w)
		}
	}
	a := &Assembler{
		opts: opts, width: opts.Width.Microseconds(),
		parts: make([]partition, opts.Partitions),
		open:  map[int64]*open{}, counts: map[int64]window.WindowCount{},
	}
	for p := range a.parts {
		a.parts[p].watermark = window.NullInt
	}
	return a
}

// Stats returns the counts so far.
func (a *Assembler) Stats() Stats { return a.stats }

// Sequences returns the sequence of the last applied commit of each partition.
func (a *Assembler) Sequences() []uint64 {
	out := make([]uint64, len(a.parts))
	for p := range a.parts {
		out[p] = a.parts[p].seq
	}
	return out
}

// Watermark returns the time (µs) that every partition has passed,
// window.NullInt while a partition has none.
func (a *Assembler) Watermark() int64 {
	floor := int64(math.MaxInt64)
	for p := range a.parts {
		floor = min(floor, a.parts[p].watermark)
	}
	return floor
}

// Pane takes in a pane of a flush; nothing of it is used before the flush's
// commit. The table is kept.
func (a *Assembler) Pane(partition int, seq uint64, flush string, t *window.Table) error {
	if partition < 0 || partition >= len(a.parts) || t.Rollup.Group != a.opts.Group || a.opts.Group == window.Owners && !a.sees(t) {
		return fmt.Errorf("pane of %s on partition %d at sequence %d: %w", t.Rollup.Name, partition, seq, ErrForeign)
	}
	if want := a.opts.Widths.Of(t.Rollup); t.Wide() != want {
		return fmt.Errorf("pane of %s on partition %d at sequence %d: windows of %s, expected %s: %w", t.Rollup.Name, partition, seq, t.Wide(), want, ErrForeign)
	}
	p := &a.parts[partition]
	if seq <= p.seq {
		a.stats.Known++
		return nil
	}
	if p.flush != flush {
		a.abandon(p, len(p.pending))
		p.flush = flush
	}
	p.pending = append(p.pending, t)
	return nil
}

// Commit applies a flush. It returns nil for a commit that was applied before.
func (a *Assembler) Commit(partition int, seq uint64, c *window.Commit) (*Flush, error) {
	if partition < 0 || partition >= len(a.parts) || c.Group != a.opts.Group || c.Partition != partition {
		return nil, fmt.Errorf("commit of group %s, partition %d at sequence %d: %w", c.Group, c.Partition, seq, ErrForeign)
	}
	p := &a.parts[partition]
	if seq <= p.seq {
		a.stats.Known++
		return nil, nil
	}
	floor := a.Watermark()
	if p.flush != c.Flush {
		a.abandon(p, len(p.pending))
	}
	// A flush that was sent again under a new batch id leaves its first attempt
	// in front of the whole one.
	if extra := len(p.pending) - c.Panes; extra > 0 {
		a.abandon(p, extra)
	}
	a.checkContinuity(p, c)
	f := &Flush{Partition: partition, Seq: seq, Commit: c}
	for _, t := range p.pending {
		a.apply(t, floor, f)
	}
	for _, w := range c.Windows {
		a.count(w, floor)
	}
	for _, i := range c.Incomplete {
		a.note(i, floor)
	}
	a.stats.Flushes++
	a.stats.Panes += int64(len(p.pending))
	p.seq, p.total, p.pending, p.flush = seq, c.Total, nil, ""
	p.watermark = max(p.watermark, c.Watermark)
	return f, nil
}

func (a *Assembler) abandon(p *partition, n int) {
	a.stats.Abandoned += int64(n)
	p.pending = slices.Delete(p.pending, 0, n)
}

// checkContinuity notices flushes, or the first panes of this one, that are
// gone from the stream. The rows of what is gone are not before the partition's
// watermark of then; they may be ahead of the watermark that the commit brings,
// by the disorder of its runs, for which one more window is allowed.
func (a *Assembler) checkContinuity(p *partition, c *window.Commit) {
	before := c.Total
	before.Received -= c.Account.Received
	gone := before.Received != p.total.Received
	if len(p.pending) < c.Panes {
		a.stats.Cut += int64(len(p.pending))
		p.pending = nil
		gone = true
	}
	if gone && !p.missed {
		a.stats.Missed++
		p.missed, p.from = true, p.watermark
	}
	if !p.missed || c.Watermark == window.NullInt {
		return
	}
	p.missed = false
	to := window.Ceil(max(c.Watermark, p.watermark), a.opts.Width) + a.width
	a.incomplete = append(a.incomplete, window.Interval{From: p.from, To: to, Reason: "trimmed"})
}

// sees reports whether windows are put together of a table's rollup: they hold whole ones
// of its own.
func (a *Assembler) sees(t *window.Table) bool { return a.width%t.Wide().Microseconds() == 0 }

// apply puts the rows of a committed pane into their windows. Rows of windows
// that had closed before the commit are late ones, or a fault of the sender.
func (a *Assembler) apply(t *window.Table, floor int64, f *Flush) {
	if !a.sees(t) {
		return
	}
	if t.Rollup == window.Late {
		f.Late = append(f.Late, t)
		for _, n := range t.Column("requests") {
			a.stats.LateRows += n
		}
		return
	}
	for lo := 0; lo < t.Len(); {
		start := window.Start(t.Start[lo], a.opts.Width)
		hi := lo + 1
		for hi < t.Len() && t.Start[hi] >= start && t.Start[hi]-start < a.width {
			hi++
		}
		if a.closed(start, floor) {
			a.stats.TooLate += int64(hi - lo)
		} else {
			w := a.window(start)
			w.panes[t.Rollup.Name] = append(w.panes[t.Rollup.Name], rows(t, lo, hi))
		}
		lo = hi
	}
}

// closed reports whether the window with that start had closed when the
// watermark of all partitions was floor.
func (a *Assembler) closed(start, floor int64) bool {
	return floor != window.NullInt && start+a.width <= floor
}

func (a *Assembler) window(start int64) *open {
	w := a.open[start]
	if w == nil {
		w = &open{panes: map[string][]*window.Table{}}
		a.open[start] = w
		i, _ := slices.BinarySearch(a.starts, start)
		a.starts = slices.Insert(a.starts, i, start)
	}
	return w
}

func (a *Assembler) count(w window.WindowCount, floor int64) {
	start := window.Start(w.Start, a.opts.Width)
	if a.closed(start, floor) {
		a.stats.CountsOnly += w.Counted + w.Late
		return
	}
	sum := a.counts[start]
	sum.Start = start
	sum.Counted += w.Counted
	sum.Late += w.Late
	a.counts[start] = sum
}

func (a *Assembler) note(i window.Interval, floor int64) {
	if floor != window.NullInt && i.To <= window.Start(floor, a.opts.Width) {
		a.stats.IntervalsTooLate++
		return
	}
	a.incomplete = append(a.incomplete, i)
}

// rows returns rows lo to hi of a table, sharing its memory.
func rows(t *window.Table, lo, hi int) *window.Table {
	if lo == 0 && hi == t.Len() {
		return t
	}
	out := t.Like()
	out.Start = t.Start[lo:hi:hi]
	for k := range t.Keys {
		out.Keys[k].Set(t.Keys[k].Codes[lo:hi:hi], t.Keys[k].Values)
	}
	for v := range t.Rollup.Values {
		if t.Rollup.Values[v].Merging == window.Hist {
			out.Hists[v] = t.Hists[v][lo:hi:hi]
		} else {
			out.Ints[v] = t.Ints[v][lo:hi:hi]
		}
	}
	return out
}

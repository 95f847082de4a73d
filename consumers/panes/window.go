package panes

import (
	"cmp"
	"slices"
	"time"

	"penstock/schemas/control"
	"penstock/schemas/window"
)

// Window is a closed window: all that arrived in time for it.
type Window struct {
	Start, End int64 // µs, half open
	// Tables holds the merged rows by rollup; a rollup without rows is missing.
	Tables map[string]*window.Table
	// Incomplete are the intervals, cut to the window, of which something is
	// missing; one for each run and reason where they overlap.
	Incomplete []window.Interval
	// Counted and Late are the rows that the commits name for the window up to
	// its close: late rows that come after it are in Flush.Late alone.
	Counted, Late int64
	// Sequences are those of the commits that the window was closed by, per
	// partition.
	Sequences []uint64
}

// Span returns the window as control messages name it.
func (w *Window) Span() control.Window {
	return control.Window{Start: time.UnixMicro(w.Start).UTC(), End: time.UnixMicro(w.End).UTC()}
}

// Close closes and returns the earliest window that every partition has passed,
// nil if there is none. Call it after each commit until it returns nil: panes
// are merged here, one window at a time.
func (a *Assembler) Close() *Window {
	floor := a.Watermark()
	if floor == window.NullInt {
		return nil
	}
	if len(a.starts) == 0 || a.starts[0]+a.width > floor {
		a.forget(window.Start(floor, a.opts.Width))
		return nil
	}
	start := a.starts[0]
	o := a.open[start]
	delete(a.open, start)
	a.starts = slices.Delete(a.starts, 0, 1)
	w := &Window{
		Start: start, End: start + a.width, Tables: make(map[string]*window.Table, len(o.panes)),
		Counted: a.counts[start].Counted, Late: a.counts[start].Late,
		Incomplete: a.overlapping(start, start+a.width), Sequences: a.Sequences(),
	}
	for name, tables := range o.panes {
		w.Tables[name] = window.Merge(tables[0].Rollup, tables...)
	}
	delete(a.counts, start)
	a.forget(w.End)
	return w
}

// forget drops intervals and counts of which no open window can be any more:
// all that end at or before a boundary of windows.
func (a *Assembler) forget(boundary int64) {
	a.incomplete = slices.DeleteFunc(a.incomplete, func(i window.Interval) bool { return i.To <= boundary })
	for start, c := range a.counts {
		if start+a.width <= boundary {
			a.stats.CountsOnly += c.Counted + c.Late
			delete(a.counts, start)
		}
	}
}

// overlapping returns the incomplete intervals cut to [start, end), sorted, with
// those of one run and reason joined where they touch.
func (a *Assembler) overlapping(start, end int64) []window.Interval {
	var cut []window.Interval
	for _, i := range a.incomplete {
		if i.From < end && i.To > start {
			i.From, i.To = max(i.From, start), min(i.To, end)
			cut = append(cut, i)
		}
	}
	slices.SortFunc(cut, func(x, y window.Interval) int {
		return cmp.Or(cmp.Compare(x.Reason, y.Reason), cmp.Compare(x.Run, y.Run), cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To))
	})
	out := cut[:0]
	for _, i := range cut {
		if n := len(out); n > 0 && out[n-1].Reason == i.Reason && out[n-1].Run == i.Run && i.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, i.To)
			continue
		}
		out = append(out, i)
	}
	return out
}

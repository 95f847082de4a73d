package ledger

import (
	"slices"
	"strings"

	"penstock/schemas/event"
	"penstock/schemas/window"
)

// Reasons of incomplete intervals.
const (
	lost    = "lost"
	dropped = "dropped"
	trimmed = "trimmed"
)

// Trimmed books that messages after the covered one left the stream unread.
// What is missing of known runs is lost at once, the next gap of each too, and
// the time from the watermark to the next thing that anyone says is incomplete.
func (l *Ledger) Trimmed() {
	for _, r := range l.runs {
		for len(r.gaps) > 0 {
			l.lose(r, r.gaps[0], trimmed)
		}
		r.trimmed = true
	}
	l.hole = true
	l.close(nil, nil)
}

// plug ends the interval that Trimmed opened, at the first watermark that was
// read since.
func (l *Ledger) plug(watermark int64, r *run) {
	if l.hole {
		l.hole = false
		l.miss(window.NullInt, watermark+l.slack(r), trimmed, "")
	}
}

// close does what follows from a message once it is booked: gaps are closed,
// marks take effect, runs end, time passes, and the watermark moves. The run is
// the message's, nil if it has none.
func (l *Ledger) close(r *run, words []event.Dropped) {
	if r != nil {
		for _, d := range words {
			l.drop(r, d)
		}
		for r.trimmed && len(r.gaps) > 0 {
			l.lose(r, r.gaps[0], trimmed)
		}
		if r.top() > 0 {
			r.trimmed = false
		}
		for r.crowded() && len(r.gaps) > 0 {
			l.lose(r, r.gaps[0], lost)
		}
	}
	for i := 0; i < len(l.runs); {
		r := l.runs[i]
		for l.cfg.Idle > 0 && len(r.gaps) > 0 && l.stream-r.gaps[0].Opened >= l.cfg.Idle {
			l.lose(r, r.gaps[0], lost)
		}
		barrier, end := r.settle()
		l.since.barrier = l.since.barrier || barrier
		l.since.end = l.since.end || end
		l.reach = max(l.reach, r.watermark)
		if end || l.stream-r.seen >= forget {
			l.retire(r)
			continue
		}
		i++
	}
	l.raise()
}

// raise moves the watermark of the partition to the least of its live runs.
func (l *Ledger) raise() {
	least, live := l.reach, false
	for _, r := range l.runs {
		if r.idle(l.stream, l.cfg.Idle) {
			continue
		}
		if !live || r.watermark < least {
			least = r.watermark // NullInt is below everything
		}
		live = true
	}
	l.watermark = max(l.watermark, least)
}

// drop gives up the sequences that the publisher says will never come.
func (l *Ledger) drop(r *run, d event.Dropped) {
	r.know(d.Last, window.NullInt, l.stream)
	n := r.lose(d.First, d.Last)
	if n == 0 {
		return
	}
	l.book(r, window.Account{LostBatches: n})
	l.since.incomplete = append(l.since.incomplete, window.Interval{From: d.From, To: d.To + 1, Reason: dropped, Run: r.name})
}

// lose gives up a gap, the first of its run.
func (l *Ledger) lose(r *run, g window.Gap, reason string) {
	after := g.After
	if after == window.NullInt {
		after = max(l.reach, r.watermark)
	}
	if after != window.NullInt {
		after += l.slack(r)
	}
	l.miss(r.watermark, after, reason, r.name)
	l.book(r, window.Account{LostBatches: r.lose(g.First, g.Last)})
}

// slack is how far (µs) the times of a run's rows may lie beyond its watermark.
func (l *Ledger) slack(r *run) int64 {
	if r == nil {
		return l.cfg.Disorder
	}
	return max(l.cfg.Disorder, r.ahead)
}

// miss notes that rows of the run between two of its watermarks are missing.
// Rows before the partition's watermark would have been late, and are not
// missed in any window.
func (l *Ledger) miss(from, to int64, reason, name string) {
	from = max(from, l.watermark)
	if to > from {
		l.since.incomplete = append(l.since.incomplete, window.Interval{From: from, To: to, Reason: reason, Run: name})
	}
}

// bounded returns the intervals joined, and those of each run and reason as one
// where there are too many.
func bounded(in []window.Interval) []window.Interval {
	all := joined(in)
	if len(all) <= maxIntervals {
		return all
	}
	out := all[:1]
	for _, v := range all[1:] {
		if last := &out[len(out)-1]; last.Run == v.Run && last.Reason == v.Reason {
			last.To = max(last.To, v.To)
			continue
		}
		out = append(out, v)
	}
	return out
}

// joined returns the intervals by run, reason and time, those that touch made
// one.
func joined(in []window.Interval) []window.Interval {
	slices.SortFunc(in, func(a, b window.Interval) int {
		if c := strings.Compare(a.Run, b.Run); c != 0 {
			return c
		}
		if c := strings.Compare(a.Reason, b.Reason); c != 0 {
			return c
		}
		if c := compareInt(a.From, b.From); c != 0 {
			return c
		}
		return compareInt(a.To, b.To)
	})
	var out []window.Interval
	for _, v := range in {
		if n := len(out) - 1; n >= 0 && out[n].Run == v.Run && out[n].Reason == v.Reason && v.From <= out[n].To {
			out[n].To = max(out[n].To, v.To)
			continue
		}
		out = append(out, v)
	}
	return out
}

package ledger

import (
	"strconv"

	"penstock/schemas/event"
	"penstock/schemas/window"
)

// Class is the account in which a row of a batch ends.
type Class uint8

// The classes of rows.
const (
	Counted Class = iota
	Late
	Quarantined
)

// Look returns what a batch of that run and sequence would be.
func (l *Ledger) Look(name string, seq uint64) Verdict {
	if r := l.find(name); r != nil {
		return r.look(seq)
	}
	if f := l.findRetired(name); f != nil {
		if seq > f.Last {
			return Retired
		}
		if _, ok := findSpan(f.Lost, seq); ok {
			return Found
		}
		return Duplicate
	}
	return Fresh
}

// Take books a Fresh or Found batch with the times (µs) and marks of its rows,
// and returns the class of each row; it stays valid until the next call.
func (l *Ledger) Take(at Position, h *event.Header, times []int64, marks []uint8) []Class {
	l.advance(at)
	verdict := l.Look(h.Run, h.Seq)
	var a window.Account
	a.Received = int64(len(times)) + h.Malformed
	a.Malformed = h.Malformed
	l.classify(times, marks, verdict == Found, &a)
	r := l.enter(h, verdict)
	if r != nil && verdict == Fresh {
		for i, t := range times {
			if marks[i] == uint8(event.InTime) && t-h.Watermark > r.ahead {
				r.ahead = t - h.Watermark
			}
		}
	}
	l.book(r, a)
	l.close(r, h.Dropped)
	return l.class
}

// Skip books a batch that is a Duplicate, or Retired: its rows are quarantined
// with the copy in REJECTS.
func (l *Ledger) Skip(at Position, h *event.Header) {
	l.advance(at)
	rows := int64(h.Rows)
	a := window.Account{Received: rows, Duplicate: rows}
	if l.Look(h.Run, h.Seq) == Retired {
		a = window.Account{Received: rows, Quarantined: rows}
	}
	r := l.find(h.Run)
	if r != nil {
		r.seen = l.stream
	}
	l.book(r, a)
	l.close(r, nil)
}

// Refuse books a Fresh or Found batch whose body cannot be used: its rows, as
// many as the header says, are malformed, and the windows that they may have
// been for are incomplete.
func (l *Ledger) Refuse(at Position, h *event.Header) {
	l.advance(at)
	verdict := l.Look(h.Run, h.Seq)
	rows := int64(h.Rows) + h.Malformed
	if verdict == Fresh {
		before := int64(window.NullInt)
		if r := l.find(h.Run); r != nil {
			before = r.watermark
		}
		l.miss(before, h.Watermark+l.slack(l.find(h.Run)), "undecodable", h.Run)
	}
	r := l.enter(h, verdict)
	l.book(r, window.Account{Received: rows, Malformed: rows})
	l.close(r, h.Dropped)
}

// Unreadable books a message whose headers cannot be used, with the number of
// rows that they still tell, 0 if they don't. No run is touched by it.
func (l *Ledger) Unreadable(at Position, rows int64) {
	l.advance(at)
	l.book(nil, window.Account{Received: rows, Malformed: rows})
	l.close(nil, nil)
}

// Mark books a mark. It reports false for one of a run that was forgotten,
// which says nothing any more.
func (l *Ledger) Mark(at Position, m *event.Mark) bool {
	l.advance(at)
	if l.findRetired(m.Run) != nil {
		l.close(nil, nil)
		return false
	}
	r := l.open(m.Run)
	p := l.pending(m)
	l.plug(m.Watermark, r)
	r.know(p.Upto, p.Watermark, l.stream)
	r.await(p)
	var dropped []event.Dropped
	for _, d := range m.Dropped {
		if d.Partition == l.cfg.Partition {
			dropped = append(dropped, d)
		}
	}
	l.close(r, dropped)
	return true
}

// advance moves stream time with a message.
func (l *Ledger) advance(at Position) {
	l.covered = at.Seq
	if l.stream == 0 {
		l.stream = at.Time
	} else {
		l.stream += min(max(at.Time-l.serverTime, 0), second)
	}
	l.serverTime = at.Time
}

// enter books the sequence of a Fresh or Found batch and returns its run, nil
// if it was forgotten.
func (l *Ledger) enter(h *event.Header, verdict Verdict) *run {
	if verdict == Found {
		if f := l.findRetired(h.Run); f != nil {
			f.Lost = without(f.Lost, h.Seq)
			return nil
		}
		r := l.open(h.Run)
		r.find(h.Seq)
		return r
	}
	r := l.open(h.Run)
	l.plug(h.Watermark, r)
	r.receive(h.Seq, h.Watermark, l.stream)
	return r
}

// classify gives each row its class and counts it, in its window too.
func (l *Ledger) classify(times []int64, marks []uint8, late bool, a *window.Account) {
	if cap(l.class) < len(times) {
		l.class = make([]Class, max(len(times), event.MaxRows))
	}
	l.class = l.class[:len(times)]
	width := l.cfg.Widths[0]
	var w *window.WindowCount
	var start, end int64
	for i, t := range times {
		c := Counted
		switch {
		case marks[i] > uint8(event.Late):
			l.class[i] = Quarantined
			a.Quarantined++
			continue
		case late || marks[i] == uint8(event.Late) || t < l.watermark:
			c = Late
		}
		l.class[i] = c
		if w == nil || t < start || t >= end {
			start = floor(t, width)
			end = start + width
			w = l.count(start)
		}
		if c == Late {
			w.Late++
			a.Late++
		} else {
			w.Counted++
			a.Counted++
		}
	}
}

// count returns the counts of the window that starts there.
func (l *Ledger) count(start int64) *window.WindowCount {
	i, ok := l.since.at[start]
	if !ok {
		i = int32(len(l.since.windows))
		l.since.at[start] = i
		l.since.windows = append(l.since.windows, window.WindowCount{Start: start})
	}
	return &l.since.windows[i]
}

func (l *Ledger) book(r *run, a window.Account) {
	l.total.Add(a)
	l.since.account.Add(a)
	if r != nil {
		r.account.Add(a)
	}
}

// RowsOf returns how many rows a batch with unusable headers is booked with:
// what its header Penstock-Rows says if that can be read, else 1, since a
// message was there and must be seen in the account.
func RowsOf(f event.Fields) int64 {
	if v := f[event.HeaderRows]; len(v) == 1 {
		if n, err := strconv.ParseInt(v[0], 10, 64); err == nil && n >= 0 && n <= event.MaxRows {
			return n
		}
	}
	return 1
}

package ledger

import (
	"slices"

	"penstock/schemas/event"
	"penstock/schemas/window"
)

// oracle is the slow and plain version of the books: one entry per sequence,
// everything derived anew each time.
type oracle struct {
	idle               int64
	runs               map[string]*oracleRun
	retired            map[string]*oracleRun
	retiredOrder       []string
	watermark, reach   int64
	stream, serverTime int64
	total              window.Account
}

type oracleRun struct {
	entries  map[uint64]*entry
	top      uint64
	marks    []window.PendingMark
	promised int64 // greatest watermark of marks in effect and headers up to contiguous
	seen     int64
}

type entryState int

const (
	missing entryState = iota
	received
	given // up as lost
	found
)

type entry struct {
	state     entryState
	watermark int64
	opened    int64
}

func newOracle(idle int64) *oracle {
	return &oracle{
		idle: idle, runs: map[string]*oracleRun{}, retired: map[string]*oracleRun{},
		watermark: window.NullInt, reach: window.NullInt,
	}
}

func (o *oracle) look(name string, seq uint64) Verdict {
	if r := o.retired[name]; r != nil {
		highest := uint64(0)
		for s, e := range r.entries {
			if e.state != missing {
				highest = max(highest, s)
			}
		}
		e := r.entries[seq]
		switch {
		case seq > highest:
			return Retired
		case e.state == given && slices.Contains(o.retiredOrder[max(0, len(o.retiredOrder)-keepLost):], name):
			return Found
		}
		return Duplicate
	}
	r := o.runs[name]
	if r == nil || r.entries[seq] == nil {
		return Fresh
	}
	switch r.entries[seq].state {
	case missing:
		return Fresh
	case given:
		return Found
	}
	return Duplicate
}

func (o *oracle) pass(at Position) {
	if o.stream == 0 {
		o.stream = at.Time
	} else if d := at.Time - o.serverTime; d > 0 {
		o.stream += min(d, second)
	}
	o.serverTime = at.Time
}

func (o *oracle) run(name string) *oracleRun {
	if o.runs[name] == nil {
		o.runs[name] = &oracleRun{entries: map[uint64]*entry{}, promised: window.NullInt}
	}
	o.runs[name].seen = o.stream
	return o.runs[name]
}

func (r *oracleRun) know(seq uint64, now int64) {
	for s := r.top + 1; s <= seq; s++ {
		r.entries[s] = &entry{opened: now, watermark: window.NullInt}
	}
	r.top = max(r.top, seq)
}

func (r *oracleRun) contiguous() uint64 {
	for s := uint64(1); ; s++ {
		if e := r.entries[s]; e == nil || e.state == missing {
			return s - 1
		}
	}
}

// pieces returns the missing sequences, joined where they touch and opened at
// one time.
func (r *oracleRun) pieces() [][2]uint64 {
	var out [][2]uint64
	for s := uint64(1); s <= r.top; s++ {
		e := r.entries[s]
		if e.state != missing {
			continue
		}
		if n := len(out) - 1; n >= 0 && out[n][1] == s-1 && r.entries[s-1].opened == e.opened {
			out[n][1] = s
			continue
		}
		out = append(out, [2]uint64{s, s})
	}
	return out
}

// ranges returns how many stretches above the contiguous sequence are there.
func (r *oracleRun) ranges() int {
	n := 0
	for s := r.contiguous() + 1; s <= r.top; s++ {
		if r.entries[s].state != missing && r.entries[s-1] != nil && r.entries[s-1].state == missing {
			n++
		}
	}
	return n
}

func (o *oracle) lose(r *oracleRun, first, last uint64) {
	for s := first; s <= last; s++ {
		if e := r.entries[s]; e != nil && e.state == missing {
			e.state = given
			o.total.LostBatches++
		}
	}
}

func (o *oracle) batch(at Position, h *event.Header, times []int64, marks []uint8) []Class {
	o.pass(at)
	verdict := o.look(h.Run, h.Seq)
	n := int64(len(times))
	switch verdict {
	case Duplicate:
		o.total.Add(window.Account{Received: n, Duplicate: n})
		if o.runs[h.Run] != nil {
			o.runs[h.Run].seen = o.stream
		}
		o.settle(nil)
		return nil
	case Retired:
		o.total.Add(window.Account{Received: n, Quarantined: n})
		o.settle(nil)
		return nil
	}
	var class []Class
	for i, t := range times {
		c := Counted
		switch {
		case marks[i] == 2:
			c = Quarantined
			o.total.Quarantined++
		case marks[i] == 1, t < o.watermark, verdict == Found:
			c = Late
			o.total.Late++
		default:
			o.total.Counted++
		}
		class = append(class, c)
	}
	o.total.Received += n + h.Malformed
	o.total.Malformed += h.Malformed
	if r := o.retired[h.Run]; r != nil {
		r.entries[h.Seq].state = found
		o.settle(nil)
		return class
	}
	r := o.run(h.Run)
	if verdict == Found {
		r.entries[h.Seq].state = found
	} else {
		r.know(h.Seq, o.stream)
		r.entries[h.Seq].state, r.entries[h.Seq].watermark = received, h.Watermark
	}
	for _, d := range h.Dropped {
		r.know(d.Last, o.stream)
		o.lose(r, d.First, d.Last)
	}
	o.settle(r)
	return class
}

func (o *oracle) mark(at Position, m *event.Mark) {
	o.pass(at)
	if o.retired[m.Run] != nil {
		o.settle(nil)
		return
	}
	r := o.run(m.Run)
	r.know(m.Upto[0], o.stream)
	r.marks = append(r.marks, window.PendingMark{Kind: string(m.Kind), Upto: m.Upto[0], Watermark: m.Watermark})
	for _, d := range m.Dropped {
		r.know(d.Last, o.stream)
		o.lose(r, d.First, d.Last)
	}
	o.settle(r)
}

func (o *oracle) settle(r *oracleRun) {
	if r != nil {
		for {
			p := r.pieces()
			if len(p) == 0 || len(p) <= maxGaps && r.ranges() <= maxRanges && r.top-r.contiguous() <= maxAbove {
				break
			}
			o.lose(r, p[0][0], p[0][1])
		}
	}
	names := make([]string, 0, len(o.runs))
	for name := range o.runs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		r := o.runs[name]
		for s := uint64(1); o.idle > 0 && s <= r.top; s++ {
			if e := r.entries[s]; e.state == missing && o.stream-e.opened >= o.idle {
				o.lose(r, s, s)
			}
		}
		contiguous := r.contiguous()
		for s := uint64(1); s <= contiguous; s++ {
			r.promised = max(r.promised, r.entries[s].watermark)
		}
		ended := false
		r.marks = slices.DeleteFunc(r.marks, func(m window.PendingMark) bool {
			if m.Upto > contiguous {
				return false
			}
			r.promised = max(r.promised, m.Watermark)
			ended = ended || m.Kind == string(event.End)
			return true
		})
		o.reach = max(o.reach, r.promised)
		if ended || o.stream-r.seen >= forget {
			delete(o.runs, name)
			o.retired[name] = r
			o.retiredOrder = append(o.retiredOrder, name)
		}
	}
	least, live := o.reach, false
	for _, r := range o.runs {
		if o.idle > 0 && o.stream-r.seen >= o.idle {
			continue
		}
		if !live || r.promised < least {
			least = r.promised
		}
		live = true
	}
	o.watermark = max(o.watermark, least)
}

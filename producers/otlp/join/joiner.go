package join

import (
	"math"

	"penstock/producers/otlp/span"
)

// Joiner gathers spans by trace and makes calls of them. It is not safe for
// concurrent use.
type Joiner struct {
	o      Options
	emit   func(*Call)
	traces map[span.Trace]*trace
	// oldest and newest are the ends of the list of open traces by their last span,
	// first and youngest of the list by their first one.
	quiet, born list
	held        int
	spare       []*trace
	resolver    resolver
	memory      memory
	stats       Stats
	looked      int64 // when a Live joiner looked at its traces
}

// trace is one that is open.
type trace struct {
	key         span.Trace
	spans       []span.Span
	first, last int64 // the least and the greatest Heard of its spans
	quiet, born link
	// due is when the next call may be ripe, made are the halves of those that are
	// made already; both are of a Live joiner.
	due  int64
	made map[half]struct{}
	// parked says that a span is to come that others hang below.
	parked bool
}

// half names a half of a span within its trace.
type half struct {
	id     span.ID
	serves bool
}

func halfOf(n *node) half { return half{n.ID, n.Serves()} }

// New returns a Joiner that calls emit for each call. The call is emit's until it
// returns.
func New(o Options, emit func(*Call)) *Joiner {
	o.complete()
	j := &Joiner{o: o, emit: emit, traces: make(map[span.Trace]*trace), memory: newMemory(o.Memory)}
	j.quiet = list{link: func(t *trace) *link { return &t.quiet }}
	j.born = list{link: func(t *trace) *link { return &t.born }}
	return j
}

// Add takes a span at a time that never goes back (Options.Window has its unit);
// it is copied. One that Check refuses has its fate at once.
func (j *Joiner) Add(now int64, s *span.Span) {
	j.stats.Read++
	if s.Check() != nil {
		j.stats.Account[Malformed]++
		return
	}
	if s.Duration == span.Unknown {
		j.stats.NoDuration++
	}
	if s.Backwards {
		j.stats.Backwards++
	}
	key := s.Trace
	if j.o.Trace64 {
		key = key.Low()
	}
	if f, known := j.memory.fate(key, s); known {
		j.stats.Account[f]++
		return
	}
	t := j.traces[key]
	if t == nil {
		t = j.open(key)
	}
	heard := j.heard(now, s)
	t.spans = append(t.spans, *s)
	t.spans[len(t.spans)-1].Heard = heard
	t.parked = false
	t.first, t.last, t.due = min(t.first, heard), max(t.last, heard), min(t.due, heard+j.o.Window)
	j.quiet.toEnd(t)
	j.held++
	for j.held > j.o.MaxSpans {
		j.stats.Forced++
		j.close(j.quiet.head)
	}
	j.Advance(now)
}

// heard is when a span's window begins: when it came, or, if now is a time, when it
// ended, unless its clock can't be believed.
func (j *Joiner) heard(now int64, s *span.Span) int64 {
	if !j.o.Live || s.End() == span.Unknown {
		return now
	}
	if end := s.End() / 1000; end <= now && now-end < j.o.Window {
		return end
	}
	return now
}

// Malformed counts what was found to be no span before it could be added.
func (j *Joiner) Malformed(n int64) {
	j.stats.Read += n
	j.stats.Account[Malformed] += n
}

// Advance resolves the traces whose time has come.
func (j *Joiner) Advance(now int64) {
	if j.o.Live {
		j.look(now)
		return
	}
	for t := j.quiet.head; t != nil && j.o.Window > 0 && now-t.last >= j.o.Window; t = j.quiet.head {
		j.close(t)
	}
	for t := j.born.head; t != nil && j.o.MaxAge > 0 && now-t.first >= j.o.MaxAge; t = j.born.head {
		j.close(t)
	}
}

// Flush resolves all traces, those that have been quiet for longest first.
func (j *Joiner) Flush() {
	for j.quiet.head != nil {
		j.close(j.quiet.head)
	}
}

// Held is the number of spans in open traces.
func (j *Joiner) Held() int { return j.held }

// Stats are the totals until now.
func (j *Joiner) Stats() Stats { return j.stats }

func (j *Joiner) open(key span.Trace) *trace {
	var t *trace
	if n := len(j.spare); n > 0 {
		t, j.spare = j.spare[n-1], j.spare[:n-1]
	} else {
		t = &trace{}
	}
	t.key, t.first, t.last, t.due = key, math.MaxInt64, math.MinInt64, math.MaxInt64
	j.traces[key] = t
	j.quiet.toEnd(t)
	j.born.toEnd(t)
	return t
}

const (
	maxSpare      = 1024 // traces that are kept to be used again
	maxSpareSpans = 256
)

// close resolves a trace and ends it.
func (j *Joiner) close(t *trace) {
	j.resolver.resolve(t.spans, j.o.Entries)
	j.finish(t)
}

// finish ends a trace that has just been resolved.
func (j *Joiner) finish(t *trace) {
	j.stats.Traces++
	j.stats.Account[Duplicate] += j.resolver.seen.duplicates
	j.stats.Gaps += j.resolver.seen.gaps
	j.stats.Asynchronous += j.resolver.seen.asynchronous
	for i := range j.resolver.nodes {
		if n := &j.resolver.nodes[i]; !t.has(n) {
			j.stats.Account[n.fate]++
		}
	}
	for i := range j.resolver.calls {
		if c := &j.resolver.calls[i]; !t.has(c.of()) {
			j.call(t, c)
		}
	}
	j.held -= len(t.spans)
	delete(j.traces, t.key)
	j.quiet.remove(t)
	j.born.remove(t)
	if len(j.spare) < maxSpare && cap(t.spans) <= maxSpareSpans {
		clear(t.spans)
		clear(t.made)
		*t = trace{spans: t.spans[:0], made: t.made}
		j.spare = append(j.spare, t)
	}
}

// call hands a call over and adds it to the totals.
func (j *Joiner) call(t *trace, c *made) {
	c.count(&j.stats)
	j.memory.keep(t.key, c)
	j.emit(&c.Call)
}

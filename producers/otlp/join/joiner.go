package join

import "penstock/producers/otlp/span"

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
}

// trace is one that is open.
type trace struct {
	key         span.Trace
	spans       []span.Span
	first, last int64
	quiet, born link
}

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
		t = j.open(key, now)
	}
	t.spans = append(t.spans, *s)
	t.last = now
	j.quiet.toEnd(t)
	j.held++
	for j.held > j.o.MaxSpans {
		j.stats.Forced++
		j.close(j.quiet.head)
	}
	j.Advance(now)
}

// Malformed counts what was found to be no span before it could be added.
func (j *Joiner) Malformed(n int64) {
	j.stats.Read += n
	j.stats.Account[Malformed] += n
}

// Advance resolves the traces whose time has come.
func (j *Joiner) Advance(now int64) {
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

func (j *Joiner) open(key span.Trace, now int64) *trace {
	var t *trace
	if n := len(j.spare); n > 0 {
		t, j.spare = j.spare[n-1], j.spare[:n-1]
	} else {
		t = &trace{}
	}
	t.key, t.first = key, now
	j.traces[key] = t
	j.quiet.toEnd(t)
	j.born.toEnd(t)
	return t
}

const (
	maxSpare      = 1024 // traces that are kept to be used again
	maxSpareSpans = 256
)

func (j *Joiner) close(t *trace) {
	j.stats.Traces++
	j.resolver.resolve(t.spans, j.o.Entries, &j.stats)
	for i := range j.resolver.calls {
		c := &j.resolver.calls[i]
		j.memory.keep(t.key, c)
		j.emit(&c.Call)
	}
	j.held -= len(t.spans)
	delete(j.traces, t.key)
	j.quiet.remove(t)
	j.born.remove(t)
	if len(j.spare) < maxSpare && cap(t.spans) <= maxSpareSpans {
		clear(t.spans)
		*t = trace{spans: t.spans[:0]}
		j.spare = append(j.spare, t)
	}
}

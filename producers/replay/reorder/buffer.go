package reorder

import (
	"fmt"
	"math"
	"time"

	"penstock/schemas/event"
)

// followers is how many rows decide whether a row ahead of its time is in the
// future or the first after a pause.
const followers = 10

// DefaultLimit is the most rows that wait: about 300 MB.
const DefaultLimit = 1 << 20

// Never is the horizon while no row has been in time.
const Never = math.MinInt64

// Options of a buffer.
type Options struct {
	// Disorder is how far out of order the rows of the input may be.
	Disorder time.Duration
	// Limit is the most rows that may wait. Defaults to DefaultLimit.
	Limit int
	// MaxSkew is how far a row may be ahead of the last one that was in time.
	MaxSkew time.Duration
}

// Buffer puts rows in order. Its use is a loop: Push one row, then Next until
// there is none; at the end of the input Finish, then Next until there is none.
// It is not safe for concurrent use.
type Buffer struct {
	disorder, skew int64 // µs
	limit          int
	opts           Options

	rows []event.Request // slots
	free []int32
	used int32 // slot of the row that Next returned last, −1 for none

	position uint64
	last     int64 // time of the last row that was in time
	greatest int64
	any      bool // a row has been in time
	finished bool

	stats Stats

	held    queue // rows from one that is being judged on
	marked  queue // late and future rows to be handed on at once
	ordered queue // in time, and each not before the one in front of it
	strays  heap  // in time, before the end of ordered when they came
}

// Stats is how the input's order was.
type Stats struct {
	// Disordered rows, of those in time or late, came after one of a greater
	// time; Disorder is by how much at most.
	Disordered int64
	Disorder   time.Duration
}

// Stats returns what was seen so far.
func (b *Buffer) Stats() Stats { return b.stats }

// New returns an empty buffer.
func New(o Options) *Buffer {
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	return &Buffer{
		disorder: o.Disorder.Microseconds(), skew: o.MaxSkew.Microseconds(),
		limit: o.Limit, opts: o, used: -1,
	}
}

// Horizon is the greatest time that was in time, in input order, less the
// disorder; Never before the first.
func (b *Buffer) Horizon() int64 {
	if !b.any {
		return Never
	}
	return b.greatest - b.disorder
}

// Waiting is the number of rows that the buffer holds.
func (b *Buffer) Waiting() int {
	return b.held.len() + b.marked.len() + b.ordered.len() + len(b.strays)
}

// Push takes the next row of the input; it is copied, its Mark is set anew. It
// returns ErrTooMany if the buffer is full.
func (b *Buffer) Push(r *event.Request) error {
	b.release()
	if b.Waiting() >= b.limit {
		return fmt.Errorf("%w: %d rows inside the disorder of %v; a smaller disorder needs less memory",
			ErrTooMany, b.limit, b.opts.Disorder)
	}
	it := item{time: r.Time, position: b.position, slot: b.slot(r)}
	b.position++
	if b.held.len() == 0 && !b.suspect(it.time) {
		b.take(it)
		return nil
	}
	b.held.push(it)
	b.judge(false)
	return nil
}

// Finish says that the input has ended: what is held is judged by the rows that
// there are, and all rows become ready.
func (b *Buffer) Finish() {
	b.release()
	b.judge(true)
	b.finished = true
}

// Next returns the next row that is ready, with its Mark set, or nil. The row
// is valid until the next call of any method.
func (b *Buffer) Next() *event.Request {
	b.release()
	var it item
	switch {
	case b.marked.len() > 0:
		it = b.marked.pop()
	case len(b.strays) > 0 && (b.ordered.len() == 0 || b.strays[0].before(b.ordered.front())):
		if !b.ready(b.strays[0].time) {
			return nil
		}
		it = b.strays.pop()
	case b.ordered.len() > 0 && b.ready(b.ordered.front().time):
		it = b.ordered.pop()
	default:
		return nil
	}
	b.used = it.slot
	return &b.rows[it.slot]
}

// ready reports whether no row that is still to come can be in time and before
// one of time t. One at the horizon itself comes later in the input, hence
// after it.
func (b *Buffer) ready(t int64) bool { return b.finished || t <= b.greatest-b.disorder }

// suspect reports whether a row of time t has to be judged by its followers.
func (b *Buffer) suspect(t int64) bool { return !b.any || t > b.last+b.skew }

// judge takes held rows as far as they can be judged.
func (b *Buffer) judge(end bool) {
	for b.held.len() > 0 {
		it := b.held.front()
		if b.suspect(it.time) {
			v := b.verdict(it, end)
			if v == open {
				return
			}
			if v == future {
				b.mark(b.held.pop(), event.Future)
				continue
			}
		}
		b.take(b.held.pop())
	}
}

type verdict int

const (
	open verdict = iota
	inTime
	future
)

// verdict judges the front of held by its followers.
func (b *Buffer) verdict(it item, end bool) verdict {
	n, behind := min(b.held.len()-1, followers), 0
	for i := 1; i <= n; i++ {
		if b.held.at(i).time < it.time-b.skew {
			behind++
		}
	}
	if !b.any {
		switch {
		case n == followers && behind == followers:
			return future
		case behind < n, end: // One that is not behind: it cannot be all of them.
			return inTime
		}
		return open
	}
	switch {
	case behind > 0:
		return future
	case n == followers:
		return inTime
	case end:
		return future
	}
	return open
}

// take classes a row that is not in the future.
func (b *Buffer) take(it item) {
	if b.any && it.time < b.greatest {
		b.stats.Disordered++
		b.stats.Disorder = max(b.stats.Disorder, time.Duration(b.greatest-it.time)*time.Microsecond)
	}
	if b.any && it.time < b.greatest-b.disorder {
		b.mark(it, event.Late)
		return
	}
	b.rows[it.slot].Mark = event.InTime
	b.last = it.time
	if !b.any || it.time > b.greatest {
		b.any, b.greatest = true, it.time
	}
	// A recording that is in order only ever uses the queue.
	if b.ordered.len() == 0 || it.time >= b.ordered.back().time {
		b.ordered.push(it)
		return
	}
	b.strays.push(it)
}

func (b *Buffer) mark(it item, m event.Timing) {
	b.rows[it.slot].Mark = m
	b.marked.push(it)
}

func (b *Buffer) slot(r *event.Request) int32 {
	if n := len(b.free); n > 0 {
		s := b.free[n-1]
		b.free = b.free[:n-1]
		b.rows[s] = *r
		return s
	}
	b.rows = append(b.rows, *r)
	return int32(len(b.rows) - 1)
}

func (b *Buffer) release() {
	if b.used >= 0 {
		b.free = append(b.free, b.used)
		b.used = -1
	}
}

package coder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
	"penstock/consumers/executor/coder/queue"
)

// held is a version whose blobs aren't deleted meanwhile, and what is known of them.
type held struct {
	*object.Version
	rest catalog.Rest
}

// lacks tells whether a blob isn't in its store for certain, or is damaged: it is asked
// last.
func (h *held) lacks(blob int) bool {
	return !h.Landed(blob) || slices.Contains(h.rest.Lacking, blob)
}

// fetch gets one segment into a decoder: as many strips as rebuild it, or only those of
// a small range. Tasks fill windows of the decoder's memory side by side; what they
// brought is checked strip by strip as it comes, so that a damaged chunk is replaced at
// once by another one.
type fetch struct {
	c       *Coder
	v       *held
	d       *object.Decoder
	segment int
	// first … last are the strips that are wanted, and nothing else; last below 0: any
	// that rebuild the segment.
	first, last int

	mu     sync.Mutex
	strips []stripState
	open   []*window
	// round goes up when the memory is taken away from tasks: what was made in an
	// earlier one may still run, and counts for nothing any more.
	round   int
	owed    []int // strips that failed tasks leave to be replaced
	damaged []int // blobs
}

type stripState uint8

const (
	stripFresh  stripState = iota // nobody has asked for it
	stripAsked                    // a task is to bring it
	stripWhole                    // it has passed its checksum
	stripBad                      // it was damaged
	stripFailed                   // its store failed
)

var errDamaged = errors.New("chunk is damaged")

// fetchSegment gets a segment. It returns ErrBusy, ErrClosed, ErrTooFew and ctx's error.
func (c *Coder) fetchSegment(ctx context.Context, v *held, d *object.Decoder, p object.Piece, keep, background bool) error {
	if err := d.Begin(p.Segment); err != nil {
		return err
	}
	f := &fetch{c: c, v: v, d: d, segment: p.Segment, first: p.First, last: p.Last, strips: make([]stripState, v.Shape.N)}
	if !f.few() {
		f.first, f.last = 0, -1
	}
	r := &queue.Request{Op: queue.Read, Keep: keep, Background: background, Plan: f.plan, More: f.more}
	err := c.queue.Do(ctx, r)
	f.decide()
	if err != nil || !f.ready() {
		err = f.again(ctx, err, background)
	}
	if errors.Is(err, ErrTooFew) {
		err = f.later(ctx, err, background)
	}
	f.lost(err)
	f.report()
	return err
}

// few tells whether the strips of the range are so few that getting just those is less
// than getting the segment. In spread their stores must be among the best, too.
func (f *fetch) few() bool {
	count := f.last - f.first + 1
	if count > f.v.Shape.K/2 {
		return false
	}
	list, err := f.v.Chunks(nil, f.segment, max(1, f.v.Shape.Cut))
	if err != nil {
		return false
	}
	f.c.byRank(f.v, list)
	best := list[:min(f.v.Shape.Cut, len(list))]
	for i := f.first; i <= f.last; i++ {
		if !slices.ContainsFunc(best, func(c object.Chunk) bool { return i >= c.First && i < c.First+c.Count && !f.v.lacks(c.Blob) }) {
			return false
		}
	}
	return true
}

// plan is the request's Plan.
func (f *fetch) plan(code queue.Code) queue.Plan {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last >= 0 {
		var tasks []queue.Task
		for _, run := range f.runs(f.first, f.last-f.first+1) {
			tasks = append(tasks, f.task(1, 1, run))
		}
		return queue.Plan{Tasks: tasks, Need: len(tasks)}
	}
	code = f.c.sized(queue.Read, code, f.v.Shape.Layout, f.v.Shape.SegmentBytes(f.segment))
	n, k := f.v.Clamp(code.N, code.K)
	list, err := f.v.Chunks(make([]object.Chunk, 0, n), f.segment, k)
	if err != nil {
		return queue.Plan{Err: err}
	}
	f.c.byRank(f.v, list)
	sure := len(list)
	for sure > k && f.v.lacks(list[sure-1].Blob) {
		sure--
	}
	n = min(n, sure)
	tasks := make([]queue.Task, 0, n)
	for _, chunk := range list[:n] {
		tasks = append(tasks, f.task(n, k, chunk))
	}
	return queue.Plan{Tasks: tasks, Need: k}
}

// sizer is a chooser whose codes depend on the size of a request.
type sizer interface {
	// Sized is what a code that was chosen is for a request of so many bytes.
	Sized(op queue.Op, code queue.Code, bytes int64) queue.Code
}

// sized is the code of a request by its size, too. In spread k isn't chosen, and n is how
// many stores are asked.
func (c *Coder) sized(op queue.Op, code queue.Code, layout object.Layout, bytes int64) queue.Code {
	if s, ok := c.o.Chooser.(sizer); ok && layout == object.Shared {
		return s.Sized(op, code, bytes)
	}
	return code
}

// runs cuts strips into runs that lie in one blob each.
func (f *fetch) runs(first, count int) []object.Chunk {
	var runs []object.Chunk
	_, per := f.v.Shape.Strips(0)
	for count > 0 {
		n := min(count, per-first%per)
		if run, err := f.v.Shape.Run(f.segment, first, n); err == nil {
			runs = append(runs, run)
		}
		first, count = first+n, count-n
	}
	return runs
}

// task makes the task that gets runs of strips, mostly one. The lock is held.
func (f *fetch) task(n, k int, runs ...object.Chunk) queue.Task {
	t := queue.Task{Store: f.v.Places[runs[0].Blob].Store, N: n, K: k}
	for _, run := range runs {
		t.Bytes += run.Bytes
		for i := range run.Count {
			f.strips[run.First+i] = stripAsked
		}
	}
	round := f.round
	t.Run = func(ctx context.Context) error {
		ctx, cancel := f.c.limited(ctx)
		defer cancel()
		var failed error
		bad := 0
		for _, run := range runs {
			n, err := f.get(ctx, round, run)
			bad += n
			failed = errors.Join(failed, err)
		}
		if failed != nil {
			f.owe(round, bad)
		}
		return failed
	}
	return t
}

// get gets one run, and tells how many of its strips are not whole.
func (f *fetch) get(ctx context.Context, round int, run object.Chunk) (bad int, err error) {
	place := f.v.Places[run.Blob]
	s := f.c.named[place.Store]
	f.mu.Lock()
	if f.round != round {
		f.mu.Unlock()
		return run.Count, errShut
	}
	w := &window{b: f.d.Room(run.First, run.Count)}
	f.open = append(f.open, w)
	f.mu.Unlock()
	if s == nil {
		err = fmt.Errorf("%w: %s", errNoStore, place.Store)
	} else {
		began := f.c.o.Clock.Now()
		_, err = s.Get(ctx, place.Key, run.Offset, run.Bytes, w)
		f.c.note(ctx, s, began, run.Bytes, err)
		if errors.Is(err, chunks.ErrNotFound) {
			s.suspectNow() // it may have lost more than this
		}
	}
	return f.take(round, run, w, err)
}

// take checks what a store has brought.
func (f *fetch) take(round int, run object.Chunk, w *window, err error) (bad int, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	got := w.shut()
	if f.round != round {
		return run.Count, errors.Join(errShut, err)
	}
	faults, fail := f.d.Fill(run.First, run.Count, int64(got))
	if fail != nil {
		return run.Count, fail
	}
	for i := range run.Count {
		f.strips[run.First+i] = stripWhole
	}
	lost := err != nil && !gone(err)
	for _, fault := range faults {
		f.strips[fault.Strip] = stripBad
		if lost && (fault.Kind == object.Missing || fault.Kind == object.Truncated) {
			f.strips[fault.Strip] = stripFailed // the store's fault, not the strip's
			continue
		}
		f.c.count(EventStrips, fault.Kind.String(), 1)
		if !slices.Contains(f.damaged, run.Blob) {
			f.damaged = append(f.damaged, run.Blob)
		}
	}
	if len(faults) > 0 && err == nil {
		err = fmt.Errorf("%w: %v", errDamaged, faults[0])
	}
	if err != nil {
		err = fmt.Errorf("blob %d in %s: %w", run.Blob, f.v.Places[run.Blob].Store, err)
	}
	return len(faults), err
}

func (f *fetch) owe(round, strips int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.round == round {
		f.owed = append(f.owed, strips)
	}
}

// more is the request's More: a chunk in place of one that failed, of strips that
// nobody has asked for. For a small range it is all that rebuilds the segment.
func (f *fetch) more() (queue.Task, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.owed) == 0 {
		return queue.Task{}, false // the task was told to end before it had begun
	}
	want := f.owed[0]
	f.owed = f.owed[1:]
	if f.last >= 0 {
		want = f.d.Lacking()
	}
	runs := f.unasked(want)
	if len(runs) == 0 {
		return queue.Task{}, false
	}
	f.c.count(EventReplaced, "read", 1)
	return f.task(0, 0, runs...), true
}

// unasked finds so many strips that nobody has asked for, from the best stores.
func (f *fetch) unasked(want int) []object.Chunk {
	var runs []object.Chunk
	for _, blob := range f.blobs() {
		first, count := f.v.Shape.Strips(blob.Blob)
		for i := first; i < first+count && want > 0; i++ {
			if f.strips[i] != stripFresh {
				continue
			}
			from := i
			for i < first+count && f.strips[i] == stripFresh && i-from < want {
				i++
			}
			if run, err := f.v.Shape.Run(f.segment, from, i-from); err == nil {
				runs = append(runs, run)
				want -= run.Count
			}
		}
	}
	return runs
}

// blobs are those that landed as a chunk each, the best first.
func (f *fetch) blobs() []object.Chunk {
	list, err := f.v.Chunks(nil, f.segment, f.v.Shape.Cut)
	if err != nil {
		return nil
	}
	f.c.byRank(f.v, list)
	return list
}

// decide takes the memory away from tasks that still run.
func (f *fetch) decide() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.round++
	f.owed = nil
	for _, w := range f.open {
		w.shut()
	}
	f.open = f.open[:0]
}

// ready tells whether the strips that are wanted are whole, or can be rebuilt.
func (f *fetch) ready() bool {
	if f.d.Lacking() == 0 {
		return true
	}
	if f.last < 0 {
		return false
	}
	for i := f.first; i <= f.last; i++ {
		if f.strips[i] != stripWhole {
			return false
		}
	}
	return true
}

// gone tells whether an error says that a blob isn't there, rather than that its store is
// in trouble: a store that is not configured any more doesn't come back of itself.
func gone(err error) bool { return errors.Is(err, chunks.ErrNotFound) || errors.Is(err, errNoStore) }

// report queues the repair of what was found damaged.
func (f *fetch) report() {
	if len(f.damaged) > 0 {
		f.c.lack(f.v.ID, f.damaged)
	}
}

// limited bounds a task.
func (c *Coder) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.o.TaskTimeout, errTimeout)
}

// queueError says what the queue's errors are to callers of the coder.
func queueError(err error) error {
	switch {
	case errors.Is(err, queue.ErrFull):
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case errors.Is(err, queue.ErrClosed):
		return fmt.Errorf("%w: %w", ErrClosed, err)
	case errors.Is(err, queue.ErrTooFew):
		return fmt.Errorf("%w: %w", ErrTooFew, err)
	}
	return err
}

// probing is how often a store of which nothing was heard is looked at.
const probing = 2 * time.Second

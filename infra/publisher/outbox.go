package publisher

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"

	"penstock/infra/bus"
	"penstock/schemas/event"
)

const (
	// pauseLeast and pauseMost bound how long nothing is sent after a failure.
	pauseLeast = 20 * time.Millisecond
	pauseMost  = time.Second
	// flightMost bounds the messages without an answer; the server's queue for
	// a stream holds 10,000.
	flightMost = 1024
)

// outbox holds everything that was cut and is not done. Its lock is taken with
// a slot's lock held, never the other way round, and never over I/O.
type outbox struct {
	live     bool
	queueMax int64 // of queued
	max      int64 // bytes in flight, and bytes held in memory

	mu     sync.Mutex
	number uint64
	undone []*entry // in the order of numbers
	raw    []*entry // to be encoded
	ready  readyHeap
	flight map[uint64]*entry
	tried  map[uint64]*entry // sent before, and ready again
	bytes  int64             // in flight
	held   int64             // bodies in memory
	fenced bool              // a fence is in flight, or what is sent alone
	asked  time.Time         // since when an answer is waited for; zero: nothing waits
	acks   uint64            // acknowledgements until now
	pause  time.Duration
	until  time.Time // nothing is sent before
	drops  [][]event.Dropped
	unsaid []event.Dropped // drops that the spool has not noted yet

	queued   atomic.Int64 // cost of raw; changed under the lock
	room     chan struct{}
	packWake chan struct{}
	sendWake chan struct{}
	count    *counters
}

func newOutbox(live bool, queueMax, most int64, partitions int, count *counters) *outbox {
	return &outbox{
		live: live, queueMax: queueMax, max: most, count: count,
		flight: map[uint64]*entry{}, tried: map[uint64]*entry{}, drops: make([][]event.Dropped, partitions),
		room: make(chan struct{}), packWake: make(chan struct{}, 1), sendWake: make(chan struct{}, 1),
	}
}

func wake(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // it is awake already
	}
}

// cut takes a batch that has just been cut. A live one is dropped if the packer
// is too far behind, for its caller must not wait.
func (o *outbox) cut(e *entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.enter(e)
	if o.live && o.queued.Load() >= o.queueMax {
		e.raw, e.gauges = nil, nil
		o.drop(e, DropQueue)
		return
	}
	o.raw = append(o.raw, e)
	o.queued.Add(e.cost())
	wake(o.packWake)
}

// add takes a mark, or a batch that is in the spool already.
func (o *outbox) add(e *entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.enter(e)
	heap.Push(&o.ready, e)
	wake(o.sendWake)
}

// enter numbers an entry. The lock is held, as for all that follow unless they
// say that they take it.
func (o *outbox) enter(e *entry) {
	if !e.first {
		o.number++
		e.number = o.number
	}
	if !e.loose {
		o.undone = append(o.undone, e)
	}
}

// nextRaw is the next batch to encode, nil if there is none. It takes the lock.
func (o *outbox) nextRaw() *entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.raw) == 0 {
		return nil
	}
	e := o.raw[0]
	o.raw[0] = nil
	o.raw = o.raw[1:]
	o.queued.Add(-e.cost())
	o.makeRoom()
	return e
}

// makeRoom wakes all who wait for something to get less.
func (o *outbox) makeRoom() {
	close(o.room)
	o.room = make(chan struct{})
}

// push takes an encoded batch. It takes the lock.
func (o *outbox) push(e *entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.msg.Data != nil {
		if e.place != nil && o.held+int64(e.size) > o.max {
			e.msg.Data, e.msg.Header = nil, nil // the spool has them
		} else {
			o.held += int64(e.size)
		}
	}
	heap.Push(&o.ready, e)
	wake(o.sendWake)
}

// nextReady is the next entry to send and its message, marked as in flight; nil
// if there is none, or it has to wait. A message that the spool has too leaves
// memory here; one without headers is there only. It takes the lock.
func (o *outbox) nextReady(now time.Time, generation uint64) (*entry, bus.Msg) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.ready) > 0 && o.ready[0].done {
		heap.Pop(&o.ready)
	}
	if len(o.ready) == 0 || o.fenced || now.Before(o.until) || len(o.flight) >= flightMost {
		return nil, bus.Msg{}
	}
	e := o.ready[0]
	if len(o.flight) > 0 && o.bytes+int64(e.size) > o.max {
		return nil, bus.Msg{}
	}
	if e.fence && o.undone[0] != e {
		return nil, bus.Msg{}
	}
	heap.Pop(&o.ready)
	e.inFlight, e.sent, e.generation, o.fenced = true, now, generation, e.fence || e.alone
	o.flight[e.number] = e
	if o.asked.IsZero() {
		o.asked = now
	}
	o.bytes += int64(e.size)
	m := e.msg
	if e.place != nil {
		o.unload(e)
	}
	return e, m
}

// land takes an entry out of flight.
func (o *outbox) land(e *entry) {
	if !e.inFlight {
		return
	}
	e.inFlight = false
	delete(o.flight, e.number)
	o.bytes -= int64(e.size)
	if e.fence || e.alone {
		o.fenced = false
	}
}

// unload forgets a body.
func (o *outbox) unload(e *entry) {
	if e.msg.Data != nil {
		o.held -= int64(e.size)
		e.msg.Data, e.msg.Header = nil, nil
		o.makeRoom()
	}
}

// failed makes an entry ready again after an attempt, and pauses sending. A
// loose one is given up. It takes the lock, and returns what to call after it.
func (o *outbox) failed(e *entry, reason string, err error, now time.Time) func() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.done || !e.inFlight {
		return nothing
	}
	o.land(e)
	o.count.retries.WithLabelValues(reason).Inc()
	o.count.retried.Add(1)
	if !now.Before(o.until) { // failures side by side are one
		o.pause = min(max(2*o.pause, pauseLeast), pauseMost)
		o.until = now.Add(o.pause)
	}
	if e.loose {
		return o.finish(e, err)
	}
	o.tried[e.number] = e
	heap.Push(&o.ready, e)
	wake(o.sendWake)
	return nothing
}

func nothing() {}

// acked ends an entry that the bus has. It takes the lock, and returns what to
// call after it.
func (o *outbox) acked(number uint64, now time.Time) (*entry, func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.find(number)
	if e != nil && !e.done {
		o.land(e)
	}
	o.acks++
	if o.asked = now; len(o.flight) == 0 {
		o.asked = time.Time{}
	}
	if e == nil || e.done {
		return nil, nothing
	}
	o.pause, o.until = 0, time.Time{}
	o.unload(e)
	after := o.finish(e, nil)
	wake(o.sendWake)
	return e, after
}

// find returns an entry by its number: in flight, or ready again because its
// answer took too long.
func (o *outbox) find(number uint64) *entry {
	if e := o.flight[number]; e != nil {
		return e
	}
	return o.tried[number]
}

// finish ends an entry. What it returns is called without the lock.
func (o *outbox) finish(e *entry, err error) func() {
	e.done, e.err = true, err
	delete(o.tried, e.number)
	for len(o.undone) > 0 && o.undone[0].done {
		o.undone[0] = nil
		o.undone = o.undone[1:]
	}
	if e.finished != nil {
		close(e.finished)
	}
	o.makeRoom()
	if e.onDone == nil {
		return nothing
	}
	return func() { e.onDone(err) }
}

// evidence is until when the bus is known to have taken what it was sent: until
// the last answer, or the first message after it, if something waits for one, else
// until now; and how many answers there were. A refusal is none: what can't be
// stored is where it would be without a bus. It takes the lock.
func (o *outbox) evidence(now time.Time) (until time.Time, answers uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asked.IsZero() {
		return now, o.acks
	}
	return o.asked, o.acks
}

// inFlight lists what has no answer. It takes the lock.
func (o *outbox) inFlight(into []*entry) []*entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.flight {
		into = append(into, e)
	}
	return into
}

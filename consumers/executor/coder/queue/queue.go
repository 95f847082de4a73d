package queue

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"penstock/infra/clock"
)

// Options of a Queue.
type Options struct {
	CoreOptions
	// Clock tells when hedges are over and how long things took. Defaults to the
	// machine's.
	Clock clock.Clock
	// Grace is for how long Run, once its context has ended, lets requests go on that
	// were accepted before. Defaults to 5 s.
	Grace time.Duration
	// Observe gets the record of each task that ran, from several goroutines. The next
	// task of the connection waits for it. Defaults to nobody.
	Observe func(Record)
}

// Queue is a core at work: Do hands requests in, Run keeps the connections. It is safe
// for concurrent use.
type Queue struct {
	o     Options
	start chan *Task // tasks that have a connection and no goroutine yet: at most L

	mu      sync.Mutex
	core    *Core
	stage   stage
	over    []func()      // Ended of requests, to be called without the lock
	drained chan struct{} // closed with the last of what was left when the queue began to drain
}

// stage is where the queue stands; it goes up only.
type stage uint8

const (
	idle     stage = iota // nothing is admitted yet
	open                  // Run is at work
	draining              // only segments of objects that were begun are accepted
	ending                // nothing is; what is left is told to end
	closed                // nothing is left
)

// liveRequest is what the queue keeps with a request.
type liveRequest struct {
	ctx      context.Context // of its tasks: the values of Do's, and no end
	wake     chan struct{}   // tells Do to look at the request
	arrived  time.Time
	admitted time.Time
}

// liveTask is what the queue keeps with a task.
type liveTask struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	started time.Time
	told    time.Time // when it was told to end
}

// New returns a queue that accepts requests and begins with them when Run is called.
// ErrOptions for negative numbers or no chooser.
func New(o Options) (*Queue, error) {
	if o.Chooser == nil || o.Connections < 0 || o.MaxWaiting < 0 || o.Background < 0 || o.Grace < 0 {
		return nil, fmt.Errorf("a chooser is needed, and no negative number: %w", ErrOptions)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Observe == nil {
		o.Observe = func(Record) {}
	}
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	q := &Queue{o: o, core: NewCore(o.CoreOptions), drained: make(chan struct{})}
	q.start = make(chan *Task, q.core.o.Connections)
	return q, nil
}

// State is how the queue stands.
func (q *Queue) State() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.State()
}

// Do puts a request in line and returns when its end is decided: nil once enough of its
// tasks have succeeded; ErrFull and ErrClosed for one that was not accepted; an error
// that wraps ErrTooFew and those of its tasks; that of its plan; or the cause of ctx's
// end, which drops the request wherever it stands. Tasks may still be running when it
// returns: Request.Ended tells when none is.
func (q *Queue) Do(ctx context.Context, r *Request) error {
	if err := q.accept(ctx, r); err != nil {
		return err
	}
	gone := ctx.Done()
	var hedge clock.Timer
	var due <-chan time.Time
	for {
		select {
		case <-r.live.wake:
			done, after, err := q.look(r)
			if done {
				if hedge != nil {
					hedge.Stop()
				}
				return err
			}
			if hedge == nil && after > 0 {
				hedge = q.o.Clock.NewTimer(after)
				due = hedge.C()
			}
		case <-due:
			q.mu.Lock()
			q.core.Extend(r)
			q.pump(false)
			q.unlock()
		case <-gone:
			gone = nil // its end is decided now, and wakes
			q.mu.Lock()
			if !r.Finished() { // Else it has its answer, and its rest goes on.
				q.core.Abandon(r, context.Cause(ctx))
				q.pump(false)
			}
			q.unlock()
		}
	}
}

// accept puts the request in line.
func (q *Queue) accept(ctx context.Context, r *Request) error {
	r.live = liveRequest{ctx: context.WithoutCancel(ctx), wake: make(chan struct{}, 1), arrived: q.o.Clock.Now()}
	q.mu.Lock()
	defer q.unlock()
	var err error
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case q.stage >= ending || q.stage == draining && (r.Background || !r.Keep):
		err = ErrClosed
	case !q.core.Arrive(r):
		err = fmt.Errorf("%s: %w", r.Op, ErrFull)
	default:
		q.pump(false)
		return nil
	}
	q.ended(r)
	return err
}

// look says whether the request's end is decided, and else how long its hedge is.
func (q *Queue) look(r *Request) (done bool, after time.Duration, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !r.Finished() && r.hedging {
		after = r.Code().Hedge
	}
	return r.Finished(), after, r.Err()
}

// pump starts what can be started. With own, the first task is returned, for the
// connection that has become idle, instead of being handed to another. The lock is held.
func (q *Queue) pump(own bool) (mine *Task) {
	q.react()
	for q.stage >= open && q.stage < closed {
		t, ok := q.core.Next()
		if ok {
			ctx, cancel := context.WithCancelCause(t.of.live.ctx)
			t.live = liveTask{ctx: ctx, cancel: cancel}
		}
		q.react()
		switch {
		case !ok:
			return mine
		case own && mine == nil:
			mine = t
		default:
			q.start <- t // which has room for all connections
		}
	}
	return mine
}

// react does what the core's events ask for. The lock is held.
func (q *Queue) react() {
	for e, ok := q.core.Event(); ok; e, ok = q.core.Event() {
		switch r := e.Request; e.Kind {
		case Admitted:
			r.live.admitted = q.o.Clock.Now()
		case Hedging, Finished:
			r.wake()
		case Cancelled:
			e.Task.live.told = q.o.Clock.Now()
			e.Task.live.cancel(ErrCancelled)
		case Ended:
			q.ended(r)
		}
	}
}

// ended has the request's Ended called, once the lock is given back.
func (q *Queue) ended(r *Request) {
	if r.Ended != nil {
		q.over = append(q.over, r.Ended)
	}
}

// wake tells Do to look at the request.
func (r *Request) wake() {
	select {
	case r.live.wake <- struct{}{}:
	default: // it has yet to look for the last time it was told
	}
}

// unlock gives the lock back and calls what is to be called without it.
func (q *Queue) unlock() {
	if q.stage == draining || q.stage == ending {
		s := q.core.State()
		if s.Backlog+s.BackgroundBacklog+s.Alive == 0 {
			q.stage = closed
			close(q.drained)
		}
	}
	calls := q.over
	q.over = nil
	q.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

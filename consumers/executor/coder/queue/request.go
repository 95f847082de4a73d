package queue

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Op is what a request does to an object.
type Op uint8

// The operations. Ops counts them, for tables by operation.
const (
	Read Op = iota
	Write
	Ops = 2
)

// String is the op of rows: read or write.
func (o Op) String() string {
	if o == Write {
		return "write"
	}
	return "read"
}

// Code is a choice of n and k.
type Code struct {
	N int // chunks asked for, at least K
	K int // chunks needed, at least 1
	// Hedge is after how long the chunks beyond those needed are asked for; 0: at once.
	Hedge time.Duration
}

// Chooser picks the codes of requests. The core calls it from one goroutine at a time.
type Chooser interface {
	// Arrived tells it of an arrival, and how many requests waited then, the new one
	// not counted.
	Arrived(backlog int)
	// Choose is asked when a request of an operation is admitted while idle
	// connections, at least one, do nothing.
	Choose(op Op, idle int) Code
}

// Follower is a Chooser that follows the backlog over time. The core calls it as it
// calls the chooser.
type Follower interface {
	// Follows tells it that from now on so many clients' requests wait: before each
	// Choose, whose request is none of them any more, and when nothing more can be
	// started and their number is another. A request that need not wait is told of once.
	Follows(waiting int)
}

// Fixed is the chooser of one code for all.
type Fixed Code

// Arrived implements Chooser.
func (Fixed) Arrived(int) {}

// Choose implements Chooser.
func (f Fixed) Choose(Op, int) Code { return Code(f) }

// Rest says what becomes of a request's other tasks once enough have succeeded.
type Rest uint8

// The rests.
const (
	// Cancel drops those that are queued and ends those that run: reads, and writes
	// whose other chunks come about in another way.
	Cancel Rest = iota
	// Finish lets all of them run to their end. There is no hedge then: each is to be
	// done in any case.
	Finish
)

// Plan is a request taken apart into tasks.
type Plan struct {
	// Tasks are begun in this order. The slice is the core's from then on.
	Tasks []Task
	// Need is how many must succeed.
	Need int
	// Err ends the request with this error, before any task.
	Err error
}

// Request is one read or write of a segment. The exported fields are the caller's, and
// must not change once it has arrived, but that Plan may set Rest. It is used once.
type Request struct {
	Op Op
	// Background puts it behind all others: its tasks run on connections that would be
	// idle, and only so many at a time. Its plan is told Code{N: 1, K: 1}.
	Background bool
	// Keep lets it wait where others are refused because too many wait: the next
	// segment of an object of which the first was admitted.
	Keep bool
	// Rest may also be set by Plan, which knows the code.
	Rest Rest
	// Plan is called once, when the request is admitted, with the code chosen. It is
	// called under the queue's lock: it must be quick and not call the queue.
	Plan func(Code) Plan
	// More is asked for another task when one has failed, until it has none. Nil: there
	// are none. It is called under the lock, too.
	More func() (Task, bool)
	// Ended, if there is one, is called once when none of the request's tasks is queued
	// or running: its buffers are free. That may be before Do returns, or long after it.
	// It is called for a request that was refused, too. It must be quick: a connection
	// waits for it.
	Ended func()
	// Data is the caller's, to find what belongs to it.
	Data any

	phase phase
	code  Code
	need  int
	won   int // tasks that succeeded
	open  int // tasks held back, queued or running that may still succeed
	out   int // tasks queued or running, those told to end included
	held  int // tasks held back for a hedge
	// queued of its tasks wait for a connection; hedging: none did, while others were
	// held back.
	queued  int
	hedging bool
	first   *Task
	last    *Task
	errs    []error
	err     error

	place node[Request] // in the line of those that wait
	alive node[Request] // in the list of those admitted that have not ended
	live  liveRequest
}

// phase is where a request stands: it goes up only.
type phase uint8

const (
	fresh phase = iota
	waiting
	admitted
	finished // it is decided; tasks of it may still be queued or running
	ended    // none is
)

// Code is what the chooser chose, once it is admitted.
func (r *Request) Code() Code { return r.code }

// Finished says whether its end is decided. Err is how: nil if enough tasks succeeded.
func (r *Request) Finished() bool { return r.phase >= finished }

// Err is the error with which it finished.
func (r *Request) Err() error { return r.err }

// Held is how many tasks are held back until Core.Extend, see Hedging.
func (r *Request) Held() int { return r.held }

// class is the index of its lines.
func (r *Request) class() int {
	if r.Background {
		return behind
	}
	return front
}

// tooFew is the error of a request whose tasks can't be enough any more.
func (r *Request) tooFew() error {
	err := fmt.Errorf("%d chunks of %d needed: %w", r.won, r.need, ErrTooFew)
	if len(r.errs) > 0 {
		return fmt.Errorf("%w: %w", err, errors.Join(r.errs...))
	}
	return err
}

// Task is one chunk of a request, to one store.
type Task struct {
	// Run does it. Its context ends when the chunk is needed no more; the connection is
	// in use until it returns. The core itself never calls it.
	Run func(ctx context.Context) error
	// Store, Bytes, N and K are for the record. N and K default to the plan's: its tasks,
	// and how many must succeed.
	Store string
	Bytes int64
	N, K  int
	// Data is the caller's, to find what belongs to it.
	Data any

	of      *Request
	sibling *Task // the next task of the request
	state   taskState
	place   node[Task]
	live    liveTask
}

// taskState is where a task stands.
type taskState uint8

const (
	unknown taskState = iota
	held              // back, for a hedge
	queued
	running
	cancelled // runs, and was told to end
	over
)

// Request is whose task it is.
func (t *Task) Request() *Request { return t.of }

// Cancelled says whether it runs and was told to end.
func (t *Task) Cancelled() bool { return t.state == cancelled }

package queue

import (
	"time"

	"penstock/schemas/event"
)

// Outcome is how a task ended, as rows have it.
type Outcome string

// The outcomes.
const (
	OutcomeDone      Outcome = event.TaskDone
	OutcomeCancelled Outcome = event.TaskCancelled
	OutcomeFailed    Outcome = event.TaskFailed
)

// Record is a task that ran.
type Record struct {
	Op         Op
	Background bool
	Store      string
	Bytes      int64
	N, K       int
	// Wait is how long the request waited to be admitted.
	Wait time.Duration
	// Started is when the task was.
	Started time.Time
	// Took is its delay: until its function returned, or until it was told to end if
	// the outcome is cancelled, for it would have lasted at least as long.
	Took time.Duration
	// Held is for how long it had its connection: until its function returned.
	Held    time.Duration
	Outcome Outcome
	// Err is what its function returned.
	Err error
}

// record is that of a task whose function has returned err at now. The lock is held.
func (t *Task) record(err error, now time.Time) Record {
	r := t.of
	rec := Record{
		Op: r.Op, Background: r.Background, Store: t.Store, Bytes: t.Bytes, N: t.N, K: t.K,
		Wait: r.live.admitted.Sub(r.live.arrived), Started: t.live.started,
		Held: now.Sub(t.live.started), Outcome: OutcomeDone, Err: err,
	}
	rec.Took = rec.Held
	switch {
	case err == nil:
	case t.state == cancelled:
		rec.Outcome = OutcomeCancelled
		rec.Took = max(0, t.live.told.Sub(t.live.started))
	default:
		rec.Outcome = OutcomeFailed
	}
	return rec
}

package queue

import (
	"context"
	"fmt"
	"sync"
)

// Run keeps the connections until ctx ends. Then requests that were accepted go on for
// Grace at most, but those of class background that wait, which end at once with
// ErrClosed; after it all end with ErrClosed. It returns nil when the last function of a
// task has returned, and it is called once: ErrOptions.
func (q *Queue) Run(ctx context.Context) error {
	q.mu.Lock()
	if q.stage != idle {
		q.mu.Unlock()
		return fmt.Errorf("a queue runs once: %w", ErrOptions)
	}
	q.stage = open
	q.pump(false)
	q.unlock()
	var connections sync.WaitGroup
	for range q.core.o.Connections {
		connections.Go(q.connection)
	}
	<-ctx.Done()
	q.drain()
	close(q.start)
	connections.Wait()
	return nil
}

// drain returns when nothing waits or runs.
func (q *Queue) drain() {
	grace := q.o.Clock.NewTimer(q.o.Grace)
	defer grace.Stop()
	q.mu.Lock()
	q.stage = draining
	q.core.AbandonAll(true, true, ErrClosed)
	q.pump(false)
	q.unlock()
	select {
	case <-q.drained:
		return
	case <-grace.C():
	}
	q.mu.Lock()
	if q.stage == draining {
		q.stage = ending
		q.core.AbandonAll(true, false, ErrClosed)
		q.core.AbandonAll(false, false, ErrClosed)
		q.pump(false)
	}
	q.unlock()
	<-q.drained
}

// connection runs tasks, one after the other.
func (q *Queue) connection() {
	for t := range q.start {
		for t != nil {
			t = q.run(t)
		}
	}
}

// run runs a task and returns the next one for this connection, if there is one.
func (q *Queue) run(t *Task) (next *Task) {
	t.live.started = q.o.Clock.Now()
	ran := t.live.ctx.Err() == nil // else it was told to end before it began
	err := context.Cause(t.live.ctx)
	if ran {
		err = t.Run(t.live.ctx)
	}
	now := q.o.Clock.Now()
	q.mu.Lock()
	rec := t.record(err, now)
	q.core.Done(t, err)
	next = q.pump(true)
	q.unlock()
	t.live.cancel(nil)
	if ran {
		q.o.Observe(rec)
	}
	return next
}

package coder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/object"
	"penstock/consumers/executor/coder/queue"
)

// several writes an object of more than one segment: its blobs are put side by side,
// each segment is a request, and the next one is read and coded meanwhile.
func (w *writing) several(ctx context.Context, shape object.Shape, in *body) error {
	w.shape = shape
	n := shape.Blobs()
	w.begun, w.landed = make([]bool, n), make([]bool, n)
	targets := make([]target, n)
	for i := range targets {
		targets[i] = target{shape, i, w.res.places[i]}
	}
	w.pour = w.c.newPour(targets)
	if w.lease.more() {
		w.slab = w.lease.slab()
	}
	w.c.occupy(w.res.id)
	if err := w.segments(ctx, in); err != nil {
		w.pour.end(err)
		close(w.ended)
		return err
	}
	copy(w.landed, w.pour.have())
	var info object.Info
	var rest catalog.Rest
	info.Places, rest.Lacking = w.lie()
	return w.commit(ctx, info, rest)
}

// segments returns when as many blobs have landed as durability asks for.
func (w *writing) segments(ctx context.Context, in *body) error {
	before := make(chan error, 1)
	before <- nil
	budget := w.c.o.Patience
	for i := 0; ; i++ {
		if i > 0 {
			if _, err := w.enc.Next(in); err != nil {
				return errors.Join(bodyError(err), <-before)
			}
		}
		if err := <-before; err != nil {
			return err
		}
		if w.slab != nil {
			w.enc.Swap(w.slab)
		}
		if w.enc.Ended() {
			if err := w.verify(); err != nil {
				return err
			}
			return w.segment(ctx, i, true, &budget)
		}
		if w.slab == nil {
			before <- w.segment(ctx, i, false, &budget) // the next one needs its memory
			continue
		}
		w.c.start(func() { before <- w.segment(ctx, i, false, &budget) })
	}
}

// segment feeds a segment to the blobs. It returns when all that live have taken it, or
// of the last segment when enough have landed: then w.ended is closed once the others
// have, or were given up.
func (w *writing) segment(ctx context.Context, i int, last bool, budget *time.Duration) error {
	ended := make(chan struct{})
	planned := false
	n, k := w.shape.Blobs(), w.shape.Cut
	need := w.c.o.Durability.need(n, k)
	live := w.pour.live()
	var more func() (queue.Task, bool)
	if i == 0 {
		live = w.c.living(w.res.places[:n], need)
		w.pour.only(live)
		more = w.others(live, last)
	}
	if len(live) < need {
		return fmt.Errorf("%w: %d blobs of %d still live", ErrTooFew, len(live), n)
	}
	began := w.c.o.Clock.Now()
	err := w.c.queue.Do(ctx, &queue.Request{
		Op: queue.Write, Keep: i > 0, Rest: queue.Finish, More: more, Ended: func() { close(ended) },
		Plan: func(queue.Code) queue.Plan {
			planned, w.planned = true, true
			tasks := make([]queue.Task, len(live))
			for j, blob := range live {
				w.begun[blob] = true
				tasks[j] = w.pour.task(blob, w.bytes(blob), last, n, k)
			}
			return queue.Plan{Tasks: tasks, Need: need}
		},
	})
	if err != nil {
		w.pour.cancel(err)
		if planned {
			<-ended
		}
		return queueError(err)
	}
	took := w.c.o.Clock.Now().Sub(began)
	if last {
		w.c.start(func() {
			w.await(ended, took, budget)
			w.pour.end(errLagging)
			close(w.ended)
		})
		return nil
	}
	w.await(ended, took, budget)
	return nil
}

// others is the More of the first segment: when a store fails that was thought to live,
// those are asked of which nothing was expected, as for an object of one segment. Later it
// is too late: what a blob begins with is not in memory any more.
func (w *writing) others(live []int, last bool) func() (queue.Task, bool) {
	n, next := w.shape.Blobs(), 0
	return func() (queue.Task, bool) {
		for ; next < n; next++ {
			if slices.Contains(live, next) {
				continue
			}
			blob := next
			next++
			w.mu.Lock()
			w.begun[blob] = true
			w.mu.Unlock()
			w.pour.revive(blob)
			return w.pour.task(blob, w.bytes(blob), last, n, w.shape.Cut), true
		}
		return queue.Task{}, false
	}
}

// bytes are those of a blob in the segment that is being written.
func (w *writing) bytes(blob int) []byte {
	if w.slab == nil {
		return w.enc.Blob(w.shape, blob)
	}
	return w.slab.Blob(w.shape, blob)
}

// await lets the blobs that lag behind take a segment, for three times as long as the
// others took and at most as long as the object's budget of patience lasts. Then it
// gives them up.
func (w *writing) await(ended <-chan struct{}, took time.Duration, budget *time.Duration) {
	select {
	case <-ended:
		return
	default:
	}
	began := w.c.o.Clock.Now()
	patience := w.c.o.Clock.NewTimer(min(max(3*took, leastPatience), *budget))
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C():
		w.pour.leave(errLagging)
		<-ended
	case <-w.c.ctx.Done(): // ends the blobs, too
		<-ended
	}
	*budget = max(0, *budget-w.c.o.Clock.Now().Sub(began))
}

// leastPatience is what a blob may lag behind at least.
const leastPatience = 200 * time.Millisecond

package coder

import (
	"context"
	"errors"
	"fmt"

	"penstock/consumers/executor/coder/object"
	"penstock/consumers/executor/coder/queue"
)

// again is what is left to try when the request failed: each blob that can give
// something, one after the other, those that failed or lack among them, and at last the
// damaged ones, since it may have been the way and not the blob.
func (f *fetch) again(ctx context.Context, err error, background bool) error {
	if err != nil && !errors.Is(err, queue.ErrTooFew) {
		return queueError(err)
	}
	f.last = -1
	for _, worst := range []stripState{stripFailed, stripBad} {
		for _, blob := range f.blobs() {
			run, ok := f.left(blob, blob.First, worst)
			for ; ok && !f.ready(); run, ok = f.left(blob, run.First+run.Count, worst) {
				fail := f.once(ctx, run, background)
				if fail != nil && !errors.Is(fail, queue.ErrTooFew) {
					return queueError(fail)
				}
				err = errors.Join(err, fail)
			}
		}
	}
	if f.ready() {
		return nil
	}
	return fmt.Errorf("%w: segment %d lacks %d strips: %w", ErrTooFew, f.segment, f.d.Lacking(), err)
}

// later is what is left to try when the version's blobs are still on their way to the
// stores, or were when the read began: they are waited for. It gives the error of before
// if none are.
func (f *fetch) later(ctx context.Context, err error, background bool) error {
	if !f.c.occupied(f.v.ID) && len(f.v.rest.Lacking) == 0 {
		return err
	}
	f.c.count(EventReplaced, "awaited", 1)
	for f.c.occupied(f.v.ID) {
		if err := f.c.o.Clock.Sleep(ctx, claimEvery); err != nil {
			return err
		}
	}
	f.damaged = nil // blobs that weren't there may be now
	return f.again(ctx, nil, background)
}

// once gets one run by a request of its own.
func (f *fetch) once(ctx context.Context, run object.Chunk, background bool) error {
	f.c.count(EventReplaced, "again", 1)
	err := f.c.queue.Do(ctx, &queue.Request{
		Op: queue.Read, Keep: true, Background: background,
		Plan: func(queue.Code) queue.Plan {
			f.mu.Lock()
			defer f.mu.Unlock()
			return queue.Plan{Tasks: []queue.Task{f.task(1, 1, run)}, Need: 1}
		},
	})
	f.decide()
	return err
}

// left is the next run of strips of a blob, from strip from on, that aren't whole and
// not worse than a state.
func (f *fetch) left(blob object.Chunk, from int, worst stripState) (object.Chunk, bool) {
	end := blob.First + blob.Count
	open := func(i int) bool {
		return i < end && f.strips[i] != stripWhole && (f.strips[i] != stripBad || worst == stripBad)
	}
	for from < end && !open(from) {
		from++
	}
	to := from
	for open(to) {
		to++
	}
	run, err := f.v.Shape.Run(f.segment, from, to-from)
	return run, err == nil
}

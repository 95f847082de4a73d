package coder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"penstock/consumers/executor/coder/object"
	"penstock/consumers/executor/coder/queue"
)

// target is a blob that is to be written.
type target struct {
	shape object.Shape // of the version that it is a blob of
	blob  int
	place object.Place
}

// pour is blobs that are put side by side while their segments come one by one. A task
// feeds one segment to one blob; between them no connection is held. A blob that fails
// is left out from then on.
type pour struct {
	c       *Coder
	ctx     context.Context // of the blobs
	cancel  context.CancelCauseFunc
	targets []target

	mu      sync.Mutex
	streams []*stream // nil until its first segment is fed
	dead    []bool
	feeding []bool
	landed  []bool
}

func (c *Coder) newPour(targets []target) *pour {
	p := &pour{c: c, targets: targets}
	p.ctx, p.cancel = context.WithCancelCause(c.ctx)
	n := len(targets)
	p.streams, p.dead, p.feeding, p.landed = make([]*stream, n), make([]bool, n), make([]bool, n), make([]bool, n)
	return p
}

// live are the blobs that have not failed.
func (p *pour) live() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var live []int
	for i, dead := range p.dead {
		if !dead {
			live = append(live, i)
		}
	}
	return live
}

// only gives up all blobs but these, before the first segment.
func (p *pour) only(blobs []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.dead {
		p.dead[i] = !slices.Contains(blobs, i)
	}
}

// revive takes a blob in that was given up before its first segment.
func (p *pour) revive(blob int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead[blob] = false
}

// task makes the task that feeds bytes to blob i, and ends it with the last of them.
func (p *pour) task(i int, bytes []byte, last bool, n, k int) queue.Task {
	t := p.targets[i]
	return queue.Task{Store: t.place.Store, Bytes: int64(len(bytes)), N: n, K: k, Run: func(ctx context.Context) error {
		ctx, cancel := p.c.limited(ctx)
		defer cancel()
		err := p.feed(ctx, i, bytes, last)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.feeding[i] = false
		p.dead[i] = err != nil
		p.landed[i] = err == nil && last
		return err
	}}
}

func (p *pour) feed(ctx context.Context, i int, bytes []byte, last bool) error {
	t := p.targets[i]
	s := p.c.named[t.place.Store]
	if s == nil {
		return errNoStore
	}
	p.mu.Lock()
	if p.streams[i] == nil {
		put := func(ctx context.Context, key string, r io.Reader, size int64) error {
			return p.c.putInto(ctx, s, key, r, size)
		}
		p.streams[i] = newStream(p.ctx, p.c.start, put, t.blob, t.place, t.shape.BlobBytes())
	}
	w := p.streams[i]
	p.feeding[i] = true
	p.mu.Unlock()
	began := p.c.o.Clock.Now()
	err := w.feed(ctx, bytes)
	if err == nil && last {
		err = w.close(ctx)
	}
	p.c.note(ctx, s, began, int64(len(bytes)), err)
	return err
}

// feedAll feeds the next segment to all blobs that live, in the background; bytes gives
// what is blob i's. One that fails is left out from then on. It returns when no task uses
// the bytes any more, ErrTooFew if no blob lives.
func (p *pour) feedAll(ctx context.Context, last bool, bytes func(i int) ([]byte, error)) error {
	live := p.live()
	if len(live) == 0 {
		return fmt.Errorf("%w: no blob could be written", ErrTooFew)
	}
	tasks := make([]queue.Task, len(live))
	for j, i := range live {
		b, err := bytes(i)
		if err != nil {
			return err
		}
		tasks[j] = p.task(i, b, last, len(p.targets), len(p.targets))
	}
	ended := make(chan struct{})
	planned := false
	err := p.c.queue.Do(ctx, &queue.Request{
		Op: queue.Write, Background: true, Rest: queue.Finish, Ended: func() { close(ended) },
		Plan: func(queue.Code) queue.Plan {
			planned = true
			return queue.Plan{Tasks: tasks, Need: len(tasks)}
		},
	})
	few := errors.Is(err, queue.ErrTooFew)
	if err != nil && !few {
		p.cancel(err)
	}
	if planned {
		<-ended
	}
	if few {
		return nil // the others go on
	}
	return err
}

// leave gives up the blobs that are being fed: they hold the others back.
func (p *pour) leave(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, w := range p.streams {
		if p.feeding[i] && w != nil {
			w.cancel(why)
			p.c.count(EventDropped, "lagging", 1)
		}
	}
}

// end gives up all blobs that haven't landed, and returns when their stores have let go
// of them. No task may be feeding.
func (p *pour) end(why error) {
	p.cancel(why)
	for _, w := range p.streams {
		if w != nil {
			<-w.ended
		}
	}
}

// have tells which blobs have landed.
func (p *pour) have() []bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]bool(nil), p.landed...)
}

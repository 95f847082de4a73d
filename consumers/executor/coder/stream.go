package coder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"penstock/consumers/executor/coder/object"
)

// errLagging ends a blob that holds the others back.
var errLagging = errors.New("the blob lags behind the others")

// stream is a blob that is put while its segments come one by one. Its store reads from
// it; each segment is handed over by feed, which returns when the store has taken it.
type stream struct {
	blob   int
	place  object.Place
	pieces chan *piece
	cancel context.CancelCauseFunc
	ctx    context.Context
	cur    *piece // of Read
	ended  chan struct{}
	err    error // once ended
	finish sync.Once
}

type piece struct {
	window
	taken chan struct{}
}

// putting is Put of a store.
type putting func(ctx context.Context, key string, r io.Reader, size int64) error

// newStream begins to put a blob of size bytes. It goes on until finished, or ctx ends,
// or it is dropped; start runs its goroutine.
func newStream(ctx context.Context, start func(func()), put putting, blob int, p object.Place, size int64) *stream {
	w := &stream{blob: blob, place: p, pieces: make(chan *piece), ended: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	start(func() {
		defer close(w.ended)
		if w.err = put(w.ctx, p.Key, w, size); w.err != nil && w.ctx.Err() != nil {
			w.err = fmt.Errorf("%w: %w", context.Cause(w.ctx), w.err)
		}
		w.cancel(nil)
	})
	return w
}

// Read implements io.Reader for the store.
func (w *stream) Read(b []byte) (int, error) {
	for {
		if w.cur == nil {
			select {
			case p, ok := <-w.pieces:
				if !ok {
					return 0, io.EOF
				}
				w.cur = p
			case <-w.ctx.Done():
				return 0, context.Cause(w.ctx)
			}
		}
		n, err := w.cur.Read(b)
		if err == nil {
			if w.cur.done() {
				close(w.cur.taken)
				w.cur = nil
			}
			return n, nil
		}
		if !errors.Is(err, io.EOF) {
			return 0, err
		}
		w.cur = nil // an empty piece: there are none
	}
}

// feed hands over the next bytes of the blob. It returns when the store has taken them,
// or the blob has failed, or ctx has ended: the blob is given up then, and its bytes
// aren't looked at any more.
func (w *stream) feed(ctx context.Context, b []byte) error {
	p := &piece{window: window{b: b}, taken: make(chan struct{})}
	defer p.shut()
	select {
	case w.pieces <- p:
	case <-w.ended:
		return w.failure()
	case <-ctx.Done():
		w.cancel(context.Cause(ctx))
		return context.Cause(ctx)
	}
	select {
	case <-p.taken:
		return nil
	case <-w.ended:
		return w.failure()
	case <-ctx.Done():
		w.cancel(context.Cause(ctx))
		return context.Cause(ctx)
	}
}

// failure is the error of a blob that ended before its time.
func (w *stream) failure() error {
	if w.err == nil {
		return fmt.Errorf("put %s: the store says that it is done before it is", w.place.Key)
	}
	return w.err
}

// close says that all bytes were fed, and returns when the blob is in its store.
func (w *stream) close(ctx context.Context) error {
	w.finish.Do(func() { close(w.pieces) })
	select {
	case <-w.ended:
		return w.err
	case <-ctx.Done():
		w.cancel(context.Cause(ctx))
		<-w.ended // stores return soon
		return w.err
	}
}

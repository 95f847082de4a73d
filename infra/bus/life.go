package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// life follows a connection: who waits for an answer on it need not wait any
// longer once it is lost, for the answer would have come there. The zero value
// is ready.
type life struct {
	mu      sync.Mutex
	number  uint64
	waiting map[uint64]context.CancelCauseFunc
}

// lost ends the waiting of all who wait now.
func (l *life) lost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, cancel := range l.waiting {
		cancel(ErrLost)
	}
}

// within returns a context that also ends, with the cause ErrLost, when the
// connection is lost. release must be called.
func (l *life) within(ctx context.Context) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		l.waiting = map[uint64]context.CancelCauseFunc{}
	}
	l.number++
	n := l.number
	l.waiting[n] = cancel
	return ctx, func() {
		cancel(nil)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, n)
	}
}

// cause names ErrLost where it ended the wait that err tells of.
func cause(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrLost) && !errors.Is(err, ErrLost) {
		return fmt.Errorf("%w (%w)", ErrLost, err)
	}
	return err
}

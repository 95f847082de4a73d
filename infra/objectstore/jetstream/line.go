package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
)

// ErrLost is returned when the connection was lost while an answer was waited
// for, which would have come there. What was asked for may have been done; the
// store looks once the connection is back, or the caller repeats it.
var ErrLost = errors.New("the connection was lost")

// line ends the waiting of all who wait when the connection is lost.
type line struct {
	conn   *nats.Conn
	status chan nats.Status
	tasks  sync.WaitGroup

	mu  sync.Mutex
	ctx context.Context //nolint:containedctx // It stands for the connection, and ends with it.
	cut context.CancelCauseFunc
}

func newLine(conn *nats.Conn) *line {
	l := &line{conn: conn, status: conn.StatusChanged(nats.RECONNECTING, nats.CLOSED)}
	l.ctx, l.cut = context.WithCancelCause(context.Background())
	l.tasks.Go(func() {
		for range l.status {
			l.lost()
		}
	})
	return l
}

func (l *line) lost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut(ErrLost)
	l.ctx, l.cut = context.WithCancelCause(context.Background())
}

// close ends what waits. It may be called twice.
func (l *line) close() {
	l.mu.Lock()
	conn := l.conn
	l.conn = nil
	l.mu.Unlock()
	if conn == nil {
		return
	}
	conn.RemoveStatusListener(l.status)
	l.tasks.Wait()
	l.lost()
}

// within returns a context that also ends, with the cause ErrLost, when the
// connection is lost. release must be called.
func (l *line) within(ctx context.Context) (_ context.Context, release func()) {
	l.mu.Lock()
	connection := l.ctx
	l.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(connection, func() { cancel(ErrLost) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// cause names ErrLost where it ended the wait that err tells of.
func cause(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), ErrLost) {
		// Not %w: the caller's own context has not ended.
		return fmt.Errorf("%w (%v)", ErrLost, err) //nolint:errorlint // see above
	}
	return err
}

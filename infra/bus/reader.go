package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	// pullBytes is what one request asks for; pullWindow what may be asked for
	// and not yet handed on, which bounds a reader's memory.
	pullBytes  = 2 << 20
	pullWindow = 2 * pullBytes
	// readAhead is how many messages wait in the channel.
	readAhead = 16
	// retryLeast and retryMost pace the making of a consumer that fails.
	retryLeast = 50 * time.Millisecond
	retryMost  = time.Second
	// gone is how many times in a row a stream may be missing before a reader
	// believes it: a server that starts does not know all of its streams yet.
	gone = 30
)

// Reader delivers the messages of a stream from a sequence on: every one, once,
// in order. It keeps no state on the bus that matters: its consumer needs no
// acknowledgements and is made anew, from the last delivered sequence + 1,
// after a lost connection, a restart of the server, a gap, or when messages
// wait and none comes (PROBLEMS P22).
type Reader struct {
	c        *Client
	stream   string // with prefix
	bare     string
	subjects []string // with prefix

	out    chan Msg
	cancel context.CancelFunc
	done   chan struct{}
	err    error // set before out is closed

	next    uint64        // first sequence not yet delivered; the session's alone
	passed  atomic.Uint64 // everything of ours up to here has been delivered
	held    atomic.Pointer[nats.Subscription]
	counter readerCounter

	interrupted atomic.Bool
	shown       struct{ messages, bytes prometheus.Counter }
}

// ReaderStats counts what a reader has been through.
type ReaderStats struct {
	Messages  uint64
	Bytes     uint64
	Recreated map[string]uint64 // consumers made anew, by reason
	Held      int               // bytes received and not yet handed on
}

type readerCounter struct {
	messages, bytes atomic.Uint64
	mu              sync.Mutex
	recreated       map[string]uint64
}

// Read reads a stream's messages on the given subjects (all if there are none)
// from a sequence on; 0 stands for the first that is there. The result is a
// *ErrTrimmed or *ErrBeyond where that sequence cannot be read; 1 on a stream
// whose beginning is gone is refused too. The reader ends with the context,
// with the client, or by Close.
//
// On a patient bus it waits where it would fail for want of the bus or of the
// stream; C is then closed with the error if the sequence cannot be read.
func (c *Client) Read(ctx context.Context, stream string, subjects []string, from uint64) (*Reader, error) {
	return c.read(ctx, c.bus.name(stream), stream, subjects, from)
}

func (c *Client) read(ctx context.Context, stream, bare string, subjects []string, from uint64) (*Reader, error) {
	r := &Reader{
		c: c, stream: stream, bare: bare, next: from,
		out: make(chan Msg, readAhead), done: make(chan struct{}),
	}
	for _, s := range subjects {
		r.subjects = append(r.subjects, c.bus.subject(s))
	}
	r.shown.messages = c.bus.metrics.messages.WithLabelValues(bare)
	r.shown.bytes = c.bus.metrics.bytes.WithLabelValues(bare)
	s, err := r.first(ctx)
	if err != nil {
		return nil, err
	}
	ctx, r.cancel = context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		r.cancel()
		if s != nil {
			s.close()
		}
		return nil, ErrClosed
	}
	if c.readers == nil {
		c.readers = map[*Reader]struct{}{}
	}
	c.readers[r] = struct{}{}
	go r.run(ctx, s)
	return r, nil
}

// C delivers the messages. It is closed when the reader ends.
func (r *Reader) C() <-chan Msg { return r.out }

// Interrupted reports whether the reader has no consumer at the moment, because
// the last one is of no use any more and the next could not be made yet.
func (r *Reader) Interrupted() bool { return r.interrupted.Load() }

// Err says why C was closed: nil after Close or the end of the context. It
// must not be called before.
func (r *Reader) Err() error { return r.err }

// Close ends the reader and waits until it has. It is safe to call twice, and
// need not be called after the context has ended.
func (r *Reader) Close() {
	r.cancel()
	<-r.done
}

// Stats is safe to call at any time.
func (r *Reader) Stats() ReaderStats {
	s := ReaderStats{Messages: r.counter.messages.Load(), Bytes: r.counter.bytes.Load(), Recreated: map[string]uint64{}}
	if sub := r.held.Load(); sub != nil {
		_, s.Held, _ = sub.Pending() // fails only when the reader has ended
	}
	r.counter.mu.Lock()
	defer r.counter.mu.Unlock()
	for k, v := range r.counter.recreated {
		s.Recreated[k] = v
	}
	return s
}

// run goes through consumers until the context ends or there is no going on.
func (r *Reader) run(ctx context.Context, s *session) {
	defer close(r.done)
	defer close(r.out)
	defer func() {
		r.c.mu.Lock()
		delete(r.c.readers, r)
		r.c.mu.Unlock()
		r.cancel()
	}()
	var wait time.Duration // grows while consumers give nothing
	for {
		if s == nil {
			var err error
			if s, err = r.reopen(ctx); err != nil {
				if ctx.Err() == nil {
					r.err = err
				}
				return
			}
			r.interrupted.Store(false)
		}
		from := r.next
		why := s.run(ctx)
		s.close()
		s = nil
		if ctx.Err() != nil {
			return
		}
		r.interrupted.Store(true)
		r.count(why)
		r.c.bus.opts.Logger.Warn().Str("stream", r.stream).Str("reason", why).
			Uint64("from", r.next).Msg("reader makes its consumer anew")
		if r.next > from {
			wait = 0
		} else if r.c.bus.opts.Clock.Sleep(ctx, wait) != nil {
			return
		} else {
			wait = min(2*wait+retryLeast, retryMost)
		}
	}
}

// first makes the first consumer. On a patient bus that is not usable it leaves
// that to the reader's goroutine.
func (r *Reader) first(ctx context.Context) (*session, error) {
	var s *session
	err := r.c.Usable()
	if err == nil {
		s, err = r.open(ctx)
	}
	if err != nil && r.c.patience != nil && !ends(err) {
		r.interrupted.Store(true)
		return nil, nil
	}
	return s, err
}

// ends reports whether there is no going on after an error of open.
func ends(err error) bool {
	var trimmed *ErrTrimmed
	var beyond *ErrBeyond
	return errors.As(err, &trimmed) || errors.As(err, &beyond)
}

// reopen makes a consumer, however long that takes.
func (r *Reader) reopen(ctx context.Context) (*session, error) {
	missing := 0
	for wait := retryLeast; ; wait = min(2*wait, retryMost) {
		var s *session
		err := r.c.Usable()
		if err == nil {
			s, err = r.open(ctx)
		}
		switch {
		case err == nil:
			return s, nil
		case ctx.Err() != nil, ends(err):
			return nil, err
		case errors.Is(err, jetstream.ErrStreamNotFound) && r.c.patience == nil:
			if missing++; missing >= gone {
				return nil, err
			}
		default:
			missing = 0
		}
		if err := r.c.bus.opts.Clock.Sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// open compares the wanted sequence with what the stream holds and makes a
// consumer from there.
func (r *Reader) open(ctx context.Context) (*session, error) {
	st, err := r.c.JS.Stream(ctx, r.stream)
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", r.stream, err)
	}
	state := st.CachedInfo().State
	// Whatever was stored on other subjects up to passed may be gone.
	if r.next > 0 {
		r.next = max(r.next, r.passed.Load()+1)
	}
	switch {
	case r.next == 0:
		r.next = max(state.FirstSeq, 1)
	case r.next < state.FirstSeq:
		return nil, &ErrTrimmed{Stream: r.bare, Want: r.next, First: state.FirstSeq}
	case r.next > state.LastSeq+1:
		return nil, &ErrBeyond{Stream: r.bare, Want: r.next, Last: state.LastSeq}
	}
	s := &session{r: r, last: state.LastSeq}
	if err := s.open(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (r *Reader) count(why string) {
	r.c.bus.metrics.recreated.WithLabelValues(r.bare, why).Inc()
	r.counter.mu.Lock()
	defer r.counter.mu.Unlock()
	if r.counter.recreated == nil {
		r.counter.recreated = map[string]uint64{}
	}
	r.counter.recreated[why]++
}

// pass notes that everything of ours up to a sequence has been delivered.
func (r *Reader) pass(seq uint64) {
	if seq > r.passed.Load() {
		r.passed.Store(seq) // one goroutine writes
	}
}

// deliver hands a message on; it blocks while the caller is busy.
func (r *Reader) deliver(ctx context.Context, m Msg) bool {
	select {
	case r.out <- m:
	case <-ctx.Done():
		return false
	}
	r.next = m.Seq + 1
	r.counter.messages.Add(1)
	r.counter.bytes.Add(uint64(len(m.Data)))
	r.shown.messages.Inc()
	r.shown.bytes.Add(float64(len(m.Data)))
	return true
}

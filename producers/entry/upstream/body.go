package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"sync"
	"sync/atomic"
	"time"
)

// body reads the body of an answer from its connection, and gives the connection
// back when it is at the end. Close may be called while Read waits.
type body struct {
	pool    *Pool
	server  *server
	c       *conn
	ctx     context.Context
	stop    func() bool // stops watching the context; nil if nothing is watched
	keep    bool        // the connection can be used again
	framing framing
	left    int64     // of length
	chunked io.Reader // of chunks
	x       *exchange

	// live is c while it is this body's: who takes it out may close it or give it
	// back, so that Close never closes what is another request's by then.
	live atomic.Pointer[conn]

	mu  sync.Mutex
	err error // of reads from now on, once it has ended
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	var asked time.Time
	if b.c.r.Buffered() == 0 {
		asked = b.pool.o.Clock.Now()
		b.c.patience(b.pool.socketTime(asked), b.pool.o.Timeouts.Silence)
	}
	n, err := b.read(p)
	if b.x.place != nil && !asked.IsZero() {
		b.x.attempt.Awaited += b.pool.o.Clock.Now().Sub(asked)
	}
	b.x.attempt.BytesIn += int64(n)
	if err != nil {
		b.finish(err)
		err = b.err
	}
	return n, err
}

// read reads some of the body, and returns io.EOF with the last of it.
func (b *body) read(p []byte) (n int, err error) {
	switch b.framing {
	case length:
		n, err = b.c.r.Read(p[:min(int64(len(p)), b.left)])
		if b.left -= int64(n); b.left == 0 {
			return n, io.EOF
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	case chunks:
		if n, err = b.chunked.Read(p); errors.Is(err, io.EOF) {
			if err = b.readTrailer(); err == nil {
				err = io.EOF
			}
		} else if err != nil && !ended(err) && !timedOut(err) {
			err = fmt.Errorf("%w: %w", ErrMalformed, err)
		}
	case closing:
		n, err = b.c.r.Read(p)
	case noBody:
		err = io.EOF
	}
	return n, err
}

// readTrailer reads what follows the last chunk.
func (b *body) readTrailer() error {
	c := b.c
	if two, err := c.r.Peek(2); err == nil && bytes.Equal(two, []byte("\r\n")) {
		_, err = c.r.Discard(2)
		return err
	}
	if err := c.awaitTrailer(); err != nil {
		return err
	}
	trailer, err := textproto.NewReader(c.r).ReadMIMEHeader()
	var bad textproto.ProtocolError
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case errors.As(err, &bad):
		return fmt.Errorf("%w: trailer: %w", ErrMalformed, err)
	case err != nil:
		return err
	}
	for name, values := range trailer {
		if ofConnection(name) {
			return fmt.Errorf("%w: %s in a trailer", ErrMalformed, name)
		}
		if b.x.resp.Trailer == nil {
			b.x.resp.Trailer = http.Header{}
		}
		b.x.resp.Trailer[name] = values
	}
	return nil
}

// awaitTrailer waits until a trailer has come as a whole. Its end must not be in
// doubt: mere line feeds don't end it. It has to fit into the buffer, as
// net/http's has.
func (c *conn) awaitTrailer() error {
	for {
		b, _ := c.r.Peek(c.r.Buffered()) // never fails
		if bytes.Contains(b, []byte("\r\n\r\n")) {
			return nil
		}
		if len(b) == c.r.Size() {
			return fmt.Errorf("%w: trailer is too long", ErrMalformed)
		}
		if _, err := c.r.Peek(len(b) + 1); errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		} else if err != nil {
			return err
		}
	}
}

// Close implements io.Closer. Where the rest of the body has been received the
// connection can still be used.
func (b *body) Close() error {
	if !b.mu.TryLock() {
		if c := b.live.Swap(nil); c != nil {
			c.close() // ends the Read that waits
		}
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	if b.err != nil {
		return nil
	}
	if b.framing == length && b.left <= int64(b.c.r.Buffered()) {
		_, err := b.c.r.Discard(int(b.left))
		b.left = 0
		b.finish(errors.Join(err, io.EOF))
	} else {
		b.finish(http.ErrBodyReadAfterClose)
	}
	if errors.Is(b.err, io.EOF) {
		b.err = http.ErrBodyReadAfterClose
	}
	return nil
}

// finish ends the exchange: io.EOF is a body that was read to its end.
func (b *body) finish(err error) {
	watched := b.stop == nil || b.stop()
	if b.live.Swap(nil) == nil {
		err = http.ErrBodyReadAfterClose // Close has ended the read, not the server
	}
	whole := errors.Is(err, io.EOF)
	switch {
	case whole && b.keep && watched && b.c.r.Buffered() == 0:
		b.c.used++
		b.c.attempt = nil
		b.c.idleSince = b.pool.o.Clock.Now()
		b.server.conns.push(b.c)
	default:
		if whole && b.keep && watched {
			b.server.leftover.Add(1)
		}
		b.c.close()
		b.server.conns.gone()
	}
	b.c = nil
	switch {
	case whole:
		b.err = io.EOF
		b.pool.end(b.server, b.x, "", nil)
	case errors.Is(err, http.ErrBodyReadAfterClose):
		b.err = err
		b.pool.end(b.server, b.x, ReasonAbandoned, err)
	default:
		var reason string
		reason, b.err = explain(b.ctx, err)
		b.pool.end(b.server, b.x, reason, b.err)
	}
}

// begin makes the body of an answer whose head has been read.
func (b *body) begin(f framing, contentLength int64) {
	b.framing, b.left = f, contentLength
	if f == chunks {
		b.chunked = httputil.NewChunkedReader(b.c.r)
	}
}

package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"penstock/infra/clock"
)

// readBuffer is a connection's: most answers of a few KB come with one read.
const readBuffer = 4 << 10

// mostAtOnce is the largest request that the system takes at once: its buffers
// are larger.
const mostAtOnce = 16 << 10

// lastLook is how long an answer is waited for after a request was not taken in
// time.
const lastLook = time.Second

// errHeadTooLong is an answer's head beyond Options.HeadLimit.
var errHeadTooLong = errors.New("head is too long")

// conn is one connection to a server. It is used by one request at a time.
type conn struct {
	nc  net.Conn // what is read and written: TLS or TCP
	tcp net.Conn // under it
	r   *bufio.Reader
	// headLeft is how many bytes the head of an answer may still take, -1 where no
	// head is read.
	headLeft int64
	// used is how many answers it has brought.
	used      int
	idleSince time.Time
	// deadline of reads that is set in the socket, zero if none.
	deadline time.Time
	// abort closes the socket from any goroutine. It is made once, so that
	// watching a context costs no closure.
	abort func()
	look  look
	clock clock.Clock

	// Of the request that is being sent.
	request []byte // still to be written, by the first read of the answer
	attempt *Attempt
	failed  error // of writing it
	unsent  bool  // not one byte of it was taken
}

func newConn(tcp, nc net.Conn, cl clock.Clock) *conn {
	c := &conn{nc: nc, tcp: tcp, headLeft: -1, clock: cl}
	c.r = bufio.NewReaderSize((*connReader)(c), readBuffer)
	c.abort = c.close
	if sc, ok := tcp.(syscall.Conn); ok {
		c.look.init(sc)
	}
	return c
}

// close closes the socket. Closing TLS itself would write, and may block.
func (c *conn) close() { _ = c.tcp.Close() }

// connReader is a conn as its buffer reads it.
type connReader conn

func (c *connReader) Read(p []byte) (int, error) {
	if c.headLeft >= 0 {
		if c.headLeft == 0 {
			return 0, errHeadTooLong
		}
		p = p[:min(int64(len(p)), c.headLeft)]
	}
	var n int
	var err error
	if c.request != nil {
		n, err = c.exchange(p)
	} else {
		n, err = c.nc.Read(p)
	}
	if c.headLeft >= 0 {
		c.headLeft -= int64(n)
	}
	return n, err
}

// errDead is an idle connection that can't be used, found before anything was
// written to it.
var errDead = errors.New("idle connection is closed")

// exchange writes the pending request and reads the beginning of its answer.
func (c *connReader) exchange(p []byte) (int, error) {
	request := c.request
	c.request = nil
	got := c.look.exchange(request, p, (*conn)(c))
	switch {
	case got.dead:
		return 0, errDead
	case got.wrote == len(request):
		return got.n, got.err
	}
	wrote, err := got.wrote, got.err
	if err == nil { // not all was taken at once
		wrote, err = (*conn)(c).write(request[wrote:])
		wrote += got.wrote
	}
	if c.unsent, c.failed = wrote == 0, err; c.unsent && err != nil {
		return 0, err
	}
	(*conn)(c).sent()
	// The answer may be there although not all of the request was taken.
	n, readErr := c.nc.Read(p)
	if n == 0 && err != nil {
		return 0, err
	}
	return n, readErr
}

// sent notes that the request has been written.
func (c *conn) sent() { c.attempt.Sent = c.clock.Now() }

// write writes what the system may not take at once, with the deadline of reads:
// a server that takes nothing must not hold who asks for ever. Then there may be
// an answer nevertheless, for which the deadline is set anew.
func (c *conn) write(b []byte) (int, error) {
	if len(b) <= mostAtOnce || c.deadline.IsZero() {
		return c.nc.Write(b)
	}
	_ = c.nc.SetWriteDeadline(c.deadline) // fails for a closed one only, which the write will say
	n, err := c.nc.Write(b)
	_ = c.nc.SetWriteDeadline(time.Time{})
	if timedOut(err) {
		c.deadline = c.deadline.Add(lastLook)
		_ = c.nc.SetReadDeadline(c.deadline)
	}
	return n, err
}

// ask writes a request, or leaves that to the first read of the answer. An error other than errDead was before anything that
// could be an answer; one of a write that went wrong half-way stays in failed.
func (c *conn) ask(request []byte, a *Attempt) error {
	c.failed, c.unsent, c.attempt = nil, false, a
	if c.used > 0 {
		if c.nc == c.tcp && c.look.exchanges(request) {
			c.request = request
			return nil
		}
		if !c.look.quiet() {
			return errDead
		}
	}
	n, err := c.write(request)
	c.failed, c.unsent = err, n == 0
	if err != nil && n == 0 && c.used > 0 {
		return err
	}
	c.sent()
	return nil
}

// patience sets the time for which reads wait: at least d from now and at most an
// eighth longer. So the deadline in the socket, which is expensive to set, is
// left alone for many requests.
func (c *conn) patience(now time.Time, d time.Duration) {
	if d <= 0 {
		if !c.deadline.IsZero() {
			c.deadline = time.Time{}
			_ = c.nc.SetReadDeadline(c.deadline) // fails for a closed one only, which the read will say
		}
		return
	}
	if left := c.deadline.Sub(now); left >= d && left <= d+d/8 {
		return
	}
	c.deadline = now.Add(d + d/8)
	_ = c.nc.SetReadDeadline(c.deadline)
}

// dial opens a connection to a server.
func (p *Pool) dial(ctx context.Context, s *server) (*conn, error) {
	if d := p.o.Timeouts.Connect; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d, errConnectTime)
		defer cancel()
	}
	tcp, err := p.dialer.DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConnect, err)
	}
	if s.tls == nil {
		return newConn(tcp, tcp, p.o.Clock), nil
	}
	nc := tls.Client(tcp, s.tls)
	if err := nc.HandshakeContext(ctx); err != nil {
		_ = tcp.Close()
		return nil, fmt.Errorf("%w: TLS: %w", ErrConnect, err)
	}
	return newConn(tcp, nc, p.o.Clock), nil
}

var errConnectTime = errors.New("no connection in time")

// conn returns a connection to a server: an idle one or a new one.
func (p *Pool) conn(ctx context.Context, s *server, now time.Time) (*conn, error) {
	for {
		c, wait := s.conns.pop()
		if wait != nil {
			var err error
			if c, err = s.conns.await(ctx, p, wait); err != nil {
				return nil, err
			}
		}
		if c == nil {
			c, err := p.dial(ctx, s)
			if err != nil {
				s.conns.gone()
				return nil, err
			}
			s.dials.Add(1)
			return c, nil
		}
		if idle := p.o.Timeouts.Idle; idle <= 0 || now.Sub(c.idleSince) < idle {
			return c, nil
		}
		s.stale.Add(1)
		c.close()
		s.conns.gone()
	}
}

// ended reports whether an error of a socket says that the other side has gone.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNABORTED)
}

func timedOut(err error) bool {
	var n net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}

package strict

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"penstock/infra/clock"
)

// Limits of the heads that are let through. One is shared by all connections
// and must not change.
type Limits struct {
	// Header is the most bytes of a request line and header together.
	Header int
	// HeaderTimeout is the longest a head may take from its first byte, and the
	// longest a new connection may say nothing.
	HeaderTimeout time.Duration
	// IdleTimeout is the longest a connection waits for its next request.
	IdleTimeout time.Duration
	// WriteTimeout is the longest that a write may wait for the client.
	WriteTimeout time.Duration
	// Marker is the path of the request that stands for a refused one. It must be
	// one that nobody can guess.
	Marker string
	// Names are further headers, beside Protected, that Connection may not name.
	Names []string
	// Idle is called when a connection is closed for having been idle; it may be nil.
	Idle func()

	once      sync.Once
	synthetic []byte
	protected []string
}

func (l *Limits) complete() {
	l.once.Do(func() {
		l.synthetic = []byte("GET " + l.Marker + " HTTP/1.1\r\nHost: refused\r\nConnection: close\r\n\r\n")
		l.protected = slices.Clone(Protected)
		for _, n := range l.Names {
			l.protected = append(l.protected, strings.ToLower(n))
		}
	})
}

// The states of a Conn.
const (
	inHead = iota
	delivering
	inLength
	inChunks
	held
	raw
	failed
)

// Conn is a connection that checks what it reads. Make one with New.
type Conn struct {
	net.Conn
	limits *Limits
	clock  clock.Clock

	buf        []byte
	from, to   int // what is read and not handed on
	scanned    int // of the head, from buf's beginning: no fault in its line ends up to here
	deliver    int // end of what may be handed on
	state      uint8
	after      uint8 // the state once a head is handed on
	simple     bool  // what is delivered is a head of which nothing follows
	emptyLine  bool  // one was left out before this head
	length     int64 // left of a body of known length
	chunks     chunks
	err        error
	started    time.Time // of the wait for a head, then of the head
	refusal    atomic.Pointer[Refusal]
	bodyFault  atomic.Pointer[Refusal]
	waiting    atomic.Bool // for the first byte of a request, nothing under way
	fresh      bool        // has had no request
	watch      watch
	mu         sync.Mutex
	owner, own time.Time    // read deadlines: net/http's, and of this package
	writeBy    atomic.Int64 // write deadline of this package in ns since 1970, 0 if none
}

// New returns a Conn that reads c.
func New(c net.Conn, l *Limits, now clock.Clock) *Conn {
	l.complete()
	s := &Conn{Conn: c, limits: l, clock: now, buf: make([]byte, 4096), fresh: true}
	s.chunks.protected = l.protected
	s.waiting.Store(true)
	return s
}

// Refused returns why the connection's last request was refused, nil if none
// was. The request that stands for it has the path Limits.Marker.
func (c *Conn) Refused() *Refusal { return c.refusal.Load() }

// BodyFault returns what was wrong with the framing of a body, nil if nothing
// was: net/http tells some of it in words of its own.
func (c *Conn) BodyFault() *Refusal { return c.bodyFault.Load() }

// Waiting reports whether the connection waits for a request to begin.
func (c *Conn) Waiting() bool { return c.waiting.Load() }

// Answered says that a request was answered and the connection waits for the
// next one. What was held for another protocol is HTTP again.
func (c *Conn) Answered() {
	c.unwatch()
	// The head of the next one may be here, read while this one was answered.
	c.waiting.Store(c.state != delivering)
	c.started = c.clock.Now()
	switch c.state {
	case held:
		c.state = inHead
	case inLength, inChunks:
		// The server believes that the message is over, but its body isn't: what is
		// left of it would be read as a request.
		c.state, c.err = failed, io.EOF
	}
}

// Hijacked says that what follows isn't HTTP.
func (c *Conn) Hijacked() {
	c.unwatch()
	c.state = raw
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	c.unwatch()
	for {
		switch c.state {
		case inHead:
			if c.later(p) {
				return 0, nil
			}
			if err := c.readHead(); err != nil {
				return 0, err
			}
		case delivering:
			n := copy(p, c.buf[c.from:c.deliver])
			if c.from += n; c.from == c.deliver {
				c.state = c.after
			}
			return n, nil
		case inLength, inChunks:
			return c.readBody(p)
		case held:
			if err := c.hold(); err != nil {
				return 0, err
			}
		case raw:
			if c.from < c.to {
				n := copy(p, c.buf[c.from:c.to])
				c.from += n
				return n, nil
			}
			return c.Conn.Read(p)
		default:
			return 0, c.err
		}
	}
}

// Next waits for a request and returns its head if that is all of it: HTTP/1.1,
// no body, no other protocol, no wish to be told to go on. The head is read by
// that, and stays as it is until Watched or the next call. A head that Read has to
// hand on, whatever the reason, is nil.
func (c *Conn) Next() (head []byte, err error) {
	c.unwatch()
	if c.state == inHead {
		if err := c.readHead(); err != nil {
			return nil, err
		}
	}
	if c.state != delivering || !c.simple {
		return nil, nil
	}
	head, c.from, c.state = c.buf[c.from:c.deliver], c.deliver, c.after
	return head, nil
}

// Write implements net.Conn. A client that takes nothing is not waited for
// longer than WriteTimeout and an eighth of it.
func (c *Conn) Write(p []byte) (int, error) {
	c.patience()
	return c.Conn.Write(p)
}

// CloseWrite ends what is sent, where the connection can.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// readHead reads on until a head is whole, and leaves it, or what stands for it
// if it is refused, to be delivered.
func (c *Conn) readHead() error {
	for {
		end, r := c.headEnd()
		if r == nil && end > 0 {
			var h head
			if h, r = parseHead(c.buf[c.from:end], c.limits.protected); r == nil {
				c.accept(h, end)
				return nil
			}
		}
		if r != nil {
			c.refuse(r)
			return nil
		}
		if err := c.fillHead(); err != nil {
			return err
		}
		if c.state != inHead {
			return nil
		}
	}
}

func (c *Conn) accept(h head, end int) {
	c.deliver, c.state, c.emptyLine, c.fresh = end, delivering, false, false
	c.simple = h.simple
	c.waiting.Store(false)
	switch {
	case h.length < 0:
		c.after = inChunks
		c.chunks.reset()
	case h.length > 0:
		c.after, c.length = inLength, h.length
	case h.upgrade:
		c.after = held
	default:
		c.after = inHead
	}
}

// refuse puts the request that stands for a refused one in its place. Nothing
// after it is read.
func (c *Conn) refuse(r *Refusal) {
	c.refusal.Store(r)
	c.buf = append(c.buf[:0], c.limits.synthetic...)
	c.from, c.to, c.deliver = 0, len(c.buf), len(c.buf)
	c.state, c.after, c.err = delivering, failed, io.EOF
	c.simple = false
	c.waiting.Store(false)
}

// headEnd looks for the empty line that ends the head. It refuses at the first
// byte that no head can hold there, not to wait for more of what is no HTTP.
func (c *Conn) headEnd() (end int, r *Refusal) {
	if c.to > c.from && !c.emptyLine && c.buf[c.from] == '\r' {
		// One empty line before a request is left out, as old clients sent one
		// after a body (RFC 9112 §2.2).
		if c.to == c.from+1 {
			return 0, nil
		}
		if c.buf[c.from+1] != '\n' {
			return 0, RefusedLineEnd
		}
		c.from += 2
		c.emptyLine = true
	}
	if c.from == c.to {
		return 0, nil
	}
	if kinds[c.buf[c.from]]&tokenChar == 0 {
		return 0, firstFault(c.buf[c.from:c.from+1], RefusedLine)
	}
	c.scanned = max(c.scanned, c.from)
	for {
		n := bytes.IndexByte(c.buf[c.scanned:c.to], '\n')
		if n < 0 {
			break
		}
		at := c.scanned + n
		if at-c.from >= c.limits.Header {
			break
		}
		if at == c.from || c.buf[at-1] != '\r' {
			return 0, RefusedLineEnd
		}
		c.scanned = at + 1
		if at >= c.from+3 && c.buf[at-2] == '\n' {
			return at + 1, nil
		}
	}
	if c.to-c.from >= c.limits.Header {
		if c.scanned == c.from {
			return 0, RefusedURI
		}
		return 0, RefusedHeader
	}
	return 0, nil
}

// fillHead reads more of a head, in the time that it has.
func (c *Conn) fillHead() error {
	c.makeRoom()
	if c.started.IsZero() {
		c.started = c.clock.Now()
	}
	c.setOwn(c.headDeadline())
	n, err := c.Conn.Read(c.buf[c.to:])
	if n > 0 {
		if c.from == c.to && !c.fresh {
			c.started = c.clock.Now()
		}
		c.to += n
		return nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.ownerDue() {
		if c.from < c.to {
			c.refuse(RefusedSlow)
			return nil
		}
		if c.limits.Idle != nil {
			c.limits.Idle()
		}
		c.state, c.err = failed, io.EOF
	}
	return err
}

// headDeadline is when the wait for a head, or for its rest, is over; never
// while a request is answered, for a client may well keep silent then.
func (c *Conn) headDeadline() time.Time {
	switch {
	case !c.waiting.Load():
		return time.Time{}
	case c.fresh, c.from < c.to:
		return c.within(c.limits.HeaderTimeout)
	}
	return c.idleDeadline()
}

func (c *Conn) within(d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return c.started.Add(d)
}

// makeRoom leaves room for at least one byte behind what is buffered.
func (c *Conn) makeRoom() {
	if c.from == c.to {
		c.from, c.to, c.scanned = 0, 0, 0
		return
	}
	if c.to < len(c.buf) {
		return
	}
	if c.from > 0 {
		c.to = copy(c.buf, c.buf[c.from:c.to])
		c.scanned = max(c.scanned-c.from, 0)
		c.from = 0
		return
	}
	c.buf = append(c.buf, make([]byte, len(c.buf))...)
}

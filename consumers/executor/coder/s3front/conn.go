package s3front

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"penstock/infra/clock"
)

// tooSlow is S3's name for a client that is: the code of its request.
const tooSlow = "RequestTimeout"

// pace is how far a client is behind the least rate of a body. One that was fast has
// nothing to draw on: a request holds memory for as long as its client may be slow, and a
// few bytes now and then must not hold it for long, whatever came before.
type pace struct {
	idle   time.Duration
	rate   int64 // bytes a second
	behind time.Duration
}

// patience is how long the next bytes may take.
func (p *pace) patience() time.Duration { return p.idle - p.behind }

// moved notes that so many bytes moved in so much time.
func (p *pace) moved(n int, took time.Duration) {
	due := time.Duration(float64(n) / float64(p.rate) * float64(time.Second))
	p.behind = max(p.behind+took-due, 0)
}

// listener gives every connection a deadline for each write, and TLS.
type listener struct {
	net.Listener

	pace  pace
	clock clock.Clock
}

// wrap returns what connections are taken from: TLS, if any, over ones whose clients
// must read on.
func wrap(l net.Listener, o *Options) net.Listener {
	l = &listener{Listener: l, pace: pace{idle: o.Idle, rate: o.Rate}, clock: o.Clock}
	if o.TLS != nil {
		l = tls.NewListener(l, o.TLS)
	}
	return l
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, pace: l.pace, clock: l.clock}, nil
}

// conn is a connection whose writes fail when the client reads nothing for a while, or
// less than the least rate. Reads have the deadlines of the server (headers, pauses
// between requests) and of rawBody (bodies).
type conn struct {
	net.Conn

	clock clock.Clock

	mu   sync.Mutex // TLS may answer what it reads while an answer begins
	pace pace
}

// connKey is where a connection is found in the contexts of its requests.
type connKey struct{}

// withConn is the ConnContext of net/http.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// restart says that a new answer begins: that the client was slow with the one before
// does not count. A request that came by no connection of ours has no pace.
func restart(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pace.behind = 0
	}
}

// maxWrite is the most that must be written within one deadline.
const maxWrite = 64 << 10

// Write implements net.Conn.
func (c *conn) Write(p []byte) (n int, err error) {
	for first := true; first || len(p) > 0; first = false {
		m, err := c.write(p[:min(len(p), maxWrite)])
		n += m
		if err != nil {
			return n, err
		}
		p = p[m:]
	}
	return n, nil
}

// write writes what fits into one deadline.
func (c *conn) write(p []byte) (int, error) {
	began := c.clock.Now()
	c.mu.Lock()
	patience := c.pace.patience()
	c.mu.Unlock()
	if err := c.SetWriteDeadline(began.Add(patience)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	took := c.clock.Now().Sub(began)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pace.moved(n, took)
	return n, err
}

// CloseWrite says that nothing more will be written: see net/http, which looks for it.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

package s3front

import (
	"crypto/tls"
	"net"
	"time"

	"penstock/infra/clock"
)

// listener gives every connection a deadline for each write, and TLS.
type listener struct {
	net.Listener

	idle  time.Duration
	clock clock.Clock
}

// wrap returns what connections are taken from: TLS, if any, over ones whose clients
// must read on.
func wrap(l net.Listener, o *Options) net.Listener {
	l = &listener{Listener: l, idle: o.Idle, clock: o.Clock}
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
	return &conn{Conn: c, idle: l.idle, clock: l.clock}, nil
}

// conn is a connection whose writes fail when the client reads nothing for a while.
// Reads have the deadlines of the server (headers, pauses between requests) and of
// rawBody (bodies).
type conn struct {
	net.Conn

	idle  time.Duration
	clock clock.Clock
}

// maxWrite is the most that must be written within one deadline.
const maxWrite = 64 << 10

// Write implements net.Conn.
func (c *conn) Write(p []byte) (n int, err error) {
	for first := true; first || len(p) > 0; first = false {
		if err = c.SetWriteDeadline(c.clock.Now().Add(c.idle)); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(p[:min(len(p), maxWrite)])
		n += m
		if err != nil {
			return n, err
		}
		p = p[m:]
	}
	return n, nil
}

// CloseWrite says that nothing more will be written: see net/http, which looks for it.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

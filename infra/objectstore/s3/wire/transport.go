package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"penstock/infra/clock"
)

// longestPause bounds what a service may ask for by Retry-After.
const longestPause = 30 * time.Second

// transport carries the requests of one client. It ends connections on which the
// service is silent, and hands on what a service says about its load.
type transport struct {
	*http.Transport
	slow   func(time.Duration)
	closed atomic.Bool
}

// close ends idle connections, and those that are still being made for requests
// which have ended.
func (t *transport) close() {
	t.closed.Store(true)
	t.CloseIdleConnections()
}

func newTransport(o *Options, slow func(time.Duration)) *transport {
	dial := net.Dialer{Timeout: o.Timeout, KeepAlive: 15 * time.Second}
	t := &transport{slow: slow}
	t.Transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			if t.closed.Load() {
				return nil, errors.Join(net.ErrClosed, c.Close())
			}
			return &impatient{Conn: c, timeout: o.Timeout}, nil
		},
		TLSHandshakeTimeout: o.Timeout,
		MaxIdleConns:        o.Connections,
		MaxIdleConnsPerHost: o.Connections,
		IdleConnTimeout:     o.Timeout,
		// Content is what it is: nothing is to unpack it on the way.
		DisableCompression: true,
		// Of requests that expect a word before their content (see Awaited).
		ExpectContinueTimeout: awaitedFor,
	}
	return t
}

// RoundTrip sends one request. A connection on which a request with content was
// refused is not used again: there are servers that answer before they have read
// the content, and then take what is left of it for the next request.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var conn net.Conn
	if r.Context().Value(awaitedKey{}) != nil {
		r = r.Clone(r.Context())
		r.Header.Set("Expect", "100-continue")
	}
	if r.Body != nil {
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
			GotConn: func(i httptrace.GotConnInfo) { conn = i.Conn },
		}))
		if content, ok := r.Context().Value(contentKey{}).([]byte); ok {
			var l loan
			defer l.end()
			r.Body = &lent{&l, r.Body}
			r.GetBody = func() (io.ReadCloser, error) {
				return &lent{&l, io.NopCloser(bytes.NewReader(content))}, nil
			}
		}
	}
	res, err := t.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusServiceUnavailable || res.StatusCode == http.StatusTooManyRequests {
		if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s > 0 {
			t.slow(min(time.Duration(min(s, 3600))*time.Second, longestPause))
		}
	}
	if conn != nil && res.StatusCode >= 400 && res.ProtoMajor == 1 {
		retire(conn)
		res.Body = &lastBody{res.Body, conn}
	}
	return res, nil
}

// awaitedFor is how long a service is waited for that doesn't say go on.
const awaitedFor = time.Second

type awaitedKey struct{}

// Awaited has the content of requests sent when the service says that it has begun
// with them, by HTTP's 100 Continue.
func Awaited(ctx context.Context) context.Context {
	return context.WithValue(ctx, awaitedKey{}, true)
}

type contentKey struct{}

// WithContent tells the transport the content of a request to come, so that it can
// send it on another connection if nothing of it went out on the first. The memory is
// the caller's again when the request has returned: what is still sending it then, as
// after a context that has ended, reads no more of it.
func WithContent(ctx context.Context, content []byte) context.Context {
	return context.WithValue(ctx, contentKey{}, content)
}

// loan is of memory to the bodies of one request.
type loan struct {
	mu    sync.Mutex
	ended bool
}

func (l *loan) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

type lent struct {
	*loan
	io.ReadCloser
}

func (b *lent) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return 0, net.ErrClosed
	}
	return b.ReadCloser.Read(p)
}

// retire lets no further request out on a connection. One that has chosen it is
// sent on another.
func retire(conn net.Conn) {
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = wrapped.NetConn()
	}
	if c, ok := conn.(*impatient); ok {
		c.retired.Store(true)
	}
}

// lastBody ends its connection when it has been read.
type lastBody struct {
	io.ReadCloser
	conn net.Conn
}

func (b *lastBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.conn.Close()
	}
	return n, err
}

func (b *lastBody) Close() error {
	err := b.ReadCloser.Close()
	_ = b.conn.Close()
	return err
}

// impatient is a connection that ends when nothing has moved in either direction
// for the timeout. A limit for the request as a whole would cut off large
// objects.
type impatient struct {
	net.Conn
	timeout time.Duration
	retired atomic.Bool // nothing more is to be written
}

func (c *impatient) Read(b []byte) (int, error) {
	if err := c.extend(); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *impatient) Write(b []byte) (int, error) {
	if c.retired.Load() {
		return 0, net.ErrClosed
	}
	if err := c.extend(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// extend goes by the machine's clock, since the network does.
func (c *impatient) extend() error { return c.SetDeadline(clock.System().Now().Add(c.timeout)) }

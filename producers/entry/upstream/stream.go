package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// newTransport makes the transport for what the fast path is not made for.
func (p *Pool) newTransport(h2 bool) *http.Transport {
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if d := p.o.Timeouts.Connect; d > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, d, errConnectTime)
				defer cancel()
			}
			return p.dialer.DialContext(ctx, network, address)
		},
		DisableCompression: true, ExpectContinueTimeout: time.Second,
		IdleConnTimeout: p.o.Timeouts.Idle, MaxIdleConnsPerHost: p.o.MaxIdle,
		MaxResponseHeaderBytes: p.o.HeadLimit, ResponseHeaderTimeout: p.o.Timeouts.Header,
		TLSHandshakeTimeout: p.o.Timeouts.Connect, WriteBufferSize: 32 << 10, ReadBufferSize: 32 << 10,
		Protocols: new(http.Protocols),
	}
	if p.o.TLS != nil {
		t.TLSClientConfig = p.o.TLS.Clone()
		t.TLSClientConfig.NextProtos = nil
	}
	t.Protocols.SetHTTP1(!h2)
	t.Protocols.SetHTTP2(h2)
	t.Protocols.SetUnencryptedHTTP2(h2)
	return t
}

// upload is the body of a request that goes through the transport. A transport
// closes what it is given even if it has not read from it; the client's body is
// kept from that, so that it can be sent to another server.
type upload struct {
	req     *http.Request
	next    io.ReadCloser // for the next attempt; nil: the request's own body
	touched atomic.Bool
	sent    atomic.Int64
	failed  atomic.Pointer[error] // of reading from the client
	now     func() time.Time
	ended   atomic.Pointer[time.Time] // when the transport had read all of it
}

func newUpload(req *http.Request, now func() time.Time) *upload { return &upload{req: req, now: now} }

// again gets the body for one more attempt, and reports whether it can be had. An
// attempt that had a connection may still begin to read what it was given, so that
// the next one needs a body of its own.
func (u *upload) again(connected bool) bool {
	switch {
	case !hasBody(u.req):
		return true
	case u.req.GetBody == nil:
		return !connected && !u.touched.Load()
	}
	b, err := u.req.GetBody()
	u.next = b
	return err == nil
}

// wrongLength reports whether the body was not as long as the request says.
func (u *upload) wrongLength() bool {
	n := u.sent.Load()
	return u.req.ContentLength > 0 && (n > u.req.ContentLength || n < u.req.ContentLength && u.ended.Load() != nil)
}

// body returns the body for the next attempt.
func (u *upload) body() io.ReadCloser {
	if !hasBody(u.req) {
		return http.NoBody
	}
	b := u.req.Body
	if u.next != nil {
		b, u.next = u.next, nil
	}
	u.sent.Store(0)
	u.ended.Store(nil)
	return &uploadReader{u, b}
}

type uploadReader struct {
	u *upload
	r io.Reader
}

func (r *uploadReader) Read(p []byte) (int, error) {
	r.u.touched.Store(true)
	n, err := r.r.Read(p)
	r.u.sent.Add(int64(n))
	switch {
	case errors.Is(err, io.EOF):
		now := r.u.now()
		r.u.ended.Store(&now)
	case err != nil:
		r.u.failed.Store(&err)
	}
	return n, err
}

func (*uploadReader) Close() error { return nil }

// times are what a trace tells, from other goroutines and maybe after the answer.
type times struct {
	mu                         sync.Mutex
	connected, sent, firstByte time.Time
}

func (t *times) set(at *time.Time, now time.Time) {
	t.mu.Lock()
	*at = now
	t.mu.Unlock()
}

// copyTo fills in an attempt. HTTP/2 may tell too late that the request was sent;
// then it was when the transport had read it.
func (t *times) copyTo(a *Attempt, u *upload) {
	t.mu.Lock()
	a.Connected, a.Sent, a.FirstByte = t.connected, t.sent, t.firstByte
	t.mu.Unlock()
	if a.Sent.IsZero() && !a.FirstByte.IsZero() {
		if ended := u.ended.Load(); ended != nil {
			a.Sent = *ended
		} else if !hasBody(u.req) {
			a.Sent = a.Connected
		}
	}
	a.BytesOut = u.sent.Load()
}

func (t *times) trace(now func() time.Time) *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { t.set(&t.connected, now()) },
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			if i.Err == nil {
				t.set(&t.sent, now())
			}
		},
		GotFirstResponseByte: func() { t.set(&t.firstByte, now()) },
	}
}

// stream makes one attempt through the transport.
func (r *run) stream(s *server, x *exchange) (*http.Response, error) {
	if err := checkRequest(r.req, s); err != nil {
		return nil, err
	}
	t := &times{}
	out := r.req.WithContext(httptrace.WithClientTrace(r.ctx, t.trace(r.p.o.Clock.Now)))
	u := *r.req.URL
	u.Scheme, u.Host = s.url.Scheme, s.url.Host
	out.URL, out.Body, out.GetBody, out.Close = &u, r.upload.body(), nil, false
	if out.Header = r.req.Header.Clone(); out.Header == nil {
		out.Header = http.Header{}
	}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = nil // none, instead of the transport's own
	}
	transport := r.p.upgrades
	if len(out.Header["Upgrade"]) == 0 {
		transport = r.p.transport
		delete(out.Header, "Connection")
	}
	for _, name := range []string{"Keep-Alive", "Proxy-Connection", "Transfer-Encoding"} {
		delete(out.Header, name)
	}
	resp, err := transport.RoundTrip(out)
	t.copyTo(&x.attempt, r.upload)
	if err != nil {
		return nil, r.explainTransport(err)
	}
	r.judge(s, &x.attempt, resp.StatusCode)
	resp.Request = r.req
	resp.Body = r.received(resp.Body, s, x, t)
	return resp, nil
}

// explainTransport makes of a transport's error one of ours, if it can be told.
func (r *run) explainTransport(err error) error {
	var op *net.OpError
	switch {
	case r.upload.failed.Load() != nil:
		return fmt.Errorf("%w: %w", ErrRequestBody, *r.upload.failed.Load())
	case r.upload.wrongLength():
		return fmt.Errorf("%w: %d bytes instead of %d", ErrRequestBody, r.upload.sent.Load(), r.req.ContentLength)
	case errors.As(err, &op) && op.Op == "dial", errors.Is(err, errConnectTime):
		return fmt.Errorf("%w: %w", ErrConnect, err)
	case timedOut(err), ended(err), r.p.o.H2:
		return err
	}
	return fmt.Errorf("%w: %w", ErrMalformed, err)
}

// received wraps the body of a transport's answer so that its end is noted.
func (r *run) received(body io.ReadCloser, s *server, x *exchange, t *times) io.ReadCloser {
	d := &download{ReadCloser: body, run: r, server: s, x: x, times: t}
	if w, ok := body.(io.Writer); ok { // of 101
		return struct {
			*download
			io.Writer
		}{d, w}
	}
	if body == http.NoBody {
		d.finish("", nil)
		return body
	}
	return d
}

// download is the body of an answer that came through the transport.
type download struct {
	io.ReadCloser
	run    *run
	server *server
	x      *exchange
	times  *times
	once   sync.Once
}

func (d *download) Read(p []byte) (int, error) {
	n, err := d.await(p)
	atomic.AddInt64(&d.x.attempt.BytesIn, int64(n))
	switch {
	case errors.Is(err, io.EOF):
		d.finish("", nil)
	case err != nil:
		var reason string
		reason, err = explain(d.run.ctx, err)
		d.finish(reason, err)
	}
	return n, err
}

// await reads, and measures for how long if a Dispatcher is to know. After a change
// of protocol there is no answer whose parts could be waited for.
func (d *download) await(p []byte) (int, error) {
	if d.x.place == nil || d.x.attempt.Status == http.StatusSwitchingProtocols {
		return d.ReadCloser.Read(p)
	}
	asked := d.run.p.o.Clock.Now()
	n, err := d.ReadCloser.Read(p)
	atomic.AddInt64((*int64)(&d.x.attempt.Awaited), int64(d.run.p.o.Clock.Now().Sub(asked)))
	return n, err
}

func (d *download) Close() error {
	err := d.ReadCloser.Close()
	reason := ReasonAbandoned
	if d.x.attempt.Status == http.StatusSwitchingProtocols {
		reason = "" // closing is how it ends
	}
	d.finish(reason, nil)
	return err
}

func (d *download) finish(reason string, err error) {
	d.once.Do(func() {
		d.times.copyTo(&d.x.attempt, d.run.upload)
		d.run.p.end(d.server, d.x, reason, err)
	})
}

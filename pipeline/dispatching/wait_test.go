package dispatching

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/consumers/executor/dispatcher"
	"penstock/producers/entry"
	"penstock/producers/entry/upstream"
	"penstock/schemas/event"
)

// single is one place at a server, and a queue of one.
func single(queue int, limit time.Duration) func(*dispatcher.Options, *upstream.Options, *entry.Options) {
	return func(o *dispatcher.Options, _ *upstream.Options, _ *entry.Options) {
		o.InService, o.Queue, o.Classes[0].Limit = 1, queue, limit
	}
}

// client has connections of its own, of HTTP/2 without TLS if wanted.
func client(t testing.TB, h2 bool) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(!h2)
	transport.Protocols.SetUnencryptedHTTP2(h2)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

// asking is how a request that waits is asked for.
type asking struct {
	name, method, body string
	h2                 bool
}

var askings = []asking{
	{"the short way", http.MethodGet, "", false},
	{"with a body", http.MethodPost, "body", false},
	{"with a large body", http.MethodPut, strings.Repeat("b", 100_000), false},
	{"HTTP/2", http.MethodGet, "", true},
	{"HTTP/2 with a body", http.MethodPost, "body", true},
}

// send asks and returns the status, or an error.
func (a asking) send(ctx context.Context, t testing.TB, url string) (status int, header http.Header, err error) {
	req, err := http.NewRequestWithContext(ctx, a.method, url+"/x", strings.NewReader(a.body))
	if err != nil {
		return 0, nil, err
	}
	resp, err := client(t, a.h2).Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header, err
}

// wait until so many requests are in service and wait.
func (p *point) wait(t testing.TB, in, queued int) {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		gotIn, gotQueued := 0, 0
		p.Site().Loads(func(_, _ string, i, q int, _ float64) { gotIn, gotQueued = gotIn+i, gotQueued+q })
		if gotIn == in && gotQueued == queued {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%d in service and %d wait, expected %d and %d", gotIn, gotQueued, in, queued)
		}
	}
}

// A request waits in the queue, on every way through the entry point; that counts as
// wait, and what it is late by is in its row. One that finds the queue full is told when to
// come again.
func TestWaiting(t *testing.T) {
	t.Parallel()
	for _, a := range askings {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			m := start(t, 0)
			p := open(t, single(1, time.Nanosecond), m)
			gate := m.hold()
			var all sync.WaitGroup
			for n := range 2 {
				all.Go(func() {
					if status, _, err := a.send(t.Context(), t, p.url); err != nil || status != 200 {
						t.Errorf("status %d, %v", status, err)
					}
				})
				p.wait(t, 1, n)
			}
			status, h, err := a.send(t.Context(), t, p.url)
			if after, e := strconv.Atoi(h.Get("Retry-After")); err != nil || status != 503 || e != nil || after < 1 {
				t.Errorf("status %d, %v, %v", status, h, err)
			}
			close(gate)
			all.Wait()
			rows := p.rows.await(t, 3, func(*event.Request) bool { return true })
			waits := 0
			for _, r := range rows {
				switch {
				case r.Status == 503 && (r.Overdue != event.NullInt || r.ToServer != "" || r.Wait < 0):
					t.Errorf("refused: %+v", r)
				case r.Status == 200 && (r.Overdue <= 0 || r.Overdue < r.Wait+r.Service+r.Network-1 || r.ToServer != m.name || r.Class != "dynamic"):
					t.Errorf("served: %+v", r)
				case r.Status == 200 && r.Wait > r.Service:
					waits++
				}
			}
			if most := m.most.Load(); most != 1 {
				t.Errorf("%d were served at once", most)
			}
			if c := p.Site().State().Counts; c.Full != 1 || c.Late != 2 || c.Answered != 2 {
				t.Errorf("counted %+v", c)
			}
		})
	}
}

// A response in time is overdue by 0.
func TestInTime(t *testing.T) {
	t.Parallel()
	m := start(t, 0)
	p := open(t, single(1, time.Hour), m)
	if status, _, err := askings[0].send(t.Context(), t, p.url); status != 200 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
	if r := p.rows.await(t, 1, func(*event.Request) bool { return true })[0]; r.Overdue != 0 || r.Wait == event.NullInt {
		t.Errorf("got %+v", r)
	}
}

// A client that leaves while its request waits frees its place; its row says how long it
// waited. One that leaves while it is served gives the place to the next.
func TestClientsThatLeave(t *testing.T) {
	t.Parallel()
	for _, a := range askings {
		if len(a.body) > 1000 {
			continue // of a client that still sends it isn't known before its turn
		}
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			m := start(t, 0)
			p := open(t, single(10, time.Nanosecond), m)
			gate := m.hold()
			var all sync.WaitGroup
			leave := make([]context.CancelFunc, 3)
			for n := range 3 {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				leave[n] = cancel
				all.Go(func() {
					status, _, err := a.send(ctx, t, p.url)
					if n < 2 && err == nil || n == 2 && status != 200 {
						t.Errorf("request %d: status %d, %v", n, status, err)
					}
				})
				p.wait(t, 1, n)
			}
			leave[1]()
			p.wait(t, 1, 1)
			r := p.rows.await(t, 1, func(r *event.Request) bool { return r.Status == 499 })[0]
			if r.Wait <= 0 || r.Overdue <= 0 || r.ToServer != "" {
				t.Errorf("got %+v", r)
			}
			leave[0]()
			p.wait(t, 1, 0)
			close(gate)
			all.Wait()
			if c := p.Site().State().Counts; c.Left != 1 || c.Gone != 1 || c.Answered != 1 {
				t.Errorf("counted %+v", c)
			}
		})
	}
}

// A change of protocol waits as any request, and has its place until it ends.
func TestAnUpgradeWaits(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	echo := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, _ = io.Copy(c, buffered)
	})}
	go func() { _ = echo.Serve(l) }()
	t.Cleanup(func() { _ = echo.Close() })
	m := &machine{Server: &httptest.Server{URL: "http://" + l.Addr().String()}, name: l.Addr().String()}
	p := open(t, single(10, time.Hour), m)
	dial := func() net.Conn {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = io.WriteString(c, "GET /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		return c
	}
	said := func(c net.Conn, what string) {
		t.Helper()
		_, _ = io.WriteString(c, what)
		got := make([]byte, 4096)
		for n := 0; ; {
			k, err := c.Read(got[n:])
			if n += k; strings.HasSuffix(string(got[:n]), what) {
				return
			}
			if err != nil {
				t.Fatalf("%v after %q", err, got[:n])
			}
		}
	}
	one := dial()
	said(one, "hello")
	two := dial()
	p.wait(t, 1, 1)
	_ = one.Close()
	said(two, "world")
	p.wait(t, 1, 0)
	_ = two.Close()
	p.wait(t, 0, 0)
}

// TestResults: what an attempt says of its server. What went over a connection after a
// change of protocol is no answer's size.
func TestResults(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	attempt := func(status int, reason string) *upstream.Attempt {
		return &upstream.Attempt{
			Connected: at, Sent: at.Add(time.Millisecond), FirstByte: at.Add(5 * time.Millisecond), Awaited: 2 * time.Millisecond,
			Status: status, BytesIn: 9, Reason: reason,
		}
	}
	early := attempt(200, "")
	early.Sent = time.Time{} // the answer began before the body had ended
	for name, tc := range map[string]struct {
		a    *upstream.Attempt
		want dispatcher.Result
	}{
		"an answer":        {attempt(200, ""), dispatcher.Result{OK: true, Service: 6 * time.Millisecond, Answer: 9}},
		"an early one":     {early, dispatcher.Result{OK: true, Service: 7 * time.Millisecond, Answer: 9}},
		"a failed one":     {attempt(500, ""), dispatcher.Result{Service: 6 * time.Millisecond, Answer: 9}},
		"by its status":    {attempt(429, upstream.ReasonStatus), dispatcher.Result{Service: 6 * time.Millisecond, Answer: 9}},
		"another protocol": {attempt(101, ""), dispatcher.Result{OK: true, Service: 6 * time.Millisecond, Answer: -1}},
		"none":             {&upstream.Attempt{Reason: upstream.ReasonConnect}, dispatcher.Result{}},
		"a client gone":    {attempt(200, upstream.ReasonAbandoned), dispatcher.Result{Gone: true}},
	} {
		if got := resultOf(tc.a); got != tc.want {
			t.Errorf("%s: got %+v, expected %+v", name, got, tc.want)
		}
	}
}

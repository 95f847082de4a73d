package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"penstock/infra/testserver"
)

// deadURL is an address that nobody listens on.
func deadURL(t testing.TB) string {
	t.Helper()
	return "http://" + testserver.FreeAddress(t)
}

// TestRetries: what the first server does, and whether the second is asked.
func TestRetries(t *testing.T) {
	t.Parallel()
	status := func(code int) string { return fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: 1\r\n\r\nx", code) }
	for name, tc := range map[string]struct {
		method, body string
		header       string
		first        string // answer; empty: none, the connection is closed
		dead         bool   // the first server is not there
		again        bool
		reason       string // of the first attempt
		status       int    // where it isn't sent again
		err          error
	}{
		"fine":                 {method: "GET", first: okAnswer, status: 200},
		"refused":              {method: "GET", dead: true, again: true, reason: ReasonConnect},
		"refused POST":         {method: "POST", body: "b", dead: true, again: true, reason: ReasonConnect},
		"reset":                {method: "GET", again: true, reason: ReasonReset},
		"reset HEAD":           {method: "HEAD", again: true, reason: ReasonReset},
		"reset PUT":            {method: "PUT", body: "b", again: true, reason: ReasonReset},
		"reset DELETE":         {method: "DELETE", again: true, reason: ReasonReset},
		"reset POST":           {method: "POST", body: "b", reason: ReasonReset, err: ErrReset},
		"reset PATCH":          {method: "PATCH", body: "b", reason: ReasonReset, err: ErrReset},
		"reset POST with key":  {method: "POST", body: "b", header: "Idempotency-Key", again: true, reason: ReasonReset},
		"malformed":            {method: "GET", first: "hello\r\n\r\n", again: true, reason: ReasonMalformed},
		"malformed POST":       {method: "POST", first: "hello\r\n\r\n", reason: ReasonMalformed, err: ErrMalformed},
		"500":                  {method: "GET", first: status(500), status: 500},
		"502":                  {method: "GET", first: status(502), again: true, reason: ReasonStatus},
		"503":                  {method: "GET", first: status(503), again: true, reason: ReasonStatus},
		"504":                  {method: "GET", first: status(504), again: true, reason: ReasonStatus},
		"503 POST":             {method: "POST", body: "b", first: status(503), reason: ReasonStatus, status: 503},
		"421":                  {method: "GET", first: status(421), status: 421},
		"cut after the head":   {method: "GET", first: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", reason: ReasonReset, status: 200},
		"large body, refused":  {method: "POST", body: strings.Repeat("b", 100_000), dead: true, again: true, reason: ReasonConnect},
		"large body, reset":    {method: "PUT", body: strings.Repeat("b", 100_000), reason: ReasonReset, err: ErrReset},
		"large body, answered": {method: "PUT", body: strings.Repeat("b", 100_000), first: okAnswer, status: 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
				if req, err := http.ReadRequest(r); err == nil {
					_, _ = io.Copy(io.Discard, req.Body)
					_, _ = io.WriteString(c, tc.first)
				}
			}).URL
			if tc.dead {
				first = deadURL(t)
			}
			var got atomic.Value
			second := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
				if req, err := http.ReadRequest(r); err == nil {
					b, _ := io.ReadAll(req.Body)
					got.Store(req.Method + " " + string(b))
					_, _ = io.WriteString(c, "HTTP/1.1 201 Second\r\nContent-Length: 0\r\n\r\n")
				}
			})
			p := newPool(t, Options{}, first, second.URL)
			req := newRequest(t, tc.method, "/", tc.body)
			if tc.header != "" {
				req.Header.Set(tc.header, "1")
			}
			s := do(p, req)
			if tc.again {
				if s.err != nil || s.status != 201 || len(s.failed) != 1 || s.failed[0].Reason != tc.reason {
					t.Fatalf("%v", s)
				}
				if got.Load() != tc.method+" "+tc.body {
					t.Errorf("the second server got %.40q", got.Load())
				}
				if f := s.failed[0]; f.Server == s.a.Server || f.Done.IsZero() || s.a.Queued.Before(f.Done) && tc.reason != ReasonStatus {
					t.Errorf("attempts %+v, %+v", f, s.a)
				}
				if p.retries.Load() != 1 {
					t.Errorf("%d retries are counted", p.retries.Load())
				}
			} else if len(s.failed) != 0 || s.a.Reason != tc.reason || s.status != tc.status || !errors.Is(s.err, tc.err) {
				t.Fatalf("%v", s)
			}
			if failures(p, tc.reason) != 1 && tc.reason != "" {
				t.Errorf("status %+v", p.Status())
			}
		})
	}
}

// TestOneServer: with nobody else to ask, a reset is tried again there; a refused
// connection and a failing status are not.
func TestOneServer(t *testing.T) {
	t.Parallel()
	s := serveRaw(t, func(n int, c net.Conn, r *bufio.Reader) {
		if n == 1 {
			_, _ = http.ReadRequest(r)
			return
		}
		answerAll(c, r, "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n")
	})
	p := newPool(t, Options{}, s.URL)
	if got := do(p, newRequest(t, "GET", "/", "")); got.status != 503 || len(got.failed) != 1 || got.a.Reason != ReasonStatus {
		t.Errorf("%v", got)
	}
	if p := newPool(t, Options{}, deadURL(t)); true {
		if got := do(p, newRequest(t, "GET", "/", "")); !errors.Is(got.err, ErrConnect) || len(got.failed) != 0 {
			t.Errorf("%v", got)
		}
	}
}

// TestAFailureWithALongBody: an answer whose status is a failure, and that is not read to
// its end because another server is asked, failed by its status all the same.
func TestAFailureWithALongBody(t *testing.T) {
	t.Parallel()
	bad := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 503 X\r\nContent-Length: 1000000\r\n\r\nx")
			_, _ = r.Peek(1) // until the connection is closed
		}
	})
	good := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) { answerAll(c, r, okAnswer) })
	p := newPool(t, Options{}, bad.URL, good.URL)
	got := do(p, newRequest(t, "GET", "/", ""))
	if got.status != 200 || len(got.failed) != 1 || got.failed[0].Reason != ReasonStatus || got.failed[0].Status != 503 {
		t.Errorf("%+v", got)
	}
}

// TestTheBudgetIsKept: where every server fails, requests are not doubled.
func TestTheBudgetIsKept(t *testing.T) {
	t.Parallel()
	fail := func(_ int, c net.Conn, r *bufio.Reader) {
		answerAll(c, r, "HTTP/1.1 502 X\r\nContent-Length: 0\r\n\r\n")
	}
	p := newPool(t, Options{Retry: Retry{Least: -1}}, serveRaw(t, fail).URL, serveRaw(t, fail).URL)
	again := 0
	for range 100 {
		got := do(p, newRequest(t, "GET", "/", ""))
		if got.status != 502 {
			t.Fatalf("%v", got)
		}
		again += len(got.failed)
	}
	if again < 15 || again > 20 || p.spent.Load() < 80 {
		t.Errorf("%d of 100 were sent again, %d refused", again, p.spent.Load())
	}
	if now, times := p.Panic(); !now || times != 1 {
		t.Errorf("panic %v, %d times", now, times)
	}
}

// TestNoRequestIsLostToIdleConnections: a server closes idle connections at
// random moments, also just when the next request comes. Of 10,000 requests that
// may be sent twice none fails; one that may not is answered or refused, and
// never done twice.
func TestNoRequestIsLostToIdleConnections(t *testing.T) {
	t.Parallel()
	const requests, clients = 10_000, 8
	var mu sync.Mutex
	done := map[string]int{}
	s := serveRaw(t, func(n int, c net.Conn, r *bufio.Reader) {
		random := rand.New(rand.NewPCG(1, uint64(n)))
		for served := false; ; served = true {
			if served && random.IntN(10) == 0 {
				// Idle for up to 200 µs only.
				_ = c.SetReadDeadline(time.Now().Add(time.Duration(random.IntN(200)) * time.Microsecond))
			}
			if _, err := r.Peek(1); err != nil {
				return
			}
			_ = c.SetReadDeadline(time.Time{})
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			mu.Lock()
			done[req.URL.Path]++
			mu.Unlock()
			if random.IntN(20) == 0 { // after an answer that says nothing of it
				_, _ = io.WriteString(c, okAnswer)
				return
			}
			if _, err := io.WriteString(c, okAnswer); err != nil {
				return
			}
		}
	})
	p := newPool(t, Options{Timeouts: Timeouts{Connect: patience}}, s.URL) // of idle connections, not of a busy machine
	methods := []string{"GET", "PUT", "POST", "DELETE"}
	var all sync.WaitGroup
	var refused atomic.Int64
	for i := range clients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(2, uint64(i)))
			for n := range requests / clients {
				method, path := methods[random.IntN(len(methods))], fmt.Sprintf("/%d/%d", i, n)
				body := ""
				if method == "PUT" || method == "POST" {
					body = "body"
				}
				got := do(p, newRequest(t, method, path, body))
				mu.Lock()
				times := done[path]
				mu.Unlock()
				switch {
				case got.err == nil && got.body == "ok" && (times == 1 || times > 0 && method != "POST"):
				case method == "POST" && errors.Is(got.err, ErrStale) && times <= 1:
					refused.Add(1)
				default:
					t.Errorf("%s %s, done %d times: %v", method, path, times, got)
				}
			}
		})
	}
	all.Wait()
	closed := p.servers[0].stale.Load()
	if closed < requests/50 {
		t.Errorf("only %d idle connections were closed", closed)
	}
	if f := p.Status()[0]; f.State != StateUsed || f.Outstanding != 0 {
		t.Errorf("%+v", f)
	}
	t.Logf("%d connections, %d closed when idle, %d POSTs refused", s.count(), closed, refused.Load())
}

// TestARefusedRequestIsNotSent: what can't be written as HTTP goes nowhere.
func TestARefusedRequestIsNotSent(t *testing.T) {
	t.Parallel()
	s := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) { answerAll(c, r, okAnswer) })
	p := newPool(t, Options{}, s.URL)
	for name, spoil := range map[string]func(*http.Request){
		"method":       func(r *http.Request) { r.Method = "GET / HTTP/1.1\r\nX:" },
		"CONNECT":      func(r *http.Request) { r.Method = "CONNECT" },
		"host":         func(r *http.Request) { r.Host = "a\r\nX: y" },
		"query":        func(r *http.Request) { r.URL.RawQuery = "a b" },
		"opaque":       func(r *http.Request) { r.URL.Opaque = "/a\r\nX: y" },
		"header name":  func(r *http.Request) { r.Header["X: y\r\nZ"] = []string{"z"} },
		"header value": func(r *http.Request) { r.Header["X"] = []string{"y\r\nZ: z"} },
	} {
		for _, size := range []int{0, 100_000} { // by either way
			req := newRequest(t, "GET", "/", strings.Repeat("b", size))
			spoil(req)
			if got := do(p, req); !errors.Is(got.err, ErrRequest) || got.a.Reason != ReasonRequest {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
	if p.servers[0].standing.fails != 0 {
		t.Error("the server is blamed")
	}
	if s.count() != 0 {
		t.Errorf("%d connections", s.count())
	}
}

// TestWhatIsSent: the bytes that a server gets.
func TestWhatIsSent(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	s := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		for {
			var b strings.Builder
			req, err := http.ReadRequest(bufio.NewReader(io.TeeReader(r, &b)))
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			got <- b.String()
			_, _ = io.WriteString(c, okAnswer)
		}
	})
	host := strings.TrimPrefix(s.URL, "http://")
	p := newPool(t, Options{}, s.URL)
	for _, tc := range []struct {
		req  func() *http.Request
		want string
	}{
		{func() *http.Request { return newRequest(t, "GET", "/a%2Fb?c=%20d", "") }, "GET /a%2Fb?c=%20d HTTP/1.1\r\nHost: service\r\n\r\n"},
		{func() *http.Request {
			r := newRequest(t, "POST", "/", "body")
			r.Host = "elsewhere:80"
			r.Header["X-A"] = []string{"b", "c"}
			return r
		}, "POST / HTTP/1.1\r\nHost: elsewhere:80\r\nX-A: b\r\nX-A: c\r\nContent-Length: 4\r\n\r\nbody"},
		{func() *http.Request {
			r := newRequest(t, "POST", "/", "")
			r.Header = http.Header{"Connection": {"close"}, "Content-Length": {"7"}, "Transfer-Encoding": {"chunked"}, "Host": {"evil"}, "Keep-Alive": {"x"}}
			return r
		}, "POST / HTTP/1.1\r\nHost: service\r\nContent-Length: 0\r\n\r\n"},
		{func() *http.Request {
			r := newRequest(t, "OPTIONS", "/", "")
			r.URL.Path, r.Host = "*", ""
			r.URL.Host = ""
			return r
		}, "OPTIONS * HTTP/1.1\r\nHost: " + host + "\r\n\r\n"},
	} {
		if s := do(p, tc.req()); s.err != nil {
			t.Fatal(s.err)
		}
		if b := <-got; b != tc.want {
			t.Errorf("sent %q, want %q", b, tc.want)
		}
	}
}

// TestTheClientsBody: a body that can't be read is the client's fault.
func TestTheClientsBody(t *testing.T) {
	t.Parallel()
	s := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) { answerAll(c, r, okAnswer) })
	p := newPool(t, Options{}, s.URL)
	for name, size := range map[string]int64{"small": 10, "large": 200_000, "unknown": -1} {
		req := newRequest(t, "POST", "/", "x")
		req.Body = io.NopCloser(io.MultiReader(strings.NewReader("part"), errReader{errAny}))
		req.ContentLength = size
		if got := do(p, req); !errors.Is(got.err, ErrRequestBody) || got.a.Reason != ReasonBody || len(got.failed) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, size := range map[string]int64{"shorter": 300_000, "longer": 100_000} {
		req := newRequest(t, "POST", "/", strings.Repeat("b", 200_000))
		req.ContentLength = size
		got := do(p, req)
		if name == "longer" && got.err == nil { // the server has what was announced, and may have answered
			continue
		}
		if !errors.Is(got.err, ErrRequestBody) || got.a.Reason != ReasonBody {
			t.Errorf("%s: %v", name, got)
		}
	}
	if st := p.Status()[0]; st.State != StateUsed || p.servers[0].standing.fails != 0 {
		t.Errorf("%+v", st)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := do(p, newRequest(t, "GET", "/", "").WithContext(ctx)); !errors.Is(got.err, context.Canceled) || got.a.Reason != ReasonCancelled {
		t.Errorf("%v", got)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

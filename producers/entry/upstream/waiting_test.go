package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/infra/clock"
)

func noLog() *log.Logger { return log.New(io.Discard, "", 0) }

// silent is a server that reads requests and does not answer before it is told
// to by the path's channel.
func silent(t testing.TB, head string) (*rawServer, chan struct{}) {
	asked := make(chan struct{}, 100)
	return serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			if req.URL.Path == "/fine" {
				_, _ = io.WriteString(c, okAnswer)
				continue
			}
			_, _ = io.WriteString(c, head)
			asked <- struct{}{}
		}
	}), asked
}

// TestCancelling: who gives up gets free at once, wherever it waits, and the
// connection is closed.
func TestCancelling(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		head string // what the server sends
		body bool   // the answer is there, its body is not
		size int    // of the request's body
	}{
		"before the head":        {},
		"in the head":            {head: "HTTP/1.1 200 OK\r\nX-"},
		"in the body":            {head: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12", body: true},
		"in chunks":              {head: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n12\r\n", body: true},
		"before the head, large": {size: 100_000},
		"in the body, large":     {head: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12", body: true, size: 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, asked := silent(t, tc.head)
			p := newPool(t, Options{}, s.URL)
			if got := do(p, newRequest(t, "GET", "/fine", "")); got.body != "ok" { // the next one is on a used connection
				t.Fatal(got)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			result := make(chan said)
			go func() { result <- do(p, newRequest(t, "PUT", "/", strings.Repeat("x", tc.size)).WithContext(ctx)) }()
			<-asked
			cancel(errAny)
			got := <-result
			err := got.err
			if tc.body && err == nil {
				err = got.bodyErr
			}
			if !errors.Is(err, errAny) && !errors.Is(err, context.Canceled) || got.a.Reason != ReasonCancelled || len(got.failed) > 0 {
				t.Errorf("%v", got)
			}
			if st := p.Status()[0]; st.Outstanding != 0 || st.Open > st.Idle || p.servers[0].standing.fails != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestTimeouts: a server that is too slow is given up and blamed.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	short := 20 * time.Millisecond
	for name, tc := range map[string]struct {
		head string
		t    Timeouts
		body bool
	}{
		"head":  {t: Timeouts{Header: short}},
		"part":  {t: Timeouts{Header: short}, head: "HTTP/1.1 200"},
		"body":  {t: Timeouts{Silence: short}, head: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12", body: true},
		"chunk": {t: Timeouts{Silence: short}, head: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n12\r\n", body: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := silent(t, tc.head)
			p := newPool(t, Options{Timeouts: tc.t, Retry: Retry{Attempts: 1}}, s.URL)
			got := do(p, newRequest(t, "GET", "/", ""))
			err := got.err
			if tc.body {
				err = got.bodyErr
			}
			if !errors.Is(err, ErrTimeout) || got.a.Reason != ReasonTimeout || p.servers[0].standing.fails != 1 {
				t.Errorf("%v", got)
			}
		})
	}
	t.Run("a later request has its own time", func(t *testing.T) {
		t.Parallel()
		s, _ := silent(t, "")
		// As long as a busy machine may take for one that is quick.
		p := newPool(t, Options{Timeouts: Timeouts{Header: 3 * time.Second}}, s.URL)
		for range 6 {
			if got := do(p, newRequest(t, "GET", "/fine", "")); got.body != "ok" {
				t.Fatalf("%v", got)
			}
			time.Sleep(600 * time.Millisecond) // longer than the first one's time in all
		}
		if s.count() != 1 {
			t.Errorf("%d connections", s.count())
		}
	})
}

// TestMaxConns: no more connections than allowed; who waits gets one in turn, or
// is told that all are in use.
func TestMaxConns(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	running, most := 0, 0
	s := serveRaw(t, func(n int, c net.Conn, r *bufio.Reader) {
		for i := 0; ; i++ {
			if _, err := http.ReadRequest(r); err != nil {
				return
			}
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(100 * time.Microsecond)
			mu.Lock()
			running--
			mu.Unlock()
			if _, err := io.WriteString(c, okAnswer); err != nil || (i+n)%10 == 0 {
				return
			}
		}
	})
	p := newPool(t, Options{MaxConns: 3}, s.URL)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 50 {
				if got := do(p, newRequest(t, "GET", "/", "")); got.body != "ok" {
					t.Errorf("%v", got)
				}
			}
		})
	}
	all.Wait()
	if st := p.Status()[0]; most > 3 || most < 2 || st.Open > 3 || st.Outstanding != 0 {
		t.Errorf("%d at once; %+v", most, st)
	}
	slow, asked := silent(t, "")
	m := clock.NewManual(time.Unix(0, 0))
	p = newPool(t, Options{MaxConns: 1, Clock: m}, slow.URL)
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan said)
	go func() { results <- do(p, newRequest(t, "GET", "/", "").WithContext(ctx)) }()
	<-asked
	go func() { results <- do(p, newRequest(t, "GET", "/", "")) }()
	if err := m.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	m.Advance(5 * time.Second)
	if got := <-results; !errors.Is(got.err, ErrBusy) || got.a.Reason != ReasonBusy {
		t.Errorf("%v", got)
	}
	cancel()
	<-results
	if got := do(p, newRequest(t, "GET", "/fine", "")); got.body != "ok" {
		t.Errorf("afterwards: %v", got)
	}
}

// TestAbandonedBodies: a body that is closed half-way costs the connection, unless
// the rest of it is there already; Close ends a Read that waits.
func TestAbandonedBodies(t *testing.T) {
	t.Parallel()
	s, asked := silent(t, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12")
	p := newPool(t, Options{}, s.URL)
	for _, wait := range []bool{false, true} {
		resp, a, err := p.Do(newRequest(t, "GET", "/", ""), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }() // again
		<-asked
		if wait {
			ended := make(chan error)
			go func() {
				_, err := io.ReadAll(resp.Body)
				ended <- err
			}()
			time.Sleep(time.Millisecond)
			_ = resp.Body.Close()
			if err := <-ended; err == nil || a.Reason != ReasonAbandoned || failures(p, ReasonReset) > 0 {
				t.Errorf("a body that was closed while it was read: %v, %+v", err, a)
			}
		} else {
			_ = resp.Body.Close()
			if a.Reason != ReasonAbandoned {
				t.Errorf("%+v", a)
			}
		}
		_ = resp.Body.Close() // again
		if st := p.Status()[0]; st.Open != 0 || st.Outstanding != 0 {
			t.Errorf("%+v", st)
		}
		if _, err := resp.Body.Read(make([]byte, 1)); err == nil {
			t.Error("a closed body was read")
		}
	}
	resp, a, err := p.Do(newRequest(t, "GET", "/fine", ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if st := p.Status()[0]; st.Idle != 1 || a.Reason != "" {
		t.Errorf("%+v, %+v", st, a)
	}
}

// TestNobodyTakesTheRequest: a server that reads nothing of a request that does
// not fit into the buffers between is given up in time; an answer that it has
// sent instead is read.
func TestNobodyTakesTheRequest(t *testing.T) {
	t.Parallel()
	for _, answers := range []bool{false, true} {
		p := newPool(t, Options{Timeouts: Timeouts{Header: 20 * time.Millisecond}, Retry: Retry{Attempts: 1}}, "http://127.0.0.1:1")
		ours, theirs := net.Pipe() // it has no buffer
		c := newConn(ours, ours, clock.System())
		c.idleSince = time.Now()
		s := p.servers[0]
		s.conns.idle, s.conns.open = append(s.conns.idle, c), 1
		var all sync.WaitGroup
		all.Go(func() {
			_, _ = io.ReadFull(theirs, make([]byte, 100))
			if answers {
				_, _ = io.WriteString(theirs, "HTTP/1.1 413 X\r\nContent-Length: 0\r\n\r\n")
			}
		})
		got := do(p, newRequest(t, "PUT", "/", strings.Repeat("b", 60_000)))
		if answers && got.status != 413 || !answers && (!errors.Is(got.err, ErrTimeout) || got.a.Reason != ReasonTimeout) {
			t.Errorf("answers %v: %v", answers, got)
		}
		if st := p.Status()[0]; st.Open != 0 || st.Outstanding != 0 {
			t.Errorf("%+v", st)
		}
		_ = theirs.Close()
		all.Wait()
	}
}

// TestClosingWhileTheBodyEnds: Close in the moment in which Read reaches the end
// never closes the connection of the next request.
func TestClosingWhileTheBodyEnds(t *testing.T) {
	t.Parallel()
	s := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) { answerAll(c, r, okAnswer) })
	p := newPool(t, Options{Retry: Retry{Attempts: 1}}, s.URL)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 500 {
				resp, _, err := p.Do(newRequest(t, "POST", "/", "body"), nil)
				if err != nil {
					t.Error(err)
					return
				}
				var end sync.WaitGroup
				end.Go(func() { _, _ = io.ReadAll(resp.Body) })
				_ = resp.Body.Close()
				end.Wait()
			}
		})
	}
	all.Wait()
	if st := p.Status()[0]; st.Outstanding != 0 || st.Open != st.Idle || failures(p, ReasonReset)+failures(p, ReasonStale) > 0 {
		t.Errorf("%+v", st)
	}
}

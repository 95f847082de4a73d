package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"penstock/infra/clock"
)

// TestDraining: a server that is taken off the list, or marked, gets no new
// request; what runs there ends well (P38).
func TestDraining(t *testing.T) {
	t.Parallel()
	for _, removed := range []bool{true, false} {
		finish, started := make(chan struct{}), make(chan struct{}, 1)
		slow := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
			for {
				req, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				if req.URL.Path == "/slow" {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nsl")
					started <- struct{}{}
					<-finish
					_, _ = io.WriteString(c, "ow")
					continue
				}
				_, _ = io.WriteString(c, okAnswer)
			}
		})
		other := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) { answerAll(c, r, okAnswer) })
		p := newPool(t, Options{Servers: []Server{{Name: "slow", URL: slow.URL}}})
		result := make(chan said)
		go func() { result <- do(p, newRequest(t, "GET", "/slow", "")) }()
		<-started
		next := []Server{{Name: "other", URL: other.URL}}
		if !removed {
			next = append(next, Server{Name: "slow", URL: slow.URL, Drain: true})
		}
		if err := p.Set(next); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if got := do(p, newRequest(t, "GET", "/", "")); got.a.Server != "other" || got.body != "ok" {
				t.Fatalf("%v", got)
			}
		}
		if st := p.Status()[1]; st.Name != "slow" || st.State != StateDraining || st.Outstanding != 1 {
			t.Errorf("%+v", st)
		}
		close(finish)
		if got := <-result; got.body != "slow" || got.a.Reason != "" {
			t.Errorf("the running request: %v", got)
		}
		st := p.Status()
		if removed && len(st) != 1 || !removed && (st[1].Outstanding != 0 || st[1].Open != 0) {
			t.Errorf("afterwards: %+v", st)
		}
		// It comes back.
		if err := p.Set([]Server{{Name: "slow", URL: slow.URL}}); err != nil {
			t.Fatal(err)
		}
		if got := do(p, newRequest(t, "GET", "/", "")); got.a.Server != "slow" || got.body != "ok" {
			t.Errorf("%v", got)
		}
		if err := p.Set(nil); err != nil {
			t.Fatal(err)
		}
		if got := do(p, newRequest(t, "GET", "/", "")); !errors.Is(got.err, ErrNoServer) || got.a.Reason != ReasonNoServer {
			t.Errorf("%v", got)
		}
	}
}

// TestTheListChangesUnderLoad: not one request fails while servers come and go.
func TestTheListChangesUnderLoad(t *testing.T) {
	t.Parallel()
	var list []Server
	for i := range 4 {
		s := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) { answerAll(c, r, okAnswer) })
		list = append(list, Server{URL: s.URL, Weight: i + 1})
	}
	p := newPool(t, Options{Servers: list})
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := do(p, newRequest(t, "POST", "/", "body")); got.body != "ok" || got.bodyErr != nil {
					t.Errorf("%v", got)
				}
			}
		})
	}
	for i := range 200 {
		next := append([]Server{}, list[i%4:]...)
		if i%3 == 0 {
			next[0].Drain = len(next) > 1
		}
		if err := p.Set(next); err != nil {
			t.Error(err)
		}
		time.Sleep(100 * time.Microsecond)
	}
	close(stop)
	all.Wait()
	for _, st := range p.Status() {
		if st.Outstanding != 0 || len(st.Failures) > 0 {
			t.Errorf("%+v", st)
		}
	}
}

// TestProbes: active probes take a server out and put it back, and Run closes
// old idle connections.
func TestProbes(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	answer := "HTTP/1.1 204 X\r\n\r\n"
	set := func(a string) {
		mu.Lock()
		answer = a
		mu.Unlock()
	}
	sick := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			a := okAnswer
			if mu.Lock(); req.URL.Path == "/health" {
				a = answer
			}
			mu.Unlock()
			_, _ = io.WriteString(c, a)
		}
	})
	well := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) { answerAll(c, r, okAnswer) })
	m := clock.NewManual(time.Unix(1_000_000, 0))
	registry := prometheus.NewRegistry()
	p := newPool(t, Options{
		Name: "here", Clock: m, Health: Health{Path: "/health", Timeout: patience}, Registerer: registry,
		Servers: []Server{{Name: "sick", URL: sick.URL}, {Name: "well", URL: well.URL}},
	})
	if got := do(p, newRequest(t, "GET", "/", "")); got.body != "ok" {
		t.Fatal(got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- p.Run(ctx) }()
	probes := func() (n uint64) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.servers[0].probesOK + p.servers[0].probesFailed
	}
	eventually(t, "the first probe", func() bool { return probes() == 1 })
	round := func() {
		t.Helper()
		before := probes()
		m.Advance(5 * time.Second)
		eventually(t, "a probe", func() bool { return probes() == before+1 })
	}
	set("HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n")
	for i, want := range []string{StateUsed, StateUsed, StateOut, StateOut} {
		if round(); p.Status()[0].State != want {
			t.Errorf("after %d failed probes: %+v", i+1, p.Status()[0])
		}
	}
	for range 10 {
		if got := do(p, newRequest(t, "GET", "/", "")); got.a.Server != "well" {
			t.Errorf("%+v", got.a)
		}
	}
	want := `
# HELP penstock_upstream_ejections_total How often a server was taken out of use.
# TYPE penstock_upstream_ejections_total counter
penstock_upstream_ejections_total{pool="here",server="sick"} 1
penstock_upstream_ejections_total{pool="here",server="well"} 0
# HELP penstock_upstream_usable 1 if the server gets new requests.
# TYPE penstock_upstream_usable gauge
penstock_upstream_usable{pool="here",server="sick",state="out"} 0
penstock_upstream_usable{pool="here",server="well",state="used"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "penstock_upstream_ejections_total", "penstock_upstream_usable"); err != nil {
		t.Error(err)
	}
	set(okAnswer)
	round()
	if round(); p.Status()[0].State != StateUsed {
		t.Errorf("after 2 good probes: %+v", p.Status()[0])
	}
	for range 20 { // idle for longer than 60 s by then
		round()
	}
	eventually(t, "the end of idle connections", func() bool { return idleConns(p) == 0 })
	cancel()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// TestPanic: with 1, 2 and 3 servers, all bad, requests still go to all of them
// (P31), and when one is well again it gets them.
func TestPanic(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 3; n++ {
		var mu sync.Mutex
		answer := "HTTP/1.1 502 X\r\nContent-Length: 0\r\n\r\n"
		m := clock.NewManual(time.Unix(0, 0))
		var log logged
		o := Options{Clock: m, Retry: Retry{Attempts: 1}}
		for range n {
			o.Servers = append(o.Servers, Server{URL: serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
				for {
					if _, err := http.ReadRequest(r); err != nil {
						return
					}
					mu.Lock()
					a := answer
					mu.Unlock()
					_, _ = io.WriteString(c, a)
				}
			}).URL})
		}
		p := newPool(t, o)
		p.o.Logger = zerolog.New(&log)
		for range 100 {
			if got := do(p, newRequest(t, "GET", "/", "")); got.status != 502 {
				t.Fatalf("%d servers: %v", n, got)
			}
		}
		if now, times := p.Panic(); !now || times != 1 {
			t.Errorf("%d servers: panic %v, %d times", n, now, times)
		}
		for _, st := range p.Status() {
			if st.State != StateSuspect || st.Requests < 10 {
				t.Errorf("%d servers: %+v", n, st)
			}
		}
		mu.Lock()
		answer = okAnswer
		mu.Unlock()
		for range 100 {
			if got := do(p, newRequest(t, "GET", "/", "")); got.body != "ok" {
				t.Fatalf("%d servers: %v", n, got)
			}
		}
		m.Advance(time.Minute)
		do(p, newRequest(t, "GET", "/", ""))
		if now, _ := p.Panic(); now {
			t.Errorf("%d servers are well, and there is panic", n)
		}
		for _, st := range p.Status() {
			if st.State != StateUsed {
				t.Errorf("%d servers: %+v", n, st)
			}
		}
		mu.Lock()
		answer = "HTTP/1.1 502 X\r\nContent-Length: 0\r\n\r\n"
		mu.Unlock()
		for range 100 {
			do(p, newRequest(t, "GET", "/", ""))
		}
		// The first time none had ever answered: they may have been about to start.
		for _, want := range []string{
			`"level":"warn","pool":"","panic":true,"message":"no server has answered yet`, `"level":"info","pool":"","panic":false,"message":"the panic is over`,
			`"level":"error","pool":"","panic":true,"message":"all servers are bad`,
		} {
			if got := log.String(); strings.Count(got, want) != 1 {
				t.Errorf("%d servers: the log has not once %s:\n%s", n, want, got)
			}
		}
	}
}

// TestBadOptions: each is refused, and says why.
func TestBadOptions(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Options{
		"want http://":      {Servers: []Server{{URL: "ftp://a"}}},
		"host and a port":   {Servers: []Server{{URL: "http://a/path"}}},
		"a scheme, a host":  {Servers: []Server{{URL: "http://"}}},
		"negative weight":   {Servers: []Server{{URL: "http://a", Weight: -1}}},
		"two servers":       {Servers: []Server{{URL: "http://a"}, {URL: "http://a"}}},
		"a negative limit":  {MaxConns: -1},
		"a buffer of more":  {Buffer: 1 << 20},
		"a share above 1":   {Health: Health{MaxEjected: 1.5}},
		"begin with /":      {Health: Health{Path: "health"}},
		"invalid character": {Servers: []Server{{URL: "http://a b"}}},
	} {
		if _, err := New(o); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	p := newPool(t, Options{}, "http://127.0.0.1:1")
	if err := p.Set([]Server{{URL: "nonsense"}}); err == nil || len(p.Status()) != 1 {
		t.Errorf("%v, %+v", err, p.Status())
	}
}

// logged is a log in memory.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

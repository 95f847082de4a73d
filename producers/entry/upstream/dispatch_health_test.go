package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/infra/clock"
)

// The dispatcher hears which servers may be used, whenever that changes.
func TestTheDispatcherIsTold(t *testing.T) {
	t.Parallel()
	manual := clock.NewManual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	s := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) { answerAll(c, r, okAnswer) })
	dead := deadURL(t)
	p, d := dispatched(t, Options{Clock: manual, Health: Health{Failures: 1, Eject: time.Second}, Timeouts: Timeouts{Idle: -1}}, dead, s.URL)
	do(p, newRequest(t, "GET", "/", ""))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	for n := 0; n < 4 && len(d.usable()) < 2; n++ { // without a request that would look
		if err := manual.Await(ctx, 1); err != nil {
			t.Fatal(err)
		}
		manual.Advance(attendEvery)
	}
	if err := manual.Await(ctx, 1); err != nil { // it has looked
		t.Fatal(err)
	}
	cancel()
	<-ended
	if err := p.Set([]Server{{Name: "b", URL: s.URL}, {Name: "c", URL: s.URL}, {Name: "a", URL: dead, Drain: true}}); err != nil {
		t.Fatal(err)
	}
	want := "[[a b] [b] [a b] [b c]]"
	if got := fmt.Sprint(d.told); got != want {
		t.Errorf("told %s, expected %s", got, want)
	}
}

// A request that is let in as soon as the dispatcher hears of a server finds it.
func TestAServerThatComesBack(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{})
	s := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		close(reached)
		answerAll(c, r, okAnswer)
	})
	p, d := dispatched(t, Options{}, s.URL)
	server := Server{Name: "a", URL: s.URL, Drain: true}
	if err := p.Set([]Server{server}); err != nil {
		t.Fatal(err)
	}
	waits, back, again := make(chan struct{}), make(chan struct{}), make(chan struct{}, admissions)
	d.admit = func(_ *http.Request, a Arrival) (string, error) {
		if len(a.Tried) > 0 {
			again <- struct{}{}
			return "a", nil
		}
		close(waits)
		<-back
		return "a", nil
	}
	ended := make(chan said, 1)
	go func() { ended <- do(p, newRequest(t, "GET", "/", "")) }()
	<-waits
	d.mu.Lock()
	d.hears = func([]string) {
		close(back)
		select {
		case <-reached:
		case <-again:
			t.Error("the server was not there yet")
		}
	}
	d.mu.Unlock()
	server.Drain = false
	if err := p.Set([]Server{server}); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got.err != nil {
		t.Error(got.err)
	}
	d.closes("a")
}

// A server that goes out of use while it is chosen is not asked: another one is chosen.
func TestAChoiceThatIsTooLate(t *testing.T) {
	t.Parallel()
	s := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) { answerAll(c, r, okAnswer) })
	p, d := dispatched(t, Options{}, s.URL, s.URL)
	d.admit = func(_ *http.Request, a Arrival) (string, error) {
		if len(a.Tried) > 0 {
			return "b", nil
		}
		if err := p.Set([]Server{{Name: "b", URL: s.URL}}); err != nil {
			t.Error(err)
		}
		return "a", nil
	}
	if got := do(p, newRequest(t, "GET", "/", "")); got.err != nil || got.a.Server != "b" {
		t.Errorf("%v", got)
	}
	d.closes("a no-server", "b")
	d.admit = func(*http.Request, Arrival) (string, error) { return "elsewhere", nil }
	if got := do(p, newRequest(t, "GET", "/", "")); !errors.Is(got.err, ErrNoServer) {
		t.Errorf("%v", got)
	}
	if len(d.ended) != 2+admissions || d.open != 0 {
		t.Errorf("ended %q, %d are held", d.ended, d.open)
	}
}

// A server that is only starting gets requests once a probe has succeeded, or if there is
// no other.
func TestServersAreProven(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"by a probe": "/health", "by a connection": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manual := clock.NewManual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			s := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) { answerAll(c, r, okAnswer) })
			starting := deadURL(t)
			o := Options{Clock: manual, Health: Health{Path: path, Interval: time.Hour, Timeout: patience}, Timeouts: Timeouts{Idle: -1}}
			p, d := dispatched(t, o, s.URL, starting)
			set := func(list ...Server) {
				t.Helper()
				if err := p.Set(list); err != nil {
					t.Fatal(err)
				}
			}
			a, b := Server{Name: "a", URL: s.URL}, Server{Name: "b", URL: starting}
			b.Drain = true
			set(a, b)
			b.Drain, b.Prove = false, true
			set(a, b)
			if got := p.Status(); got[1].State != StateProving {
				t.Errorf("status %+v", got)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- p.Run(ctx) }()
			sleepers := 1
			if path != "" {
				sleepers = 2
			}
			look := func() {
				t.Helper()
				for range 2 {
					if err := manual.Await(ctx, sleepers); err != nil {
						t.Fatal(err)
					}
					manual.Advance(attendEvery)
				}
				if err := manual.Await(ctx, sleepers); err != nil {
					t.Fatal(err)
				}
			}
			look()
			if got := d.usable(); !slices.Equal(got, []string{"a"}) {
				t.Errorf("told %q", got)
			}
			l, err := net.Listen("tcp", strings.TrimPrefix(starting, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			up := &http.Server{Handler: http.HandlerFunc(echo), ErrorLog: noLog()}
			go func() { _ = up.Serve(l) }()
			look()
			if got := d.usable(); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("told %q", got)
			}
			_ = up.Close()
			c := Server{Name: "c", URL: deadURL(t), Prove: true}
			set(c) // nobody else is there
			if got := d.usable(); !slices.Equal(got, []string{"c"}) {
				t.Errorf("told %q", got)
			}
			cancel()
			<-ended
		})
	}
}

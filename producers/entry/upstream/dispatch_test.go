package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/infra/clock"
)

// desk is a Dispatcher that a test answers for, and that keeps account of its places.
type desk struct {
	t     testing.TB
	admit func(req *http.Request, a Arrival) (string, error)
	hears func(names []string) // by Servers

	mu     sync.Mutex
	told   [][]string // by Servers
	asked  []string   // the tried ones of each request for a place
	open   int
	most   int
	ended  []string // server and reason of each place
	at     []time.Time
	ending chan struct{}
}

func (d *desk) Servers(names []string) {
	d.mu.Lock()
	d.told = append(d.told, slices.Clone(names))
	hears := d.hears
	d.mu.Unlock()
	if hears != nil {
		hears(names)
	}
}

func (*desk) Limit(req *http.Request) time.Duration {
	if ClassOf(req.Context()) == "dynamic" {
		return time.Second
	}
	return 0
}

func (d *desk) Admit(req *http.Request, a Arrival) (Admission, error) {
	d.mu.Lock()
	d.asked = append(d.asked, strings.Join(a.Tried, ","))
	d.at = append(d.at, a.Entered)
	admit := d.admit
	d.mu.Unlock()
	name, err := admit(req, a)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open++
	d.most = max(d.most, d.open)
	return &seat{d: d, name: name}, nil
}

// usable are the servers that it was told of last.
func (d *desk) usable() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.told[len(d.told)-1]
}

// inOrder gives each attempt the first server that it has not tried.
func (d *desk) inOrder(_ *http.Request, a Arrival) (string, error) {
	names := d.usable()
	for _, name := range names {
		if !slices.Contains(a.Tried, name) {
			return name, nil
		}
	}
	return names[0], nil
}

// seat is a place.
type seat struct {
	d    *desk
	name string
	done bool
}

func (s *seat) Server() string { return s.name }

func (s *seat) Done(a *Attempt) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.done || a.Done.IsZero() {
		s.d.t.Errorf("a place is given back twice, or before its end: %+v", a)
	}
	s.done = true
	s.d.open--
	s.d.ended = append(s.d.ended, strings.TrimSuffix(s.name+" "+a.Reason, " "))
	if s.d.ending != nil {
		s.d.ending <- struct{}{}
	}
}

// closes is what has to hold at the end.
func (d *desk) closes(want ...string) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open != 0 || d.most > 1 || !slices.Equal(d.ended, want) {
		d.t.Errorf("%d places are held, at most %d at once, ended %q, expected %q", d.open, d.most, d.ended, want)
	}
}

// dispatched makes a pool with a desk; servers are called a, b, ….
func dispatched(t testing.TB, o Options, urls ...string) (*Pool, *desk) {
	t.Helper()
	d := &desk{t: t}
	d.admit = d.inOrder
	o.Dispatcher = d
	for i, u := range urls {
		o.Servers = append(o.Servers, Server{Name: string(rune('a' + i)), URL: u})
	}
	return newPool(t, o), d
}

// Every attempt is admitted, and its place given back once, however it ends; that of a
// retry after the first one was.
func TestAttemptsAreAdmitted(t *testing.T) {
	t.Parallel()
	h2c := func(s *httptest.Server) {
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
	}
	cut := "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"
	for name, tc := range map[string]struct {
		method, body string
		first        string // answer; empty: none
		dead, h2     bool
		want         []string
	}{
		"fine":                 {method: "GET", first: okAnswer, want: []string{"a"}},
		"without a body":       {method: "HEAD", first: "HTTP/1.1 200 OK\r\n\r\n", want: []string{"a"}},
		"in chunks":            {method: "GET", first: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", want: []string{"a"}},
		"refused":              {method: "POST", body: "b", dead: true, want: []string{"a connect", "b"}},
		"reset":                {method: "GET", want: []string{"a reset", "b"}},
		"reset, not again":     {method: "POST", body: "b", want: []string{"a reset"}},
		"503":                  {method: "GET", first: "HTTP/1.1 503 X\r\nContent-Length: 1\r\n\r\nx", want: []string{"a status", "b"}},
		"503, not again":       {method: "POST", body: "b", first: "HTTP/1.1 503 X\r\nContent-Length: 1\r\n\r\nx", want: []string{"a status"}},
		"malformed":            {method: "GET", first: "hello\r\n\r\n", want: []string{"a malformed", "b"}},
		"cut":                  {method: "GET", first: cut, want: []string{"a reset"}},
		"large":                {method: "PUT", body: strings.Repeat("b", 100_000), first: okAnswer, want: []string{"a"}},
		"large, refused":       {method: "PUT", body: strings.Repeat("b", 100_000), dead: true, want: []string{"a connect", "b"}},
		"large, reset":         {method: "PUT", body: strings.Repeat("b", 100_000), want: []string{"a reset"}},
		"large, cut":           {method: "PUT", body: strings.Repeat("b", 100_000), first: cut, want: []string{"a reset"}},
		"HTTP/2":               {method: "PUT", body: "b", h2: true, want: []string{"a"}},
		"HTTP/2, refused":      {method: "PUT", body: "b", h2: true, dead: true, want: []string{"a connect", "b"}},
		"a request that isn't": {method: "GE T", want: []string{"a request"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
				if req, err := http.ReadRequest(r); err == nil {
					_, _ = io.Copy(io.Discard, req.Body)
					_, _ = io.WriteString(c, tc.first)
				}
			}).URL
			second := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) { answerAll(c, r, okAnswer) }).URL
			if tc.h2 {
				first = serveHTTP(t, h2c, echo).URL
				second = serveHTTP(t, h2c, echo).URL
			}
			if tc.dead {
				first = deadURL(t)
			}
			p, d := dispatched(t, Options{H2: tc.h2}, first, second)
			req := newRequest(t, http.MethodGet, "/", tc.body)
			req.Method = tc.method
			req = req.WithContext(WithClass(req.Context(), "dynamic"))
			s := do(p, req)
			d.closes(tc.want...)
			a := s.a
			if a.Limit != time.Second || a.Entered.IsZero() || a.Placed.Before(a.Queued) || a.Queued.Before(a.Entered) {
				t.Errorf("attempt %+v", a)
			}
			if len(tc.want) == 2 && (d.asked[1] != "a" || !d.at[1].Equal(d.at[0])) {
				t.Errorf("asked for %q at %v", d.asked, d.at)
			}
		})
	}
}

// A change of protocol keeps its place until it ends, and says nothing of an answer.
func TestAnUpgradeKeepsItsPlace(t *testing.T) {
	t.Parallel()
	s := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello")
			_, _ = io.Copy(io.Discard, r)
		}
	})
	p, d := dispatched(t, Options{}, s.URL)
	req := newRequest(t, "GET", "/", "")
	req.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"x"}}
	resp, a, err := p.Do(req, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if d.open != 1 {
		t.Errorf("%d places are held", d.open)
	}
	_ = resp.Body.Close()
	d.closes("a")
	if a.Awaited != 0 {
		t.Errorf("attempt %+v", a)
	}
}

// What is waited for a place counts as wait, and what the body is waited for is known.
func TestWhatIsWaitedFor(t *testing.T) {
	t.Parallel()
	manual := clock.NewManual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	body := make(chan struct{})
	held := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		manual.Advance(20 * time.Millisecond)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
		<-body
		manual.Advance(50 * time.Millisecond)
		_, _ = io.WriteString(c, "hello")
	})
	p, d := dispatched(t, Options{Clock: manual}, held.URL)
	d.admit = func(*http.Request, Arrival) (string, error) {
		manual.Advance(300 * time.Millisecond)
		return "a", nil
	}
	resp, a, err := p.Do(newRequest(t, "GET", "/", ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	close(body)
	_, _ = io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	d.closes("a")
	ms := func(from, to time.Time) int64 { return to.Sub(from).Milliseconds() }
	if ms(a.Queued, a.Placed) != 300 || ms(a.Queued, a.Connected) != 300 || ms(a.Connected, a.FirstByte) != 20 || a.Awaited.Milliseconds() > 50 || a.Limit != 0 {
		t.Errorf("attempt %+v", a)
	}
}

// Errors of the dispatcher are ours; nothing is sent, and nothing tried again.
func TestRefusedPlaces(t *testing.T) {
	t.Parallel()
	s := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) { answerAll(c, r, okAnswer) })
	for name, tc := range map[string]struct {
		refuses error
		want    error
		reason  string
	}{
		"busy":      {&BusyError{Wait: 3 * time.Second}, ErrBusy, ReasonBusy},
		"no server": {fmt.Errorf("none: %w", ErrNoServer), ErrNoServer, ReasonNoServer},
		"other":     {errAny, ErrNoServer, ReasonNoServer},
	} {
		p, d := dispatched(t, Options{}, s.URL)
		d.admit = func(*http.Request, Arrival) (string, error) { return "", tc.refuses }
		got := do(p, newRequest(t, "GET", "/", ""))
		if !errors.Is(got.err, tc.want) || !errors.Is(got.err, tc.refuses) || got.a.Reason != tc.reason || got.a.Server != "" || len(got.failed) != 0 {
			t.Errorf("%s: %v", name, got)
		}
		if got.a.Placed.IsZero() || got.a.Done.IsZero() || len(d.asked) != 1 {
			t.Errorf("%s: attempt %+v, asked %d times", name, got.a, len(d.asked))
		}
		d.closes()
	}
	if s.count() != 0 {
		t.Errorf("%d connections were made", s.count())
	}
}

// Who cancels while a place is waited for, or an answer, is out of both.
func TestCancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	s, _ := silent(t, "")
	p, d := dispatched(t, Options{}, s.URL)
	for _, waits := range []bool{true, false} {
		ctx, cancel := context.WithCancelCause(t.Context())
		d.admit = func(req *http.Request, _ Arrival) (string, error) {
			cancel(errAny)
			if waits {
				<-req.Context().Done()
				return "", context.Cause(req.Context())
			}
			return "a", nil
		}
		got := do(p, newRequest(t, "GET", "/", "").WithContext(ctx))
		if !errors.Is(got.err, errAny) || got.a.Reason != ReasonCancelled {
			t.Errorf("%v", got)
		}
	}
	d.closes("a cancelled")
}

// An answer that nobody wants gives its place back.
func TestAbandonedPlace(t *testing.T) {
	t.Parallel()
	s := serveRaw(t, func(_ int, c net.Conn, r *bufio.Reader) {
		answerAll(c, r, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nx")
	})
	p, d := dispatched(t, Options{}, s.URL)
	resp, _, err := p.Do(newRequest(t, "GET", "/", ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	_ = resp.Body.Close()
	d.closes("a abandoned")
}

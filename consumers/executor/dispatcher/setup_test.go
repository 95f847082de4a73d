package dispatcher

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"penstock/infra/clock"
	"penstock/schemas/control"
	"penstock/schemas/event"
)

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a site under a clock of its own.
type world struct {
	*Site
	t     testing.TB
	clock *clock.Manual
	// answers are those that have their answer, in its order.
	answers chan *asked
}

// zoneOf is a zone of servers by name.
func zoneOf(name string, servers ...string) Zone {
	z := Zone{Name: name}
	for _, s := range servers {
		z.Servers = append(z.Servers, Server{Name: s})
	}
	return z
}

// begin makes a site whose servers take one request each by default.
func begin(t testing.TB, change func(*Options), zones ...Zone) *world {
	t.Helper()
	w := &world{t: t, clock: clock.NewManual(began), answers: make(chan *asked, 1000)}
	o := Options{
		Site: "here", Zones: zones, InService: 1, Clock: w.clock, Policy: "ll",
		Classes: []Class{{Name: "dynamic", Limit: 500 * time.Millisecond, Penalty: 2, Dynamic: true}, {Name: "static", Limit: time.Second, Penalty: 1}},
	}
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Site = s
	return w
}

// waiter is a context that tells when somebody begins to wait for its end.
type waiter struct {
	context.Context
	once  sync.Once
	waits chan struct{}
}

func (w *waiter) Done() <-chan struct{} {
	w.once.Do(func() { close(w.waits) })
	return w.Context.Done()
}

// asked is a request that asked for a place.
type asked struct {
	w      *world
	cancel context.CancelFunc
	done   chan struct{}
	ticket *Ticket
	err    error
}

// ask asks for a place and returns once it is had, refused or waited for.
func (w *world) ask(f Facts) *asked {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &waiter{Context: ctx, waits: make(chan struct{})}
	a := &asked{w: w, cancel: cancel, done: make(chan struct{})}
	go func() {
		a.ticket, a.err = w.Admit(c, f)
		w.answers <- a
		close(a.done)
	}()
	w.t.Cleanup(func() {
		cancel()
		<-a.done
	})
	select {
	case <-c.waits:
	case <-a.done:
	}
	return a
}

// waits reports whether it has no answer yet.
func (a *asked) waits() bool {
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// at waits for the place and returns its server.
func (a *asked) at() string {
	a.w.t.Helper()
	a.await()
	if a.err != nil {
		a.w.t.Fatal(a.err)
	}
	return a.ticket.Server()
}

func (a *asked) await() {
	a.w.t.Helper()
	select {
	case <-a.done:
	case <-time.After(20 * time.Second):
		a.w.t.Fatal("a request has no answer")
	}
}

// served ends it well after its server took a time.
func (a *asked) served(d time.Duration) {
	a.w.t.Helper()
	a.at()
	a.ticket.Done(Result{OK: true, Service: d, Answer: 1000})
}

// next is who gets an answer next.
func (w *world) next() *asked {
	w.t.Helper()
	select {
	case a := <-w.answers:
		return a
	case <-time.After(20 * time.Second):
		w.t.Fatal("no request has an answer")
		return nil
	}
}

// has is the queued and in service of each server.
func (w *world) has() string {
	out := ""
	w.Loads(func(_, server string, in, queued int, _ float64) {
		if in+queued > 0 {
			out += fmt.Sprintf("%s:%d+%d ", server, in, queued)
		}
	})
	return out
}

func (w *world) expect(want string) {
	w.t.Helper()
	if got := w.has(); got != want {
		w.t.Fatalf("in service and queued are %q, expected %q", got, want)
	}
}

// table is one of servers that are off, with weights.
func table(off []string, weights map[string]float64, on ...string) *control.ServersTable {
	return &control.ServersTable{On: on, Off: off, ZoneWeights: weights}
}

// gauges collects gauges.
type gauges struct {
	mu   sync.Mutex
	all  []event.Gauge
	more chan struct{}
}

func (g *gauges) Gauge(one *event.Gauge) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, *one)
	select {
	case g.more <- struct{}{}:
	default:
	}
}

// shares is Shares that a test changes.
type shares struct {
	mu sync.Mutex
	m  map[string]int
	fn func()
}

func (s *shares) Share(server string, m int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.m[server]; ok {
		return n
	}
	return m
}

func (s *shares) Watch(fn func()) { s.fn = fn }

func (s *shares) set(server string, n int) {
	s.mu.Lock()
	s.m[server] = n
	s.mu.Unlock()
	s.fn()
}

package dispatching

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/dispatcher"
	"penstock/producers/entry"
	"penstock/producers/entry/upstream"
	"penstock/schemas/event"
)

// machine is a server whose requests take a time, and that counts how many it has.
type machine struct {
	*httptest.Server
	name  string
	takes atomic.Int64 // ns
	gate  atomic.Pointer[chan struct{}]

	in, most, done atomic.Int64
}

func start(t testing.TB, takes time.Duration) *machine {
	t.Helper()
	m := &machine{}
	m.takes.Store(int64(takes))
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	m.name = strings.TrimPrefix(m.URL, "http://")
	t.Cleanup(m.Close)
	return m
}

// hold has requests wait until the channel is closed.
func (m *machine) hold() chan struct{} {
	c := make(chan struct{})
	m.gate.Store(&c)
	return c
}

func (m *machine) serve(w http.ResponseWriter, r *http.Request) {
	n := m.in.Add(1)
	defer m.in.Add(-1)
	for most := m.most.Load(); n > most && !m.most.CompareAndSwap(most, n); most = m.most.Load() {
	}
	if c := m.gate.Load(); c != nil {
		select {
		case <-*c:
		case <-r.Context().Done():
		}
	}
	timer := time.NewTimer(time.Duration(m.takes.Load())) // the work
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
	m.done.Add(1)
	_, _ = w.Write([]byte(m.name))
}

// rows collects what an entry point publishes.
type rows struct {
	mu   sync.Mutex
	all  []event.Request
	more chan struct{}
}

func (r *rows) Publish(q *event.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, *q)
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// await waits for n rows that are as wanted.
func (r *rows) await(t testing.TB, n int, want func(*event.Request) bool) (out []event.Request) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		r.mu.Lock()
		out = out[:0]
		for i := range r.all {
			if want(&r.all[i]) {
				out = append(out, r.all[i])
			}
		}
		r.mu.Unlock()
		if len(out) >= n {
			return out
		}
		select {
		case <-r.more:
		case <-late:
			t.Fatalf("%d rows of %d, all are %+v", len(out), n, r.all)
		}
	}
}

// point is an entry point with a dispatcher.
type point struct {
	*Dispatcher
	rows *rows
	pool *upstream.Pool
	url  string
}

// open starts an entry point in front of machines, all in one zone.
func open(t testing.TB, change func(*dispatcher.Options, *upstream.Options, *entry.Options), machines ...*machine) *point {
	t.Helper()
	p := &point{rows: &rows{more: make(chan struct{}, 1)}}
	z := dispatcher.Zone{Name: "z"}
	uo := upstream.Options{Name: "here", Logger: zerolog.Nop(), Health: upstream.Health{Failures: 1}}
	for _, m := range machines {
		z.Servers = append(z.Servers, dispatcher.Server{Name: m.name})
		uo.Servers = append(uo.Servers, upstream.Server{Name: m.name, URL: m.URL})
	}
	do := dispatcher.Options{
		Site: "here", Zones: []dispatcher.Zone{z}, Classes: []dispatcher.Class{{Name: "dynamic", Limit: 100 * time.Millisecond, Penalty: 1, Dynamic: true}},
	}
	eo := entry.Options{
		Listen: "127.0.0.1:0", Site: "here", Sites: []entry.Site{{Name: "here"}}, Component: "web", Publisher: p.rows, H2C: true,
		Class: []entry.ClassRule{{Path: "/**", Class: "dynamic"}}, HashKey: []byte("a key of tests"),
	}
	if change != nil {
		change(&do, &uo, &eo)
	}
	var err error
	if p.Dispatcher, err = New(do); err != nil {
		t.Fatal(err)
	}
	uo.Dispatcher = p.Dispatcher
	if p.pool, err = upstream.New(uo); err != nil {
		t.Fatal(err)
	}
	if err := p.Bind(p.pool, uo.Servers); err != nil {
		t.Fatal(err)
	}
	eo.Local = p.pool
	e, err := entry.New(eo)
	if err != nil {
		t.Fatal(err)
	}
	p.url = "http://" + e.Addr().String()
	runs(t, e.Run, p.pool.Run, p.Site().Run)
	return p
}

// runs has parts run until the test ends.
func runs(t testing.TB, parts ...func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, run := range parts {
		all.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
}

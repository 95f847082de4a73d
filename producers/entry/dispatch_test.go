package entry_test

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"penstock/infra/clock"
	"penstock/infra/shares"
	"penstock/producers/entry"
	"penstock/producers/entry/upstream"
	"penstock/schemas/event"
)

// desk is a dispatcher that gives every request the first server, after a wait, or
// refuses it.
type desk struct {
	limit   time.Duration
	wait    func(ctx context.Context) error
	refuses error

	mu      sync.Mutex
	servers []string
	classes []string
	held    atomic.Int64
}

func (d *desk) Servers(names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.servers = append([]string(nil), names...)
}

func (d *desk) Limit(*http.Request) time.Duration { return d.limit }

func (d *desk) Admit(r *http.Request, _ upstream.Arrival) (upstream.Admission, error) {
	d.mu.Lock()
	d.classes = append(d.classes, upstream.ClassOf(r.Context()))
	d.mu.Unlock()
	if d.refuses != nil {
		return nil, d.refuses
	}
	if d.wait != nil {
		if err := d.wait(r.Context()); err != nil {
			return nil, err
		}
	}
	d.held.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	return &seat{d, d.servers[0]}, nil
}

// seat is a place.
type seat struct {
	d    *desk
	name string
}

func (s *seat) Server() string         { return s.name }
func (s *seat) Done(*upstream.Attempt) { s.d.held.Add(-1) }

// behindDesk is a pool of one server, with a desk.
func behindDesk(t testing.TB, d *desk, c clock.Clock, url string) *upstream.Pool {
	t.Helper()
	p, err := upstream.New(upstream.Options{Name: "a", Servers: []upstream.Server{{Name: "a-1", URL: url}}, Dispatcher: d, Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Where too many wait the answer says when to come again, in whole seconds.
func TestBusyAnswers(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{
		0: "1", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", 90 * time.Second: "90", 100 * time.Hour: "3600", -1: "1",
	} {
		d := &desk{refuses: &upstream.BusyError{Wait: wait}}
		p := run(t, nil, func(o *entry.Options) {
			o.Local = behindDesk(t, d, nil, "http://127.0.0.1:1")
			o.Class = []entry.ClassRule{{Path: "/slow/**", Class: "dynamic"}}
		})
		got := get(t, p.url+"/slow/x")
		if got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") != want || len(got.Header["Retry-After"]) != 1 {
			t.Errorf("%v: got %d, %v, expected %s", wait, got.StatusCode, got.Header, want)
		}
		row := p.rows.await(t, 1)[0]
		if row.Status != 503 || row.Overdue != event.NullInt || row.ToServer != "" || row.Class != "dynamic" || row.ToComponent != "web" || row.Wait < 0 {
			t.Errorf("%v: row %+v", wait, row)
		}
		if len(d.classes) != 1 || d.classes[0] != "dynamic" {
			t.Errorf("the dispatcher was told the classes %q", d.classes)
		}
	}
}

// The wait for a place is a wait, and what a response is late by is told from when its
// server was first asked for.
func TestOverdueRows(t *testing.T) {
	t.Parallel()
	manual := clock.NewManual(time.Date(2026, 5, 17, 10, 0, 0, 0, time.UTC))
	url := service(t, func(w http.ResponseWriter, r *http.Request) {
		manual.Advance(200 * time.Millisecond)
		w.WriteHeader(statusOf(r))
	})
	for _, test := range []struct {
		limit   time.Duration
		status  string
		overdue int64 // ms; less than 0: unknown
	}{
		{limit: 0, overdue: -1},
		{limit: time.Hour, overdue: 0},
		{limit: 500 * time.Millisecond, overdue: 0},
		{limit: 499 * time.Millisecond, overdue: 1},
		{limit: 100 * time.Millisecond, overdue: 400},
		{limit: 100 * time.Millisecond, status: "500", overdue: 400},
	} {
		d := &desk{limit: test.limit, wait: func(context.Context) error { manual.Advance(300 * time.Millisecond); return nil }}
		p := run(t, nil, func(o *entry.Options) { o.Local, o.Clock = behindDesk(t, d, manual, url), manual })
		get(t, p.url+"/x", "X-Status", test.status)
		row := p.rows.await(t, 1)[0]
		if row.Wait != 300_000 || row.Service+row.Network > 200_000 {
			t.Errorf("row %+v", row)
		}
		if want := max(test.overdue*1000, -1); row.Overdue != want && (want >= 0 || row.Overdue != event.NullInt) {
			t.Errorf("limit %v: overdue by %d, expected %d", test.limit, row.Overdue, want)
		}
		if d.held.Load() != 0 {
			t.Errorf("%d places are held", d.held.Load())
		}
	}
}

func statusOf(r *http.Request) int {
	if n, err := strconv.Atoi(r.Header.Get("X-Status")); err == nil {
		return n
	}
	return http.StatusOK
}

// A client that leaves while its request waits has a row of how long it waited.
func TestLeavingTheQueue(t *testing.T) {
	t.Parallel()
	for _, limit := range []time.Duration{time.Nanosecond, time.Hour} {
		ctx, cancel := context.WithCancel(t.Context())
		d := &desk{limit: limit, wait: func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		p := run(t, nil, func(o *entry.Options) { o.Local = behindDesk(t, d, nil, "http://127.0.0.1:1") })
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/x", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := client(t).Do(r); err == nil {
			_ = resp.Body.Close()
			t.Errorf("status %d", resp.StatusCode)
		}
		row := p.rows.await(t, 1)[0]
		if row.Status != 499 || row.Wait <= 0 || row.ToServer != "" || (row.Overdue > 0) != (limit == time.Nanosecond) || row.Overdue <= 0 && row.Overdue != event.NullInt {
			t.Errorf("limit %v: row %+v", limit, row)
		}
	}
}

// What a peer's dispatcher says of the limit counts for the row of the entry point that
// forwarded the request; services and clients don't see it.
func TestOverdueOfAForwardedRequest(t *testing.T) {
	t.Parallel()
	m := newMesh(t, []string{"a", "b"}, func(site string, o *entry.Options) {
		if site == "b" {
			d := &desk{limit: time.Microsecond}
			o.Components[1].Local = behindDesk(t, d, nil, service(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Server-Timing", "app;dur=0.01") }))
		}
	})
	a := m.sites["a"]
	a.put(t, sharesTo("b"))
	got := get(t, a.internal+"/x", "Penstock-To", "cart", "Penstock-Component", "web")
	if got.StatusCode != http.StatusOK || got.Header.Get("Server-Timing") != "app;dur=0.01" {
		t.Errorf("got %d, %v", got.StatusCode, got.Header)
	}
	row := a.rows.await(t, 1)[0]
	if row.ToSite != "b" || row.Overdue <= 0 || row.ToServer != "a-1" || row.Overdue < row.Service {
		t.Errorf("row %+v", row)
	}
}

// sharesTo is a table by which all calls of web for cart go to one site.
func sharesTo(site string) shares.Table {
	return shares.Table{From: "web", Epoch: 1, Rows: []shares.Row{{FromSite: "a", To: "cart", Ratios: ratios(site, 1.0)}}}
}

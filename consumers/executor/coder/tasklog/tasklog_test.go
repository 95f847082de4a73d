package tasklog_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"penstock/consumers/executor/coder/queue"
	"penstock/consumers/executor/coder/tasklog"
	"penstock/infra/clock"
	"penstock/schemas/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink keeps what it is told.
type sink struct {
	mu     sync.Mutex
	rows   []event.Request
	gauges chan event.Gauge
}

func (s *sink) Publish(r *event.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = append(s.rows, *r)
}

func (s *sink) Gauge(g *event.Gauge) { s.gauges <- *g }

var start = time.UnixMicro(1_700_000_000_000_000)

func newLog(t testing.TB, p tasklog.Publisher, c clock.Clock, state func() queue.State) *tasklog.Log {
	t.Helper()
	l, err := tasklog.New(tasklog.Options{Coder: "objects", Site: "us-east", Publisher: p, Clock: c, State: state})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// want is a row of the log with what is in none but this.
func want(op event.Op, bytes int64, wait, service int64, f func(*event.Request)) event.Request {
	r := event.NewRequest(start.UnixMicro())
	r.Op, r.Bytes, r.Wait, r.Service = op, bytes, wait, service
	r.ToComponent, r.ToSite = "objects", "us-east"
	f(&r)
	return r
}

func TestRows(t *testing.T) {
	task := queue.Record{
		Op: queue.Read, Store: "east-1", Bytes: 500_000, N: 12, K: 6, Wait: 3 * time.Millisecond,
		Started: start.Add(-time.Minute), Took: 40 * time.Millisecond, Held: time.Minute, Outcome: queue.OutcomeCancelled,
	}
	repair := queue.Record{Op: queue.Write, Background: true, Store: "east-2", Bytes: 7, N: 1, K: 1, Outcome: queue.OutcomeFailed, Err: errors.New("gone")}
	beyond := task
	beyond.N = 256
	for _, c := range []struct {
		name string
		log  func(*tasklog.Log)
		want event.Request
		fits bool
	}{
		{"a task", func(l *tasklog.Log) { l.Task(task) }, want(event.Read, 500_000, 3000, 40_000, func(r *event.Request) {
			r.ToServer, r.Outcome, r.N, r.K = "east-1", "cancelled", 12, 6
		}), true},
		{"a repair", func(l *tasklog.Log) { l.Task(repair) }, want(event.Write, 7, 0, 0, func(r *event.Request) {
			r.ToServer, r.Outcome, r.Class = "east-2", "failed", "background"
		}), true},
		{"a code that no row holds", func(l *tasklog.Log) { l.Task(beyond) }, want(event.Read, -1, 3000, 40_000, func(r *event.Request) {
			r.ToServer, r.Outcome, r.K = "east-1", "cancelled", 6
		}), false},
		{"a client's request", func(l *tasklog.Log) {
			l.Request(tasklog.Request{Op: queue.Write, Bytes: 3_000_000, Wait: time.Millisecond, Service: time.Second, Status: 503})
		}, want(event.Write, 3_000_000, 1000, 1_000_000, func(r *event.Request) { r.Status = 503 }), true},
	} {
		s := new(sink)
		c.log(newLog(t, s, clock.NewManual(start), nil))
		if len(s.rows) != 1 {
			t.Fatalf("%s: %d rows", c.name, len(s.rows))
		}
		got := s.rows[0]
		if (got.Check() == nil) != c.fits {
			t.Errorf("%s: %v", c.name, got.Check())
		}
		var a, b event.Requests // NaN is not itself
		a.Append(&got)
		b.Append(&c.want)
		x, y := a.Row(0), b.Row(0)
		x.Lat, x.Lon, y.Lat, y.Lon = 0, 0, 0, 0
		if x != y {
			t.Errorf("%s: got %+v\nexpected %+v", c.name, x, y)
		}
	}
}

func TestGaugesOnceASecond(t *testing.T) {
	clk := clock.NewManual(start)
	s := &sink{gauges: make(chan event.Gauge)}
	backlog := 0
	l := newLog(t, s, clk, func() queue.State {
		backlog += 5
		return queue.State{Backlog: backlog, Alive: 2, Queued: 9, BackgroundBacklog: 99}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()
	for i := int64(1); i <= 3; i++ {
		if err := clk.Await(ctx, 1); err != nil {
			t.Fatal(err)
		}
		clk.Advance(time.Second)
		g := <-s.gauges
		if g.Check() != nil || g.Site != "us-east" || g.Server != "objects" || g.Backlog != 5*i || g.InService != 2 || g.Queued != event.NullInt ||
			g.Time != start.Add(time.Duration(i)*time.Second).UnixMicro() {
			t.Errorf("gauge %d: %+v", i, g)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	// Without a queue it only waits.
	if err := newLog(t, s, clk, nil).Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []tasklog.Options{{Site: "a", Publisher: new(sink)}, {Coder: "a", Publisher: new(sink)}, {Coder: "a", Site: "b"}} {
		if _, err := tasklog.New(o); !errors.Is(err, tasklog.ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// nowhere forgets rows.
type nowhere struct{}

func (nowhere) Publish(*event.Request) {}
func (nowhere) Gauge(*event.Gauge)     {}

func TestARowAllocatesNothing(t *testing.T) {
	l := newLog(t, nowhere{}, clock.System(), nil)
	task := queue.Record{Store: "east-1", Bytes: 500_000, N: 12, K: 6, Outcome: queue.OutcomeDone}
	log := func() {
		l.Task(task)
		l.Request(tasklog.Request{Bytes: 1, Status: 200})
	}
	log()
	// Under the race detector a pool forgets at random, on purpose.
	if n := testing.AllocsPerRun(1000, log); n > 0 && !raced {
		t.Errorf("%v allocations a row", n)
	}
}

func BenchmarkTask(b *testing.B) {
	l := newLog(b, nowhere{}, clock.System(), nil)
	task := queue.Record{Store: "east-1", Bytes: 500_000, N: 12, K: 6, Outcome: queue.OutcomeDone}
	b.ReportAllocs()
	for b.Loop() {
		l.Task(task)
	}
}

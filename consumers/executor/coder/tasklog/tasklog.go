package tasklog

import (
	"context"
	"fmt"
	"sync"
	"time"

	"penstock/consumers/executor/coder/queue"
	"penstock/infra/clock"
	"penstock/schemas/event"
)

// Publisher takes rows and gauges, as publisher.Publisher does: it neither waits nor
// keeps them.
type Publisher interface {
	Publish(*event.Request)
	Gauge(*event.Gauge)
}

// Background is the class of tasks that no client waits for.
const Background = "background"

// gaugeEvery is how often the queue is looked at (DESIGN §3.1).
const gaugeEvery = time.Second

// Options of a log.
type Options struct {
	// Coder is its name, Site where it runs.
	Coder, Site string
	Publisher   Publisher
	// Clock is that of the queue. Defaults to the machine's.
	Clock clock.Clock
	// State tells how the queue stands; nil: there are no gauges.
	State func() queue.State
}

// Log makes rows. It is safe for concurrent use.
type Log struct {
	o    Options
	rows sync.Pool // of *event.Request: one on the stack would escape
}

// New returns a log.
func New(o Options) (*Log, error) {
	if o.Coder == "" || o.Site == "" || o.Publisher == nil {
		return nil, fmt.Errorf("coder %q, site %q: expected both, and a publisher: %w", o.Coder, o.Site, ErrOptions)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	l := &Log{o: o}
	l.rows.New = func() any { return new(event.Request) }
	return l, nil
}

// Run logs how the queue stands once a second, until the context ends.
func (l *Log) Run(ctx context.Context) error {
	if l.o.State == nil {
		<-ctx.Done()
		return nil
	}
	tick := l.o.Clock.NewTicker(gaugeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
		s := l.o.State()
		g := event.NewGauge(l.o.Clock.Now().UnixMicro())
		g.Site, g.Server = l.o.Site, l.o.Coder
		g.Backlog, g.InService = int64(s.Backlog), int64(s.Alive)
		l.o.Publisher.Gauge(&g)
	}
}

// Task logs a task that ran: it is queue.Options.Observe.
func (l *Log) Task(t queue.Record) {
	r := l.row(opOf(t.Op), t.Bytes, t.Wait, t.Took)
	r.ToServer, r.Outcome = t.Store, string(t.Outcome)
	if t.Background {
		r.Class = Background
	} else {
		r.N, r.K = chunks(t.N), chunks(t.K)
		if r.N == 0 || r.K == 0 {
			r.Bytes = -1 // no row can hold it: the publisher counts it as invalid
		}
	}
	l.publish(r)
}

// Request is a request of a client that has come to its end.
type Request struct {
	Op    queue.Op
	Bytes int64 // of its body, or of the answer's
	// Wait is until its first task had a connection, Service from then to its end.
	Wait, Service time.Duration
	Status        int // HTTP
}

// Request logs a request of a client.
func (l *Log) Request(q Request) {
	r := l.row(opOf(q.Op), q.Bytes, q.Wait, q.Service)
	r.Status = int32(q.Status)
	l.publish(r)
}

// row is a row of the coder, with what both sorts have.
func (l *Log) row(op event.Op, bytes int64, wait, service time.Duration) *event.Request {
	r := l.rows.Get().(*event.Request)
	*r = event.NewRequest(l.o.Clock.Now().UnixMicro())
	r.Op, r.Bytes = op, bytes
	r.ToComponent, r.ToSite = l.o.Coder, l.o.Site
	r.Wait, r.Service = wait.Microseconds(), service.Microseconds()
	return r
}

func (l *Log) publish(r *event.Request) {
	l.o.Publisher.Publish(r)
	l.rows.Put(r)
}

func opOf(op queue.Op) event.Op {
	if op == queue.Write {
		return event.Write
	}
	return event.Read
}

// chunks is a number of chunks as a row has it; 0 if it cannot.
func chunks(n int) uint8 {
	if n < 1 || n > 255 {
		return 0
	}
	return uint8(n)
}

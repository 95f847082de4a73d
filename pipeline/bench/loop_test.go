package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/aggregator"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/publisher"
	"penstock/schemas/event"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

const partitions = 8

// took is what something took, of the clock and of the processors.
type took struct {
	wall, cpu time.Duration
	work      float64 // rows or messages
}

// measure times f; the processor time is the whole process's.
func measure(work int, f func()) took {
	runtime.GC()
	before, began := cpuTime(), time.Now()
	f()
	return took{time.Since(began), cpuTime() - before, float64(work)}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it has no reason to fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// rate is work a second of wall time.
func (t took) rate() float64 { return t.work / t.wall.Seconds() }

// idle is what two cores would do a second if they did nothing else.
func (t took) idle() float64 { return 2 * t.work / t.cpu.Seconds() }

func (t took) note() string {
	return fmt.Sprintf("%.3f µs of processor a row: at most %s on two idle cores", t.cpu.Seconds()*1e6/t.work, figure(t.idle(), "rows/s"))
}

// loop is an embedded bus with both groups of aggregators on all partitions.
type loop struct {
	t      testing.TB
	bus    *bus.Bus
	events *bus.Client

	mu      sync.Mutex
	covered map[string]uint64
	changed chan struct{}
}

// openBus opens a bus as a replay does.
func openBus(t testing.TB, sync bus.Sync) *bus.Bus {
	t.Helper()
	return bustest.Start(t, func(o *bus.Options) { o.Sync, o.Purpose, o.Partitions = sync, bus.Replay, partitions })
}

// start runs the aggregators until the returned function is called.
func start(t testing.TB, b *bus.Bus) (l *loop, stop func()) {
	t.Helper()
	l = &loop{t: t, bus: b, covered: map[string]uint64{}, changed: make(chan struct{}, 1)}
	l.events = bustest.Client(t, b)
	ctx, cancel := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	for _, g := range groups() {
		a, err := aggregator.New(aggregator.Options{
			Client: bustest.Client(t, b), Group: g, Advice: aggregator.Always{}, Covered: l.cover, Purpose: bus.Replay, Logger: zerolog.Nop(),
		})
		if err != nil {
			t.Fatal(err)
		}
		tasks.Go(func() {
			if err := a.Run(ctx); err != nil {
				t.Errorf("aggregator of %s: %v", g, err)
			}
		})
	}
	l.await(0) // all have claimed
	return l, sync.OnceFunc(func() {
		cancel()
		tasks.Wait()
	})
}

func groups() (out []string) {
	for _, g := range window.Groups {
		if len(window.Of(g)) > 0 {
			out = append(out, g)
		}
	}
	return out
}

// cover is told of stored commits.
func (l *loop) cover(group string, partition int, seq uint64) {
	l.mu.Lock()
	l.covered[fmt.Sprint(group, partition)] = seq
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default: // whoever waits looks at all of them
	}
}

// await waits until commits of all groups and partitions cover a sequence.
func (l *loop) await(seq uint64) {
	l.t.Helper()
	deadline := time.After(5 * time.Minute)
	for !l.all(seq) {
		select {
		case <-l.changed:
		case <-deadline:
			l.t.Fatalf("no commit covers %d of EVENTS after 5 minutes", seq)
		}
	}
}

func (l *loop) all(seq uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, c := range l.covered {
		if c >= seq {
			n++
		}
	}
	return n == len(groups())*partitions
}

// publish sends rows through a publisher and ends the run; barriers lie between
// the hours if every is set. It returns the bytes that were sent.
func (l *loop) publish(s *rows, every time.Duration) uint64 {
	ctx := context.Background()
	p, err := publisher.New(ctx, publisher.Options{Client: l.events, Entry: "bench", Run: "bench", Logger: zerolog.Nop()})
	if err != nil {
		l.t.Fatal(err)
	}
	var r event.Request
	until := int64(0)
	for i := range s.list {
		s.fill(&r, i)
		if every > 0 && r.Time >= until {
			if i > 0 {
				l.ok(p.Barrier(ctx, until))
			}
			until = window.Start(r.Time, every) + every.Microseconds()
		}
		p.Horizon(r.Time)
		if err := p.Send(ctx, &r); err != nil {
			l.t.Fatal(err)
		}
	}
	l.ok(p.End(ctx, window.Widths{}.End(s.last(), 0)))
	bytes := p.Stats().Bytes
	l.ok(p.Close(ctx))
	return bytes
}

func (l *loop) ok(err error) {
	if err != nil {
		l.t.Fatal(err)
	}
}

// aggregated publishes rows and waits until they are aggregated and committed.
func (l *loop) aggregated(s *rows, every time.Duration) (m took, bytes uint64) {
	m = measure(len(s.list), func() {
		bytes = l.publish(s, every)
		st, err := l.events.State(context.Background(), subject.EventsStream)
		l.ok(err)
		l.await(st.LastSeq)
	})
	l.check(len(s.list))
	return m, bytes
}

// check adds the accounts of all commits: a figure of rows that were not all
// counted would say nothing.
func (l *loop) check(want int) {
	l.t.Helper()
	for _, g := range groups() {
		var sum window.Account
		for p := range partitions {
			m, err := l.events.Last(context.Background(), subject.WindowsStream, subject.Windows(g, p))
			l.ok(err)
			c, err := window.CommitOf(m.Header, m.Data)
			l.ok(err)
			sum.Add(c.Total)
		}
		if sum.Counted != int64(want) || sum.Received != sum.Counted {
			l.t.Errorf("group %s counted %+v, expected %d rows", g, sum, want)
		}
	}
}

// messages returns what is on EVENTS.
func (l *loop) messages() []bus.Msg {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	st, err := l.events.State(ctx, subject.EventsStream)
	l.ok(err)
	in, err := l.events.Read(ctx, subject.EventsStream, nil, 1)
	l.ok(err)
	defer in.Close()
	return bustest.Take(l.t, in, int(st.Msgs))
}

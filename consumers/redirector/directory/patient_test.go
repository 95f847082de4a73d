package directory

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock"
	"penstock/infra/testserver"
)

// TestABusThatComesLater: a directory that starts before its bus knows nothing and
// is not ready, or knows what the snapshot says and is; then it follows the bus.
func TestABusThatComesLater(t *testing.T) {
	address := testserver.FreeAddress(t)
	patient, err := bus.Open(t.Context(), bus.Options{URL: "nats://" + address, Patient: true, Logger: zerolog.Nop(), Prefix: "P"})
	ok(t, err)
	t.Cleanup(func() { ok(t, patient.Close()) })
	file := filepath.Join(t.TempDir(), "directory")
	w := &world{t: t}
	w.run(Options{Client: bustest.Client(t, patient), Snapshot: file})
	select {
	case <-w.d.Ready():
		t.Error("ready without anything")
	default:
	}
	if _, connected := w.d.Freshness(); connected {
		t.Error("connected to nothing")
	}
	w.bus = bustest.Start(t, prefixed, func(o *bus.Options) { o.Listen = address })
	w.c = bustest.Client(t, w.bus)
	w.kv, err = locations.Open(context.Background(), w.c)
	ok(t, err)
	w.set("x", at("a", 1))
	w.follows("an entry")
	w.stop()

	w.bus.Suspend()
	again, err := bus.Open(t.Context(), bus.Options{URL: "nats://" + address, Patient: true, Logger: zerolog.Nop(), Prefix: "P"})
	ok(t, err)
	t.Cleanup(func() { ok(t, again.Close()) })
	w.run(Options{Client: bustest.Client(t, again), Snapshot: file})
	ready(t, w.d)
	if site, _, known := w.d.Locate("x"); site != "a" || !known {
		t.Error("the snapshot is not used")
	}
	if since, connected := w.d.Freshness(); connected || since == 0 {
		t.Errorf("%v old, connected %v", since, connected)
	}
	ok(t, w.bus.Resume())
	w.set("x", at("b", 2))
	w.follows("a change afterwards")
}

// lines is what was logged.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), what)
}

// TestAnOutageIsSaidOnce: while the bus is away, the log says so once for each time,
// and nothing of what the attempts fail with.
func TestAnOutageIsSaidOnce(t *testing.T) {
	const away, again = "the bus is away", "begins again"
	var log lines
	clk := counted{Clock: clock.System()}
	w := begin(t, Options{Logger: zerolog.New(&log), Clock: &clk})
	w.set("x", at("a", 1))
	w.follows("an entry")
	for round := 1; round <= 2; round++ {
		w.bus.Suspend()
		tried := clk.sleeps.Load()
		eventually(t, "some attempts", func() bool { return clk.sleeps.Load() > tried+2 })
		if log.count(away) != round || log.count(again) > 0 || log.count("outbound buffer") > 0 {
			t.Errorf("round %d: %s", round, log.buf.String())
		}
		ok(t, w.bus.Resume())
		w.set("x", at("b", uint64(round+1)))
		w.follows("a change afterwards")
	}
}

// counted counts sleeps: one between two attempts.
type counted struct {
	clock.Clock
	sleeps atomic.Int64
}

func (c *counted) Sleep(ctx context.Context, d time.Duration) error {
	c.sleeps.Add(1)
	return c.Clock.Sleep(ctx, d)
}

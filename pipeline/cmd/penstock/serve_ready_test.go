package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock/stall"
)

// TestReadinessFollowsTheBus takes the bus away under a process that serves: it
// says so, stays healthy, is ready again when the bus is back, and goes on. It
// stops within its time also while the bus is away.
func TestReadinessFollowsTheBus(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Listen = 2, "127.0.0.1:0" })
	cfg := configure(t, dir, settings{2, 0.3})
	s := serve(t, "--nats", b.URL(), "--config", cfg, "--state", filepath.Join(dir, "state"))
	w := gather(t, bustest.Client(t, b), 6)
	w.decision(w.send("east"))

	b.Suspend()
	body := s.awaitReady(false)
	if !strings.Contains(body, `"part":"bus"`) || !strings.Contains(body, "what is in force goes on") {
		t.Errorf("not ready: %s", body)
	}
	if code, body := s.get("/healthz"); code != 200 {
		t.Errorf("a process without a bus is not to be restarted: %d %s", code, body)
	}
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	s.awaitReady(true)
	if d := w.decision(w.send("west")); moves(d) != 6 {
		t.Errorf("after the outage: %d moves", moves(d))
	}
	settledRows(t, w)
	if total := checkAudit(t, w.c); total.Received-total.Duplicate != w.rows || total.Counted != w.rows {
		t.Errorf("account %+v, sent %d", total, w.rows)
	}

	b.Suspend()
	s.awaitReady(false)
	began, meter := time.Now(), stall.Start(t.Context())
	s.stop()
	if took := time.Since(began); took > 5*time.Second+meter.Total() {
		t.Errorf("stopped after %s without a bus", took)
	}
}

// TestStopWhileStarting tells a process to stop as soon as it has opened its bus,
// wherever it is by then.
func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"--config", configure(t, dir, settings{2, 0.3}), "--state", filepath.Join(dir, "state")}
	for _, delay := range []time.Duration{0, 10 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond} {
		s := launch(t, args...)
		eventually(t, "the bus to be open", func() bool { return strings.Contains(s.errs.String(), "bus is open") })
		time.Sleep(delay) // The moment of the stop is what is tried.
		s.stop()
	}
	serve(t, args...).stop()
}

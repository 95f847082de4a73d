package aggregator

import (
	"context"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// TestWaitingTellsTheTruth follows what an aggregator says of itself: before it
// runs, while it works, while the bus is away, and when it works again.
func TestWaitingTellsTheTruth(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 2 })
	c := bustest.Client(t, b)
	a, err := New(Options{Client: bustest.Client(t, b), Group: window.Owners, FlushEvery: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Waiting(); !strings.Contains(got, "partition 0: has not begun; partition 1: has not begun") {
		t.Errorf("before the start: %q", got)
	}
	run, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(run) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	until := func(what string, ok func(string) bool) {
		t.Helper()
		for deadline := time.Now().Add(bustest.Timeout); !ok(a.Waiting()); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: still %q", what, a.Waiting())
			}
		}
	}
	works := func(s string) bool { return s == "" }
	until("at work", works)
	publish(t, c, mark(event.Barrier, "R", hour, 0, 0))
	outputs(t, c, window.Owners, 0, watermarkAt(hour))
	b.Suspend()
	until("the bus is away", func(s string) bool { return strings.Contains(s, "reader") || strings.Contains(s, "not answered") })
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	until("at work again", works)
}

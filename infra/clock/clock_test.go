package clock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"penstock/infra/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2015, 5, 17, 10, 0, 0, 0, time.UTC)

// TestManualFiresInOrder arms timers in another order than they fall due; each
// fires at its instant, equal instants in the order of arming.
func TestManualFiresInOrder(t *testing.T) {
	t.Parallel()
	m := clock.NewManual(start)
	late, early, first, second := m.NewTimer(30*time.Second), m.NewTimer(10*time.Second),
		m.NewTimer(20*time.Second), m.NewTimer(20*time.Second)
	ticker := m.NewTicker(15 * time.Second)
	m.Advance(5 * time.Second)
	for name, c := range map[string]<-chan time.Time{"late": late.C(), "early": early.C(), "ticker": ticker.C()} {
		if len(c) != 0 {
			t.Errorf("%s fired too soon", name)
		}
	}
	m.Advance(24 * time.Second)
	for name, tc := range map[string]struct {
		c  <-chan time.Time
		at time.Duration
	}{
		"early": {early.C(), 10 * time.Second}, "first": {first.C(), 20 * time.Second},
		"second": {second.C(), 20 * time.Second}, "ticker": {ticker.C(), 15 * time.Second},
	} {
		select {
		case got := <-tc.c:
			if got != start.Add(tc.at) {
				t.Errorf("%s fired at %v", name, got.Sub(start))
			}
		default:
			t.Errorf("%s did not fire", name)
		}
	}
	if len(late.C()) != 0 || m.Now() != start.Add(29*time.Second) {
		t.Errorf("at %v, late fired: %v", m.Now(), len(late.C()))
	}
	// One tick a receiver, as with time.Ticker; then on from the schedule.
	m.Advance(61 * time.Second)
	if got := <-ticker.C(); got != start.Add(30*time.Second) || len(ticker.C()) != 0 {
		t.Errorf("tick at %v, %d more", got.Sub(start), len(ticker.C()))
	}
	if m.Waiting() != 1 {
		t.Errorf("%d are armed, want the ticker", m.Waiting())
	}
	ticker.Stop()
	if m.Waiting() != 0 {
		t.Error("a stopped ticker is armed")
	}
}

// TestTimersAtAnInstant: what falls due between a look at the clock and the arming of a
// timer is not put off by it.
func TestTimersAtAnInstant(t *testing.T) {
	t.Parallel()
	m := clock.NewManual(start)
	due := m.Now().Add(10 * time.Second)
	m.Advance(4 * time.Second)
	timer := m.NewTimerAt(due)
	m.Advance(5 * time.Second)
	if len(timer.C()) != 0 {
		t.Error("fired too soon")
	}
	m.Advance(time.Second)
	if len(timer.C()) != 1 {
		t.Fatal("did not fire at its instant")
	}
	if timer.ResetAt(due) || len(timer.C()) != 1 || m.Waiting() != 0 {
		t.Error("an instant that has passed does not fire at once, and once")
	}
	if got := <-timer.C(); got != due {
		t.Errorf("fired for %v", got.Sub(start))
	}
	if timer.ResetAt(due.Add(time.Hour)); !timer.Stop() || m.Waiting() != 0 {
		t.Error("a stopped timer is armed")
	}
	system := clock.System().NewTimerAt(clock.System().Now().Add(-time.Hour))
	<-system.C()
	system.ResetAt(clock.System().Now())
	<-system.C()
}

func TestManualTimers(t *testing.T) {
	t.Parallel()
	m := clock.NewManual(start)
	timer := m.NewTimer(0)
	if at := <-timer.C(); at != start {
		t.Errorf("a timer of nothing fired at %v", at)
	}
	if timer.Stop() || timer.Reset(time.Second) {
		t.Error("a timer that had fired was armed")
	}
	m.Advance(time.Second)
	if timer.Reset(time.Minute) || len(timer.C()) != 0 {
		t.Error("Reset left an old value to be received")
	}
	if !timer.Stop() || timer.Stop() {
		t.Error("Stop does not tell whether the timer was armed")
	}
	ticker := m.NewTicker(time.Minute)
	ticker.Reset(time.Second)
	m.Advance(time.Second)
	if at := <-ticker.C(); at != start.Add(2*time.Second) {
		t.Errorf("tick at %v", at.Sub(start))
	}
}

func TestManualSleep(t *testing.T) {
	t.Parallel()
	m := clock.NewManual(start)
	woken := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { woken <- m.Sleep(t.Context(), time.Minute) }()
	go func() {
		err := m.Sleep(ctx, time.Hour)
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		woken <- err
	}()
	if err := m.Await(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	m.Advance(time.Minute)
	if err := <-woken; err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-woken; err != nil {
		t.Error(err)
	}
	if err := m.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("sleep in an ended context: %v", err)
	}
	if err := m.Sleep(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if err := m.Await(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("await in an ended context: %v", err)
	}
}

// TestSystem runs in a bubble whose time is the test's own.
func TestSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.System()
		from := c.Now()
		if err := c.Sleep(t.Context(), time.Second); err != nil {
			t.Error(err)
		}
		timer, ticker := c.NewTimer(time.Second), c.NewTicker(time.Minute)
		defer ticker.Stop()
		<-timer.C()
		<-ticker.C()
		ticker.Reset(time.Hour)
		<-ticker.C()
		if got := fmt.Sprint(c.Now().Sub(from)); got != "1h1m1s" {
			t.Errorf("%s passed", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("sleep: %v", err)
		}
		if err := c.Sleep(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("sleep in an ended context: %v", err)
		}
		if c.Sleep(t.Context(), -1) != nil {
			t.Error("a sleep of less than nothing")
		}
	})
}

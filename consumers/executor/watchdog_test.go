package executor

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/clock"
)

// stuck is a source that has commands and delivers none, until it was rebound as
// often as it takes.
type stuck struct {
	mu      sync.Mutex
	waiting uint64
	err     error
	rebinds []bool // hard
}

func (s *stuck) open(context.Context) error { return nil }

func (s *stuck) next() (message, error) { return nil, nil }

func (s *stuck) pending(context.Context) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting, s.err
}

func (s *stuck) rebind(_ context.Context, hard bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rebinds = append(s.rebinds, hard)
	return nil
}

func (s *stuck) set(waiting uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting, s.err = waiting, err
}

// TestWatchdog: commands that are pending and not delivered make the executor not
// ready and are subscribed to anew, the third time with a new consumer; a quiet
// stream and a busy executor are left alone (PROBLEMS P22).
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		src := &stuck{}
		x := &Executor{
			o:   Options{Clock: now, Stall: time.Second, Workers: 1, Metrics: NoMetrics{}, Logger: zerolog.Nop()},
			src: src,
		}
		x.ready.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { x.watch(ctx) })
		seen := 0
		// turn lets the watchdog look once, and sees whether it has rebound.
		turn := func(rebinds bool) {
			t.Helper()
			synctest.Wait() // until it waits for the clock
			now.Advance(time.Second)
			synctest.Wait()
			src.mu.Lock()
			defer src.mu.Unlock()
			if rebound := len(src.rebinds) > seen; rebound != rebinds {
				t.Errorf("subscribed anew: %v, expected %v", rebound, rebinds)
			}
			seen = len(src.rebinds)
		}
		turn(false)
		src.set(3, nil)
		for range 4 {
			turn(true)
		}
		if x.Ready() {
			t.Error("ready while nothing is delivered")
		}
		x.deliveries.Add(1)
		turn(false)
		if !x.Ready() {
			t.Error("not ready although a command came")
		}
		x.busy.Store(1)
		turn(false)
		x.busy.Store(0)
		src.set(0, errors.New("no answer"))
		turn(true)
		cancel()
		wg.Wait()
		want := []bool{false, false, true, false, false}
		for i, hard := range src.rebinds {
			if hard != want[i] {
				t.Errorf("rebinds %v, want %v", src.rebinds, want)
				break
			}
		}
	})
}

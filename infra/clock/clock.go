// Package clock is the only place that asks the machine for the time or waits
// for it to pass. Everything that needs either is handed a [Clock]; a test in
// this package fails on time.Now and its kin anywhere else.
//
// [System] is the machine's clock. [Manual] is one that tests move by hand: it
// fires timers and tickers in the order of their instants, and lets a test wait
// until the code under test is waiting, so that no test sleeps.
//
// Wall time only paces things (flush every second, retry after 100 ms). What a
// window holds goes by the events' own times and never by a Clock.
package clock

import (
	"context"
	"time"
)

// Clock tells the time and waits for it. Implementations are safe for
// concurrent use.
type Clock interface {
	// Now is the current time.
	Now() time.Time
	// NewTicker fires every d, which must be positive. A receiver that is too
	// slow misses ticks; they do not queue up.
	NewTicker(d time.Duration) Ticker
	// NewTimer fires once after d.
	NewTimer(d time.Duration) Timer
	// NewTimerAt fires once at an instant, at once if that has passed. Whoever has an
	// instant says it here: a length that was reckoned from an earlier Now is too long by
	// what has passed since.
	NewTimerAt(at time.Time) Timer
	// Sleep returns nil after d, or the context's error as soon as it ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// Ticker is a time.Ticker behind an interface.
type Ticker interface {
	C() <-chan time.Time
	Reset(d time.Duration)
	Stop()
}

// Timer is a time.Timer behind an interface. As with time.Timer of today, no
// stale value is received after Stop or Reset.
type Timer interface {
	C() <-chan time.Time
	Reset(d time.Duration) bool
	// ResetAt is Reset with an instant, as in NewTimerAt.
	ResetAt(at time.Time) bool
	Stop() bool
}

// System returns the machine's clock.
func System() Clock { return system{} }

type system struct{}

func (system) Now() time.Time { return time.Now() }

func (system) NewTicker(d time.Duration) Ticker { return systemTicker{time.NewTicker(d)} }

func (system) NewTimer(d time.Duration) Timer { return systemTimer{time.NewTimer(d)} }

func (system) NewTimerAt(at time.Time) Timer { return systemTimer{time.NewTimer(time.Until(at))} }

func (system) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type systemTicker struct{ *time.Ticker }

func (t systemTicker) C() <-chan time.Time { return t.Ticker.C }

type systemTimer struct{ *time.Timer }

func (t systemTimer) C() <-chan time.Time { return t.Timer.C }

func (t systemTimer) ResetAt(at time.Time) bool { return t.Timer.Reset(time.Until(at)) }

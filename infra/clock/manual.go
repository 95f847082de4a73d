package clock

import (
	"context"
	"sync"
	"time"
)

// Manual is a clock that stands still until a test moves it. The zero value is
// not usable: call [NewManual].
type Manual struct {
	mu      sync.Mutex
	changed *sync.Cond
	now     time.Time
	made    uint64
	alarms  map[*alarm]struct{}
}

// NewManual returns a clock that stands at t.
func NewManual(t time.Time) *Manual {
	m := &Manual{now: t, alarms: map[*alarm]struct{}{}}
	m.changed = sync.NewCond(&m.mu)
	return m
}

// alarm is one armed timer, ticker or sleeper.
type alarm struct {
	clock  *Manual
	when   time.Time
	number uint64 // order among equal instants: who was armed first fires first
	every  time.Duration
	ch     chan time.Time
}

// Now is the time to which the clock was last moved.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Advance moves the clock by d and fires what falls due on the way, in the
// order of instants; at each of them Now is that instant. It does not wait for
// the receivers.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	end := m.now.Add(d)
	for {
		a := m.next(end)
		if a == nil {
			break
		}
		m.now = a.when
		m.fire(a)
	}
	m.now = end
	m.changed.Broadcast()
}

// Await returns when at least n timers, tickers and sleepers are armed, or with
// the context's error.
func (m *Manual) Await(ctx context.Context, n int) error {
	stop := context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.changed.Broadcast()
	})
	defer stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.alarms) < n {
		if err := ctx.Err(); err != nil {
			return err
		}
		m.changed.Wait()
	}
	return nil
}

// Waiting is the number of timers, tickers and sleepers that are armed.
func (m *Manual) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.alarms)
}

// NewTicker implements Clock.
func (m *Manual) NewTicker(d time.Duration) Ticker {
	if d <= 0 {
		panic("clock: ticker of no length")
	}
	return manualTicker{m.arm(d, d)}
}

// NewTimer implements Clock.
func (m *Manual) NewTimer(d time.Duration) Timer { return manualTimer{m.arm(d, 0)} }

// NewTimerAt implements Clock.
func (m *Manual) NewTimerAt(at time.Time) Timer {
	a := &alarm{clock: m, ch: make(chan time.Time, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(a, at)
	return manualTimer{a}
}

// Sleep implements Clock.
func (m *Manual) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d <= 0 {
		return nil
	}
	a := m.arm(d, 0)
	defer a.stop()
	select {
	case <-a.ch:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *Manual) arm(d, every time.Duration) *alarm {
	a := &alarm{clock: m, every: every, ch: make(chan time.Time, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(a, m.now.Add(d))
	return a
}

// set arms a; one that is already due fires at once. The lock is held.
func (m *Manual) set(a *alarm, at time.Time) {
	m.made++
	a.number, a.when = m.made, at
	m.alarms[a] = struct{}{}
	if !at.After(m.now) {
		m.fire(a)
	}
	m.changed.Broadcast()
}

// next is the alarm that is due first, none after end. The lock is held.
func (m *Manual) next(end time.Time) *alarm {
	var first *alarm
	for a := range m.alarms {
		if a.when.After(end) {
			continue
		}
		if first == nil || a.when.Before(first.when) || a.when.Equal(first.when) && a.number < first.number {
			first = a
		}
	}
	return first
}

// fire delivers the alarm and re-arms a ticker. The lock is held.
func (m *Manual) fire(a *alarm) {
	select {
	case a.ch <- a.when:
	default: // as a time.Ticker does, drop the tick of a slow receiver
	}
	if a.every > 0 {
		m.made++
		a.number, a.when = m.made, a.when.Add(a.every)
		return
	}
	delete(m.alarms, a)
}

func (a *alarm) stop() bool {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	return a.disarm()
}

// disarm takes the alarm and a value not yet received away; the lock is held.
func (a *alarm) disarm() bool {
	_, was := a.clock.alarms[a]
	delete(a.clock.alarms, a)
	select {
	case <-a.ch:
	default:
	}
	return was
}

func (a *alarm) reset(d, every time.Duration) bool {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	was := a.disarm()
	a.every = every
	a.clock.set(a, a.clock.now.Add(d))
	return was
}

func (a *alarm) resetAt(at time.Time) bool {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	was := a.disarm()
	a.clock.set(a, at)
	return was
}

type manualTicker struct{ a *alarm }

func (t manualTicker) C() <-chan time.Time   { return t.a.ch }
func (t manualTicker) Reset(d time.Duration) { t.a.reset(d, d) }
func (t manualTicker) Stop()                 { t.a.stop() }

type manualTimer struct{ a *alarm }

func (t manualTimer) C() <-chan time.Time        { return t.a.ch }
func (t manualTimer) Reset(d time.Duration) bool { return t.a.reset(d, 0) }
func (t manualTimer) ResetAt(at time.Time) bool  { return t.a.resetAt(at) }
func (t manualTimer) Stop() bool                 { return t.a.stop() }

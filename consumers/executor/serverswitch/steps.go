package serverswitch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// begin notes that a step is begun, before it is: if the journal takes it, with all that
// could not be kept before. A step that can't be noted waits for a pause. What is wanted is
// looked at again under the lock: a later table may have come since the step was planned.
func (w *Switch) begin(s *site, u *unit, planned step, edit func(m *memo, now time.Time)) bool {
	w.mu.Lock()
	now := w.o.Clock.Now()
	if next, _ := s.plan(u, now, w.o.Every); next != planned {
		w.mu.Unlock()
		return false
	}
	before := *u.memo
	edit(u.memo, now)
	w.edited(s, u, &before)
	change := w.latest
	w.mu.Unlock()
	if w.keep(change) == nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	*u.memo = before
	u.look = now.Add(w.o.Pause)
	s.settle(false)
	return false
}

// end notes what has become of a step. If that can't be kept it will be done again after
// a crash.
func (w *Switch) end(s *site, u *unit, edit func(m *memo, now time.Time)) {
	w.mu.Lock()
	before := *u.memo
	edit(u.memo, w.o.Clock.Now())
	change := w.edited(s, u, &before)
	w.mu.Unlock()
	_ = w.keep(change)
}

// edited sees what a change of a server's memo comes to; 0 for none. The lock is held.
func (w *Switch) edited(s *site, u *unit, before *memo) (change uint64) {
	s.settle(false)
	if *u.memo == *before {
		return 0
	}
	return w.changed()
}

// fail counts a failure; the next try is due after a pause that grows. The phase stays.
func (w *Switch) fail(m *memo, err error, now time.Time) {
	pause := w.o.Pause
	for range min(m.Tries, 30) {
		pause = min(2*pause, w.o.MostPause)
	}
	m.Tries++
	m.Fault, m.Next = faultText(err), now.Add(pause)
}

// turn calls the hook that turns a server on or off.
func (w *Switch) turn(hooks context.Context, s *site, u *unit, planned step) {
	phase, what := Starting, "on"
	if planned == stop {
		phase, what = Stopping, "off"
	}
	o := Order{Server: u.Server, On: planned == start, Up: func() []string { return w.names(s.up) }, Wanted: func() []string { return w.names(s.wanted) }}
	begun := w.begin(s, u, planned, func(m *memo, now time.Time) {
		if m.Phase != phase {
			m.enter(phase, now)
		}
		o.Epoch = s.epoch()
		o.Key = fmt.Sprintf("%s/%s/%s/%d", s.name, u.Name, what, m.Since.UnixMicro())
	})
	if begun {
		w.order(hooks, s, u, what, o)
	}
}

// names asks a site for names, under the lock.
func (w *Switch) names(of func() []string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return of()
}

func (w *Switch) order(hooks context.Context, s *site, u *unit, what string, o Order) {
	err := w.call(hooks, func(ctx context.Context) error { return u.Backend.Switch(ctx, o) })
	if err != nil && hooks.Err() != nil {
		return // Cut off by the end: it is called again after the next start.
	}
	later := errors.Is(err, ErrLater)
	switch {
	case later:
	case err != nil:
		w.trouble(what, u, err)
	default:
		w.o.Metrics.Count(Switched, what+"/"+u.Backend.Name(), 1)
		w.o.Logger.Info().Str("site", s.name).Str("server", u.Name).Uint64("epoch", o.Epoch).Msg("server switched " + what)
	}
	w.end(s, u, func(m *memo, now time.Time) {
		switch {
		case later:
			u.look = now.Add(w.o.Look)
		case err != nil:
			w.fail(m, err, now)
		case o.On:
			tries, fault := m.Tries, m.Fault
			m.enter(Warming, now)
			m.Tries, m.Fault, m.Until = tries, fault, now.Add(w.o.ReadyWithin)
		default:
			cut := m.Cut
			m.enter(Off, now)
			m.Cut = cut
		}
		u.seen = now
	})
}

// warm asks whether a server that was turned on takes requests.
func (w *Switch) warm(ctx context.Context, s *site, u *unit) {
	err := w.call(ctx, func(ctx context.Context) error { return w.o.Ready(ctx, u.Server) })
	if ctx.Err() != nil {
		return
	}
	w.end(s, u, func(m *memo, now time.Time) {
		switch {
		case err == nil:
			m.enter(On, now)
			u.seen, u.proven = now, true
		case now.Before(m.Until):
			u.look = now.Add(w.o.Look)
		default:
			w.o.Metrics.Count(Late, u.Backend.Name(), 1)
			tries := m.Tries
			m.enter(Starting, now) // under another key: the hook is to do something
			m.Tries = tries
			w.fail(m, fmt.Errorf("%w in %v: %w", errNotReady, w.o.ReadyWithin, err), now)
		}
	})
}

// drain begins a drain.
func (w *Switch) drain(s *site, u *unit) {
	w.begin(s, u, drain, func(m *memo, now time.Time) {
		unsure := m.Phase != On && m.Phase != Warming
		m.enter(Draining, now)
		m.Unsure, m.Until = unsure, now.Add(w.o.Drain)
		u.detail = ""
	})
}

// wait looks whether a server is drained, and stops it if it is, or at the deadline.
func (w *Switch) wait(ctx context.Context, s *site, u *unit) {
	w.mu.Lock()
	epoch := s.epoch()
	w.mu.Unlock()
	drained, left := w.drained(ctx, s, u, epoch)
	if ctx.Err() != nil {
		return
	}
	ended := w.begin(s, u, wait, func(m *memo, now time.Time) {
		u.detail = left
		if s.epoch() != epoch || !drained && now.Before(m.Until) {
			u.look = now.Add(w.o.Look)
			return
		}
		m.enter(Stopping, now)
		if !drained {
			m.Cut = left
		}
	})
	if !ended {
		return
	}
	w.mu.Lock()
	cut := u.memo.Phase == Stopping && u.memo.Cut != ""
	w.mu.Unlock()
	if cut {
		w.o.Metrics.Count(Cut, u.Backend.Name(), 1)
		w.o.Logger.Warn().Str("site", s.name).Str("server", u.Name).Str("left", left).Msg("a server is stopped at the deadline of its drain")
	}
}

// drained says whether nothing is queued or in service at a server, else what is left.
func (w *Switch) drained(ctx context.Context, s *site, u *unit, epoch uint64) (drained bool, left string) {
	running := 0
	d, gives := u.Backend.(Drainer)
	if gives {
		err := w.call(ctx, func(ctx context.Context) (err error) {
			if err = d.Drain(ctx, u.Server); err == nil { // Again each time: somebody may have taken it back.
				running, err = d.Running(ctx, u.Server)
			}
			return err
		})
		if err != nil {
			w.trouble("drain", u, err)
			return false, faultText(err)
		}
	}
	drained, left = w.o.Drained(s.name, u.Name, epoch)
	if drained && running > 0 {
		drained, left = false, fmt.Sprintf("%d requests at %s", running, u.Backend.Name())
	}
	if !drained && strings.TrimSpace(left) == "" {
		left = "requests are left"
	}
	return drained, bounded(left, mostFault)
}

// undrain has a server take requests again that was to be stopped.
func (w *Switch) undrain(ctx context.Context, s *site, u *unit) {
	d, gives := u.Backend.(Drainer)
	var err error
	if gives {
		err = w.call(ctx, func(ctx context.Context) error { return d.Undrain(ctx, u.Server) })
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		w.trouble("undrain", u, err)
	}
	w.end(s, u, func(m *memo, now time.Time) {
		if err != nil {
			w.fail(m, err, now)
			return
		}
		if m.Unsure {
			m.enter(Starting, now)
			return
		}
		m.enter(Warming, now)
		m.Until = now.Add(w.o.ReadyWithin)
	})
}

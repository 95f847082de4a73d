package serverswitch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"penstock/infra/lease"
	"penstock/schemas/control"
)

// Run brings servers to what is wanted until ctx ends. Then it begins nothing more, lets
// hooks in flight end within Grace, or ends them at once if its cause is lease.ErrLost, for
// another process may act in this one's place, and returns nil. It is called once, and ends
// before Close.
func (w *Switch) Run(ctx context.Context) error {
	w.mu.Lock()
	twice := w.begun
	w.begun = true
	w.mu.Unlock()
	if twice {
		return fmt.Errorf("expected one Run: %w", ErrOptions)
	}
	hooks, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	var loops, grace sync.WaitGroup
	for _, name := range w.siteNames() {
		s := w.sites[name]
		loops.Go(func() { w.watch(ctx, s) })
		for _, u := range s.units {
			loops.Go(func() { w.serve(ctx, hooks, s, u) })
		}
	}
	ended := make(chan struct{})
	grace.Go(func() {
		select {
		case <-ctx.Done():
		case <-ended:
		}
		close(w.stopping)
		if errors.Is(context.Cause(ctx), lease.ErrLost) {
			cut()
		}
		t := w.o.Clock.NewTimer(w.o.Grace)
		defer t.Stop()
		select {
		case <-t.C():
			cut()
		case <-ended:
		}
	})
	loops.Wait()
	close(ended)
	grace.Wait()
	return nil
}

// watch ends a site's table at its ttl, and tells when one that was answered failed has
// come to what it wants after all, or one that was answered done has a server that failed
// since.
func (w *Switch) watch(ctx context.Context, s *site) {
	for ctx.Err() == nil {
		w.mu.Lock()
		p, now, changed := s.page, w.o.Clock.Now(), s.changed
		if p.Epoch > 0 && !p.Lapsed && !now.Before(p.Until) {
			change := w.lapse(s)
			w.mu.Unlock()
			_ = w.keep(change) // else it lapses again after a restart
			continue
		}
		var wake time.Time
		if p.Epoch > 0 && !p.Lapsed {
			wake = p.Until
		}
		other := !p.Lapsed && w.answer != nil
		if v := s.judge(); other && v.settled && p.Answered == otherwise(v) {
			o := control.Outcome{
				Scope: s.name, Epoch: p.Epoch, Target: control.SwitchTarget, Status: control.Done, Reason: v.reason, Failed: v.failed,
				TookUS: max(0, now.Sub(p.Began).Microseconds()),
			}
			if len(v.failed) > 0 {
				o.Status = control.Failed
			}
			answer := w.answer
			w.mu.Unlock()
			if answer(ctx, o) == nil {
				w.answered(s, &o)
				continue
			}
			w.mu.Lock()
			wake = now.Add(w.o.Every) // its executor has ended; there will be another
		}
		w.mu.Unlock()
		w.rest(ctx, changed, wake, now)
	}
}

// otherwise is what a table may have been answered that now stands otherwise.
func otherwise(v verdict) control.Status {
	if len(v.failed) > 0 {
		return control.Done
	}
	return control.Failed
}

// lapse has the default take the place of a table. The lock is held.
func (w *Switch) lapse(s *site) (change uint64) {
	s.page.Lapsed = true
	w.o.Metrics.Count(Lapsed, "", 1)
	w.o.Logger.Warn().Str("site", s.name).Uint64("epoch", s.page.Epoch).Str("then", string(w.o.Expired)).Msg("the ttl of the table of servers is over")
	s.decide()
	s.settle(true)
	return w.changed()
}

// rest waits for a signal, or until an instant unless that is zero.
func (w *Switch) rest(ctx context.Context, signal <-chan struct{}, until, now time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		if least := now.Add(time.Millisecond); until.Before(least) {
			until = least
		}
		t := w.o.Clock.NewTimerAt(until)
		defer t.Stop()
		due = t.C()
	}
	select {
	case <-signal:
	case <-due:
	case <-ctx.Done():
	}
}

// serve brings one server to what is wanted, a step at a time, until ctx ends. hooks goes
// on for the grace after that.
func (w *Switch) serve(ctx, hooks context.Context, s *site, u *unit) {
	for ctx.Err() == nil {
		w.mu.Lock()
		now := w.o.Clock.Now()
		next, again := s.plan(u, now, w.o.Every)
		w.mu.Unlock()
		switch next {
		case rest:
			w.rest(ctx, u.kick, again, now)
		case ask:
			w.ask(ctx, s, u)
		case start, stop:
			w.turn(hooks, s, u, next)
		case warm:
			w.warm(ctx, s, u)
		case drain:
			w.drain(s, u)
		case wait:
			w.wait(ctx, s, u)
		case undrain:
			w.undrain(ctx, s, u)
		}
	}
}

// call calls a backend within Timeout.
func (w *Switch) call(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, w.o.Timeout, errors.New("it took too long"))
	defer cancel()
	err := f(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}

// silences is after how many looks in a row at which it was not ready a server that was on
// counts as off, where its backend can't tell.
const silences = 2

// ask asks what a server is, and believes it. Its readiness is asked besides where its
// backend can't tell, of one of which nothing is known, and of one that is on, which may
// have died; and of each that is to be on once a table has come, before it is a reason to
// stop others.
func (w *Switch) ask(ctx context.Context, s *site, u *unit) {
	power := Unseen
	err := w.call(ctx, func(ctx context.Context) (err error) {
		power, err = u.Backend.Observe(ctx, u.Server)
		return err
	})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		power = Unseen
		w.trouble("observe", u, err)
	}
	w.mu.Lock()
	phase, prove, epoch := u.memo.Phase, s.unproven(u), s.page.Epoch
	w.mu.Unlock()
	running, silent := false, false
	if prove && power != PowerOff || power == Unseen && (phase == Unknown || phase == On) {
		err := w.call(ctx, func(ctx context.Context) error { return w.o.Ready(ctx, u.Server) })
		if ctx.Err() != nil {
			return
		}
		running = err == nil
		silent = w.silent(u, phase, err)
	} else {
		u.silent = 0
	}
	w.end(s, u, func(m *memo, now time.Time) {
		before := m.Phase
		u.asked, u.seen, u.power = true, now, power
		switch {
		case silent && power == PowerOn:
			m.enter(Warming, now)
			m.Until = now.Add(w.o.ReadyWithin)
		case silent:
			u.power = PowerOff
			w.saw(u, PowerOff, false, now)
		default:
			w.saw(u, power, running, now)
		}
		if running && s.page.Epoch == epoch {
			u.proven = true
		} else if prove && m.Phase == On || s.mute(u) {
			u.look = now.Add(w.o.Pause)
		}
		drifted := before != m.Phase && (before == On || before == Off)
		if drifted {
			w.o.Metrics.Count(Drifted, u.power.String(), 1)
			w.o.Logger.Warn().Str("site", s.name).Str("server", u.Name).Stringer("power", u.power).Msg("a server is other than it was left")
		}
	})
}

// silent counts looks at which a server that was on was not ready, and says whether they are
// enough to believe it.
func (w *Switch) silent(u *unit, phase Phase, err error) bool {
	if err == nil || phase != On {
		u.silent = 0
		return false
	}
	if u.silent++; u.silent < silences {
		return false
	}
	u.silent = 0
	w.o.Logger.Warn().Err(err).Str("site", u.Site).Str("server", u.Name).Msg("a server that was on is not ready any more")
	return true
}

// saw brings a server's phase to what it was found to be.
func (w *Switch) saw(u *unit, power Power, running bool, now time.Time) {
	m := u.memo
	switch {
	case power == PowerOff && m.Phase != Starting && m.Phase != Off:
		cut := m.Cut // of a server that was being stopped when the process was
		m.enter(Off, now)
		m.Cut = cut
	case power == PowerOn && (m.Phase == Unknown || m.Phase == Off || m.Phase == Starting):
		m.enter(Warming, now)
		m.Until = now.Add(w.o.ReadyWithin)
	case running && m.Phase == Unknown:
		m.enter(On, now)
	}
}

// trouble counts a backend's failure.
func (w *Switch) trouble(what string, u *unit, err error) {
	w.o.Metrics.Count(Hooks, what+"/"+u.Backend.Name(), 1)
	w.o.Logger.Warn().Err(err).Str("site", u.Site).Str("server", u.Name).Str("backend", u.Backend.Name()).Msg("server switch: " + what + " has failed")
}

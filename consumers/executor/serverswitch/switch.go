package serverswitch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"penstock/consumers/executor"
	"penstock/schemas/control"
)

// Switch is the executor's target of kind servers. It is safe for concurrent use.
type Switch struct {
	o        Options
	journal  *journal
	stopping chan struct{} // closed when Run is being stopped

	mu     sync.Mutex // of all below, and of sites; never held while waiting
	book   *book
	latest uint64 // version of the book: one more with each change
	sites  map[string]*site
	answer executor.Answer // of the executor that has resumed last
	begun  bool
}

var _ executor.Target = (*Switch)(nil)

// New opens the state folder and returns a switch that has touched no server yet.
// ErrOptions, ErrInUse, ErrJournal.
func New(o Options) (*Switch, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	w := &Switch{o: o, stopping: make(chan struct{}), sites: map[string]*site{}}
	if w.journal, w.book, err = openJournal(o.Folder); err != nil {
		return nil, err
	}
	for _, v := range o.Servers {
		if err := w.add(v); err != nil {
			return nil, errors.Join(err, w.journal.close())
		}
	}
	for _, s := range w.sites {
		for name := range s.page.Servers { // those of an earlier configuration
			if s.unitOf(name) == nil {
				delete(s.page.Servers, name)
			}
		}
		s.decide()
		s.settle(false)
	}
	return w, nil
}

// add takes a server in, with what the journal knows of it.
func (w *Switch) add(v Server) error {
	if v.Name == "" || v.Site == "" || v.Backend == nil {
		return fmt.Errorf("server %.80q of site %.80q: expected a name, a site and a backend: %w", v.Name, v.Site, ErrOptions)
	}
	s := w.sites[v.Site]
	if s == nil {
		s = &site{
			name: v.Site, page: w.book.Sites[v.Site], most: w.o.Tries, least: w.o.Least, expired: w.o.Expired, changed: make(chan struct{}),
		}
		if s.page == nil {
			s.page = &page{}
			w.book.Sites[v.Site] = s.page
		}
		if s.page.Servers == nil {
			s.page.Servers = map[string]*memo{}
		}
		w.sites[v.Site] = s
	}
	if s.unitOf(v.Name) != nil {
		return fmt.Errorf("server %.80q of site %.80q: expected each once: %w", v.Name, v.Site, ErrOptions)
	}
	m := s.page.Servers[v.Name]
	if m == nil || m.Phase == "" {
		m = &memo{Phase: Unknown}
		s.page.Servers[v.Name] = m
	}
	_, fixed := v.Backend.(None)
	s.units = append(s.units, &unit{Server: v, fixed: fixed, memo: m, kick: make(chan struct{}, 1)})
	return nil
}

// Close gives the state folder free. Run has ended, or was never called.
func (w *Switch) Close() error { return w.journal.close() }

// Kind is servers.
func (w *Switch) Kind() control.Kind { return control.Servers }

// changed numbers a change of the book, for keep. The lock is held.
func (w *Switch) changed() uint64 {
	w.latest++
	return w.latest
}

// keep returns once a change is in the journal on disk. The lock is not held. ErrJournal,
// with executor.ErrAgain.
func (w *Switch) keep(change uint64) error {
	err := w.journal.keep(change, func() (json.RawMessage, uint64, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		b, err := json.Marshal(w.book)
		return b, w.latest, err
	})
	if err != nil {
		w.o.Metrics.Count(Unkept, "", 1)
		w.o.Logger.Error().Err(err).Msg("the journal of the server switch can't be written: what it was for waits")
		return errors.Join(err, executor.ErrAgain)
	}
	return nil
}

// Resume takes up the last table of each site that the bus holds, if it is later than the
// journal's: another process may have had it, so that nothing that the journal says of
// the site's servers is certain. Before it has succeeded no server is stopped.
func (w *Switch) Resume(ctx context.Context, answer executor.Answer) error {
	last, until := map[string]*control.Command{}, map[string]time.Time{}
	err := w.o.History(ctx, func(c *control.Command, at time.Time) error {
		over, err := executor.Over(c, at)
		if err != nil || c.Mode != control.Act || c.Servers == nil {
			return err
		}
		last[c.Scope], until[c.Scope] = c, over
		return nil
	})
	if err != nil {
		return fmt.Errorf("tables of before: %w", err)
	}
	return w.keep(w.resume(last, until, answer))
}

func (w *Switch) resume(last map[string]*control.Command, until map[string]time.Time, answer executor.Answer) (change uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.o.Clock.Now()
	w.answer = answer
	for name, s := range w.sites {
		c := last[name]
		if c != nil && c.Epoch > s.page.Epoch && until[name].After(now) && s.check(c.Servers) == nil {
			change = w.adopt(s, c, until[name])
			if !s.resumed {
				s.doubt()
			}
		}
		s.resumed = true
		s.settle(true)
	}
	return change
}

// doubt has what servers are be found out again.
func (s *site) doubt() {
	for _, u := range s.units {
		if u.memo.Phase == On || u.memo.Phase == Off {
			*u.memo = memo{Phase: Unknown}
			u.asked = false
		}
	}
}

// check says whether a table can be followed. ErrUnknownServer.
func (s *site) check(t *control.ServersTable) error {
	for _, name := range slices.Concat(t.On, t.Off) {
		if s.unitOf(name) == nil {
			return fmt.Errorf("%.200q: %w", name, ErrUnknownServer)
		}
	}
	return nil
}

// adopt makes a table the wanted one. Nothing is done for it before it is in the journal:
// that is kept as a whole. The lock is held.
func (w *Switch) adopt(s *site, c *control.Command, until time.Time) (change uint64) {
	p := s.page
	p.Epoch, p.On, p.Off, p.Began, p.Until = c.Epoch, c.Servers.On, c.Servers.Off, w.o.Clock.Now(), until
	p.Lapsed, p.Answered = false, ""
	for _, u := range s.units {
		u.proven = false
		if u.memo.Phase == Off {
			u.memo.Cut = "" // it was said of an earlier table
		}
	}
	s.decide()
	s.settle(true)
	return w.changed()
}

// Apply makes a table wanted, waits until its servers are as it wants them, or have
// failed, and answers it; refused if a later one has come meanwhile. ErrStopped, and
// ErrJournal with executor.ErrAgain.
func (w *Switch) Apply(ctx context.Context, c *control.Command, answer executor.Answer) error {
	o := control.Outcome{Scope: c.Scope, Epoch: c.Epoch, Target: control.SwitchTarget}
	s, change, err := w.admit(ctx, c, &o)
	if err == nil {
		err = w.keep(change)
	}
	if err == nil && s != nil {
		err = w.await(ctx, s, &o)
	}
	if err != nil {
		return err
	}
	if err := answer(ctx, o); err != nil {
		return err
	}
	if s != nil {
		w.answered(s, &o)
	}
	return nil
}

// admit takes a command in. It returns the site whose table it has become, or was before;
// else its outcome is known.
func (w *Switch) admit(ctx context.Context, c *control.Command, o *control.Outcome) (s *site, change uint64, err error) {
	until, err := executor.OverBy(ctx, c, w.o.Clock)
	if err != nil {
		return nil, 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s = w.sites[c.Scope]
	switch {
	case s == nil:
		o.Status, o.Reason = control.Advised, control.NotConcerned
	case c.Servers == nil:
		o.Status, o.Reason = control.Failed, "a command without a table"
	case c.Epoch < s.page.Epoch:
		o.Status, o.Reason = control.Refused, olderEpoch
	case c.Epoch == s.page.Epoch && s.page.Answered == control.Done:
		o.Status = control.AlreadyApplied
	case c.Epoch == s.page.Epoch:
		return s, w.latest, nil // it may have come before and not have been kept
	case c.Epoch == s.refused:
		o.Status, o.Reason = control.Failed, s.fault
	default:
		if err := s.check(c.Servers); err != nil {
			s.refused, s.fault = c.Epoch, err.Error()
			o.Status, o.Reason = control.Failed, s.fault
			return nil, 0, nil
		}
		return s, w.adopt(s, c, until), nil
	}
	return nil, 0, nil
}

const olderEpoch = "older-epoch"

// await waits for the end of a table and makes its outcome.
func (w *Switch) await(ctx context.Context, s *site, o *control.Outcome) error {
	for {
		w.mu.Lock()
		later, lapsed, v, changed := s.page.Epoch != o.Epoch, s.page.Lapsed, s.judge(), s.changed
		took := w.o.Clock.Now().Sub(s.page.Began)
		w.mu.Unlock()
		o.TookUS = max(0, took.Microseconds())
		switch {
		case later:
			o.Status, o.Reason = control.Refused, olderEpoch
			return nil
		case lapsed:
			o.Status = control.Expired
			return nil
		case v.settled:
			o.Status, o.Reason, o.Failed = control.Done, v.reason, v.failed
			if len(v.failed) > 0 {
				o.Status = control.Failed
			}
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", ErrStopped, context.Cause(ctx))
		case <-w.stopping:
			return ErrStopped
		}
	}
}

// answered notes that a table's outcome is on the bus. That it isn't noted on disk only
// has it answered again, which the bus knows.
func (w *Switch) answered(s *site, o *control.Outcome) {
	w.mu.Lock()
	change := uint64(0)
	if s.page.Epoch == o.Epoch {
		s.page.Answered = o.Status
		change = w.changed()
		s.settle(false)
	}
	w.mu.Unlock()
	_ = w.keep(change)
}

// Decline answers a table without carrying it out.
func (w *Switch) Decline(ctx context.Context, c *control.Command, status control.Status, answer executor.Answer) error {
	o := control.Outcome{Scope: c.Scope, Epoch: c.Epoch, Target: control.SwitchTarget, Status: status}
	w.mu.Lock()
	if w.sites[c.Scope] == nil && status == control.Advised {
		o.Reason = control.NotConcerned
	}
	w.mu.Unlock()
	return answer(ctx, o)
}

// siteNames are sorted.
func (w *Switch) siteNames() []string { return slices.Sorted(maps.Keys(w.sites)) }

// faultText is an error on one line.
func faultText(err error) string {
	return bounded(strings.Join(strings.Fields(err.Error()), " "), mostFault)
}

package mover

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"penstock/consumers/executor"
	"penstock/infra/objectstore"
	"penstock/schemas/control"
)

// retryDelete is the pause after deletions that failed.
const retryDelete = 10 * time.Second

// Run deletes retired copies when they are due, until ctx ends. Deletions that
// fail are logged, counted and tried again.
func (m *Mover) Run(ctx context.Context) error {
	for {
		now := m.o.Clock.Now()
		m.journal.forget(now.Add(-m.o.KeepAnswers))
		due, next := m.journal.due(now, false)
		if _, err := m.deleteAll(ctx, due); err != nil && ctx.Err() == nil {
			m.o.Logger.Warn().Err(err).Msg("retired copies could not be deleted, trying again")
			next = now.Add(retryDelete)
		}
		if err := m.sleepUntil(ctx, next); err != nil {
			return nil //nolint:nilerr // The context has ended, which is how Run is stopped.
		}
	}
}

// sleepUntil waits for an instant (zero: none), or for a new deletion.
func (m *Mover) sleepUntil(ctx context.Context, next time.Time) error {
	var due <-chan time.Time
	if !next.IsZero() {
		t := m.o.Clock.NewTimerAt(next)
		defer t.Stop()
		due = t.C()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-due:
	case <-m.changed:
	}
	return nil
}

// Pending is how many retired copies wait for their deletion.
func (m *Mover) Pending() int {
	all, _ := m.journal.due(time.Time{}, true)
	return len(all)
}

// Purge deletes all retired copies now and returns how many it deleted. A replay
// calls it at its end. Copies that came to life again meanwhile are kept.
func (m *Mover) Purge(ctx context.Context) (int, error) {
	all, _ := m.journal.due(m.o.Clock.Now(), true)
	return m.deleteAll(ctx, all)
}

// deleteAll deletes copies, several at a time, and returns how many and all that
// went wrong.
func (m *Mover) deleteAll(ctx context.Context, copies []retirement) (int, error) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		n    int
		errs []error
	)
	slots := make(chan struct{}, m.o.Parallel)
	for _, e := range copies {
		if ctx.Err() != nil {
			break
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			gone, err := m.delete(ctx, &e)
			mu.Lock()
			defer mu.Unlock()
			if gone {
				n++
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("delete the copy of %.80q at %s: %w", e.owner, e.site, err))
				m.o.Metrics.Count(executor.Deletes, "failed", 1)
			}
		})
	}
	wg.Wait()
	return n, errors.Join(append(errs, ctx.Err())...)
}

// delete deletes one retired copy, under the barrier, if locations names another
// site at that version or later and the copy is still the one that was retired.
func (m *Mover) delete(ctx context.Context, e *retirement) (bool, error) {
	unlock, err := m.owners.lock(ctx, e.owner)
	if err != nil {
		return false, err
	}
	defer unlock()
	if now, ok := m.journal.retirement(e.owner, e.site); !ok || now != *e {
		return false, nil // a move came first
	}
	s := m.o.Stores[e.site]
	if s == nil {
		return false, fmt.Errorf("no store of this site")
	}
	why, err := m.deleteHeld(ctx, s, e)
	if err != nil {
		return false, err
	}
	m.o.Metrics.Count(executor.Deletes, why, 1)
	if why != deleted {
		m.o.Logger.Info().Str("owner", e.owner).Str("site", e.site).Str("why", why).Msg("retired copy not deleted")
		return false, m.journal.write(e.record(kept), true)
	}
	if m.o.Hook != nil {
		m.o.Hook(string(stepDeleted), control.Move{Owner: e.owner, From: e.site, To: e.to, Version: e.version})
	}
	return true, m.journal.write(e.record(deleted), true)
}

// deleteHeld returns what became of the copy: deleted, or why not.
func (m *Mover) deleteHeld(ctx context.Context, s objectstore.Store, e *retirement) (string, error) {
	mark := objectstore.Mark{State: objectstore.Retired, Version: e.version, Site: e.to}
	remove := func(ctx context.Context) error { return s.Delete(ctx, e.owner, mark) }
	h, err := m.hold(ctx, s, e.owner, "")
	switch {
	case errors.Is(err, objectstore.ErrNoOwner):
		// What an earlier try could not remove goes now. If a copy has come since,
		// it bears another mark and stays.
		if err := remove(ctx); err != nil && !errors.Is(err, objectstore.ErrMarked) {
			return "", err
		}
		return deleted, nil
	case errors.Is(err, objectstore.ErrNoBarrier):
		// The condition on the mark, which the store keeps, must do.
	case err != nil:
		return "", err
	default:
		defer h.Release()
		remove = func(ctx context.Context) error { return h.Delete(ctx, mark) }
	}
	l, revision, err := m.o.Locations.Get(ctx, e.owner)
	if err != nil {
		return "", err
	}
	if revision == 0 || l.Site == e.site || l.Version < e.version {
		return "kept-named", nil
	}
	err = remove(ctx)
	if errors.Is(err, objectstore.ErrMarked) {
		return "kept-marked", nil
	}
	return deleted, err
}

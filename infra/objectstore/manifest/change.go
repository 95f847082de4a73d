package manifest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"penstock/infra/objectstore"
)

// failures is how often one change is tried again when the backend errs.
const failures = 4

// change reads an owner's document, lets f change it, and writes it if f returns
// true, until no other change has come between. While another holds the owner it
// waits. op names the change: it is made at most once, whatever the backend says.
// f may be called several times, each time with what is there now, and must not
// keep it. first, if there is one, saves the first reading.
func (s *Store) change(ctx context.Context, owner, op string, first *snapshot, f func(d *document) (bool, error)) error {
	if err := objectstore.CheckOwner(owner); err != nil {
		return err
	}
	t, err := s.locks.lock(ctx, owner)
	if err != nil {
		return err
	}
	defer s.locks.unlock(owner, t)
	if first != nil {
		if last := s.locks.lastWritten(t); last != "" && last != first.revision {
			first = nil // it lost already, against this process
		}
	}
	c := &attempt{s: s, t: t, owner: owner, op: op, pause: s.o.Poll}
	for {
		done, err := c.try(ctx, first, f)
		if err != nil && c.maybe {
			err = &maybeError{err}
		}
		if done || err != nil {
			return err
		}
		first = nil
	}
}

// maybeError wraps the error of a change that may have been made all the same, or
// may still be.
type maybeError struct{ error }

func (e *maybeError) Unwrap() error { return e.error }

func maybe(err error) bool {
	var m *maybeError
	return errors.As(err, &m)
}

// attempt is one change under way.
type attempt struct {
	s         *Store
	t         *turn
	owner, op string
	pause     time.Duration
	conflicts int
	errs      int
	// maybe: the latest write, upon a document that was at revision and had been
	// written changes times, may have happened, or may still; unknown: the backend
	// didn't even say that it was refused.
	maybe    bool
	unknown  bool
	revision string
	changes  uint64
	// the lease that is being waited for, and since when it gave no sign of life
	seen  lease
	since time.Time
}

// try reads once and writes at most once. Neither done nor an error: again.
func (c *attempt) try(ctx context.Context, first *snapshot, f func(d *document) (bool, error)) (done bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	wake := c.s.locks.wake(c.t)
	var now snapshot
	if first != nil {
		now = *first
	} else if now, err = c.s.load(ctx, c.owner); err != nil {
		return false, c.failed(ctx, err)
	}
	if done, err := c.outcome(&now); done || err != nil {
		return done, err
	}
	broken := now.Lease != nil
	if broken {
		if !c.lapsed(now.Lease) {
			return false, c.wait(ctx, wake)
		}
		now.Lease = nil
	}
	write, err := f(now.document)
	if err != nil || !write {
		return true, err
	}
	return c.write(ctx, now, broken)
}

// outcome finds out what became of the latest write.
func (c *attempt) outcome(now *snapshot) (done bool, err error) {
	switch {
	case !c.maybe:
		return false, nil
	case slices.Contains(now.Ops, c.op):
		c.maybe = false
		return true, nil
	case now.revision == c.revision:
		return false, nil // it may still arrive; the next write is upon the same
	case c.unknown && now.Changes >= c.changes+maxOps:
		return false, fmt.Errorf("owner %.80q: %w", c.owner, ErrUnknown)
	}
	c.maybe, c.unknown = false, false
	return false, nil
}

// write compares and sets.
func (c *attempt) write(ctx context.Context, now snapshot, broken bool) (done bool, err error) {
	changes := now.Changes
	now.did(c.op)
	body, err := now.encode()
	if err != nil {
		return false, err
	}
	if len(body) > c.s.o.MaxDocument {
		return false, tooLarge(c.owner, len(now.entries), len(body), c.s.o.MaxDocument)
	}
	if !c.maybe || now.revision != c.revision {
		c.maybe, c.revision, c.changes = true, now.revision, changes
	}
	revision, err := c.s.b.Set(ctx, c.owner, body, now.revision)
	switch {
	case err == nil:
		c.maybe = false
		c.s.locks.wrote(c.t, revision)
		if broken {
			c.s.o.Count("lease-broken", 1)
		}
		return true, nil
	case errors.Is(err, ErrConflict):
		return false, c.lost(ctx, err)
	}
	c.unknown = true
	return false, c.failed(ctx, fmt.Errorf("write document of %.80q: %w", c.owner, cause(ctx, err)))
}

func tooLarge(owner string, objects, size, most int) error {
	return fmt.Errorf("owner %.80q with %d objects needs a document of %d bytes, at most %d are possible: %w",
		owner, objects, size, most, ErrTooLarge)
}

// lost pauses after a conflict.
func (c *attempt) lost(ctx context.Context, err error) error {
	c.s.locks.wrote(c.t, "")
	c.s.o.Count("conflict", 1)
	if c.conflicts++; c.conflicts >= c.s.o.Tries {
		return fmt.Errorf("owner %.80q, %d times: %w", c.owner, c.conflicts, err)
	}
	return c.s.o.Clock.Sleep(ctx, jitter(c.s.o.Poll<<min(c.conflicts, 4)))
}

// failed returns the backend's error, unless a write may have happened: then it
// pauses, to look again.
func (c *attempt) failed(ctx context.Context, err error) error {
	if c.errs++; !c.unknown || c.errs > failures || ctx.Err() != nil {
		return cause(ctx, err)
	}
	return c.s.o.Clock.Sleep(ctx, jitter(c.s.o.Poll<<min(2*c.errs, 8)))
}

// lapsed reports that a lease's holder has given no sign of life for as long as
// it said it would.
func (c *attempt) lapsed(l *lease) bool {
	now := c.s.o.Clock.Now()
	if c.seen.ID != l.ID || c.seen.Beat != l.Beat {
		c.seen, c.since = *l, now
		return false
	}
	return now.Sub(c.since) >= time.Duration(l.TTLMillis)*time.Millisecond
}

// wait waits a moment, or until a holder in this process lets go.
func (c *attempt) wait(ctx context.Context, wake <-chan struct{}) error {
	timer := c.s.o.Clock.NewTimer(jitter(c.pause))
	defer timer.Stop()
	c.pause = min(2*c.pause, 16*c.s.o.Poll)
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait for the holder of owner %.80q: %w", c.owner, ctx.Err())
	case <-wake:
	case <-timer.C():
	}
	return nil
}

// jitter draws from the upper half of d, so that those who lost together do not
// meet again.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

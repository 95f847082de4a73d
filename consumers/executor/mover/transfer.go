package mover

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"golang.org/x/time/rate"

	"penstock/consumers/executor"
	"penstock/consumers/executor/locations"
	"penstock/infra/objectstore"
	"penstock/schemas/control"
)

const (
	copyChunk = 64 << 10 // bytes read at a time, and the least burst of the limit
	// holdTries is how often the last difference is copied while writers wait.
	holdTries = 3
	// holdWait is how long a barrier is waited for, which writes under way or
	// another mover have.
	holdWait = 10 * time.Second
	// flipRetry is the pause between tries to flip while the bus is in trouble.
	flipRetry = 20 * time.Millisecond
)

// transfer makes the destination's copy equal to the source's and flips.
func (x *attempt) transfer(ctx context.Context) (reason string, err error) {
	x.have = map[string]string{}
	whole := false
	for range x.o.Rounds {
		l, err := x.round(ctx)
		if errors.Is(err, objectstore.ErrChanged) {
			// What was sent first was too old for what came later. Held, it isn't.
			x.o.Metrics.Count(executor.Retried, "source-changed", 1)
			continue
		}
		if err != nil {
			return "", err
		}
		if !whole {
			whole = true
			if err := x.journal.step(x.t, copied); err != nil {
				return "", err
			}
			if err := x.passed(stepCopied, x.t); err != nil {
				return "", err
			}
		}
		h, err := x.hold(ctx, x.src, x.t.Owner, l.Version)
		switch {
		case err == nil:
			return "", x.whileHeld(ctx, h, false)
		case errors.Is(err, objectstore.ErrNoBarrier):
			return ReasonNoBarrier, x.whileHeld(ctx, unheld{x}, true)
		case !errors.Is(err, objectstore.ErrChanged):
			return "", ofStore(err)
		}
		x.o.Metrics.Count(executor.Retried, "source-changed", 1)
	}
	for range holdTries {
		h, err := x.hold(ctx, x.src, x.t.Owner, "")
		if err != nil {
			return "", ofStore(err)
		}
		err = x.whileHeld(ctx, h, true)
		if err == nil || ctx.Err() != nil || !errors.Is(err, errHeldTooLong) {
			return "", err
		}
		x.o.Metrics.Count(executor.Retried, "held-too-long", 1)
	}
	return "", &verdict{control.Failed, ReasonBusy, nil}
}

// hold takes a copy's barrier, waiting for it within bounds.
func (m *Mover) hold(ctx context.Context, s objectstore.Store, owner, version string) (objectstore.Held, error) {
	ctx, cancel := m.within(ctx, holdWait)
	defer cancel()
	return s.Hold(ctx, owner, version)
}

// unheld stands in for a barrier where there is none: the fence alone keeps
// writers off, except those that are writing already.
type unheld struct{ x *attempt }

func (u unheld) Mark(ctx context.Context, from, to objectstore.Mark) error {
	return u.x.src.Mark(ctx, u.x.t.Owner, from, to)
}

func (u unheld) Delete(ctx context.Context, as objectstore.Mark) error {
	return u.x.src.Delete(ctx, u.x.t.Owner, as)
}

func (unheld) Release() {}

// whileHeld flips while writers wait, for at most HoldMax; with a difference to
// copy before. It releases the barrier. If it runs out of time before the flip,
// the source is open again.
func (x *attempt) whileHeld(ctx context.Context, h objectstore.Held, difference bool) error {
	defer h.Release()
	ctx, cancel := x.within(ctx, x.o.HoldMax)
	defer cancel()
	if err := x.passed(stepHeld, x.t); err != nil {
		return err
	}
	if difference {
		if err := x.roundHeld(ctx); err != nil {
			return err
		}
	}
	if x.from != x.fence {
		if err := contested(h.Mark(ctx, x.from, x.fence)); err != nil {
			return err
		}
	}
	if err := x.passed(stepFenced, x.t); err != nil {
		return err
	}
	if _, isUnheld := h.(unheld); isUnheld {
		// What was being written when the fence came.
		if err := x.roundHeld(ctx); err != nil {
			return err
		}
	}
	if err := x.flip(ctx); err != nil {
		return err
	}
	if err := x.passed(stepFlipped, x.t); err != nil {
		return err
	}
	if err := x.journal.step(x.t, switched); err != nil {
		return err
	}
	if err := x.retire(); err != nil {
		return err
	}
	return x.passed(stepJournalled, x.t)
}

// flip makes locations name the destination, by compare-and-set. When it fails
// the source stays closed: the flip may have arrived, or another mover may have
// flipped. The next try looks, and if the move is not to be done after all, it is
// reopen that opens the source again.
func (x *attempt) flip(ctx context.Context) error {
	d, err := x.dst.Stat(ctx, x.t.Owner)
	if err == nil && d != x.mine {
		err = fmt.Errorf("%w: the copy at %s is %s", errContested, x.t.To, d)
	}
	if err != nil {
		return ofStore(err)
	}
	next := control.Location{
		Site: x.t.To, Version: x.t.Version, State: control.Live, Since: x.t.window.UTC(), Pinned: x.at.Pinned,
	}
	for {
		_, err := x.o.Locations.Set(ctx, x.t.Owner, next, x.revision)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, locations.ErrConflict):
			return x.refused(ctx)
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", errFlip, err)
		}
		// It may or may not have been written. The same expectation again tells.
		x.o.Metrics.Count(executor.Retried, "flip", 1)
		if x.o.Clock.Sleep(ctx, flipRetry) != nil {
			return fmt.Errorf("%w: %w", errFlip, err)
		}
	}
}

// refused finds out by whom: by this very move, which an earlier try or another
// mover wrote, or by something else.
func (x *attempt) refused(ctx context.Context) error {
	l, revision, err := x.o.Locations.Get(ctx, x.t.Owner)
	if err != nil {
		return fmt.Errorf("%w: %w", errFlip, err)
	}
	if r, _ := judge(l, revision > 0, x.t.Move); r == flipped {
		return nil
	}
	return fmt.Errorf("%w: locations has changed", errContested)
}

// within is ctx with an end after d by the mover's clock; its cause is then
// errHeldTooLong.
func (m *Mover) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := m.o.Clock.NewTimer(d)
	go func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			cancel(errHeldTooLong)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// round lists the source and makes the destination equal to that listing, as far
// as it isn't: objects that are gone are removed, those that are new or changed
// are copied and verified.
func (x *attempt) round(ctx context.Context) (objectstore.Listing, error) {
	l, err := x.src.List(ctx, x.t.Owner)
	if err != nil {
		return l, ofStore(err)
	}
	x.bytes = l.Bytes
	if x.there == nil {
		d, err := x.dst.List(ctx, x.t.Owner)
		if err != nil {
			return l, ofStore(err)
		}
		x.there = make(map[string]objectstore.Object, len(d.Objects))
		for _, o := range d.Objects {
			x.there[o.Name] = o
		}
	}
	if err := x.removeOthers(ctx, l); err != nil {
		return l, err
	}
	for _, o := range l.Objects {
		if x.have[o.Name] == o.Version {
			continue
		}
		if err := x.copy(ctx, o); err != nil {
			return l, err
		}
	}
	return l, nil
}

// roundHeld is a round while writers wait; its error wraps errHeldTooLong if that
// took too long.
func (x *attempt) roundHeld(ctx context.Context) error {
	_, err := x.round(ctx)
	return errors.Join(err, context.Cause(ctx))
}

// removeOthers removes from the destination what the source doesn't have.
func (x *attempt) removeOthers(ctx context.Context, l objectstore.Listing) error {
	if len(x.there) == 0 {
		return nil
	}
	want := make(map[string]bool, len(l.Objects))
	for _, o := range l.Objects {
		want[o.Name] = true
	}
	for name := range x.there {
		if want[name] {
			continue
		}
		if err := contested(x.dst.Remove(ctx, x.t.Owner, name, x.mine)); err != nil {
			return err
		}
		delete(x.there, name)
		delete(x.have, name)
	}
	return nil
}

// copy copies one object unless the destination holds its equal, and reads it
// back.
func (x *attempt) copy(ctx context.Context, o objectstore.Object) error {
	if d, ok := x.there[o.Name]; ok && d.Size == o.Size {
		same, err := x.same(ctx, o.Name)
		if err != nil {
			return err
		}
		if same {
			x.have[o.Name] = o.Version
			return nil
		}
	}
	r, err := x.src.Open(ctx, x.t.Owner, o.Name)
	if errors.Is(err, objectstore.ErrNoObject) {
		return nil // removed since; the next listing says so, and the barrier sees it
	}
	if err != nil {
		return ofStore(err)
	}
	in := &source{ctx: ctx, r: r, limit: x.limit, sum: sha256.New()}
	put, err := x.dst.Put(ctx, x.t.Owner, o.Name, in, x.mine)
	err = errors.Join(err, r.Close())
	if err != nil {
		x.there[o.Name] = objectstore.Object{Name: o.Name} // or a part of it
		if errors.Is(err, objectstore.ErrMarked) || errors.Is(err, objectstore.ErrNoOwner) {
			return fmt.Errorf("%w: %w", errContested, err)
		}
		return ofStore(err)
	}
	if err := x.verify(ctx, o.Name, hex.EncodeToString(in.sum.Sum(nil))); err != nil {
		return err
	}
	x.copied += put.Size
	x.there[o.Name] = put
	x.have[o.Name] = o.Version
	return x.passed(stepObject, x.t)
}

// same compares an object at both ends by digest.
func (x *attempt) same(ctx context.Context, name string) (bool, error) {
	a, err := x.src.Digest(ctx, x.t.Owner, name)
	if errors.Is(err, objectstore.ErrNoObject) {
		return false, nil
	}
	if err != nil {
		return false, ofStore(err)
	}
	b, err := x.dst.Digest(ctx, x.t.Owner, name)
	if errors.Is(err, objectstore.ErrNoObject) {
		return false, nil
	}
	return a == b, ofStore(err)
}

// verify reads an object back from the destination.
func (x *attempt) verify(ctx context.Context, name, want string) error {
	got, err := x.dst.Digest(ctx, x.t.Owner, name)
	if errors.Is(err, objectstore.ErrNoObject) || errors.Is(err, objectstore.ErrNoOwner) {
		return fmt.Errorf("%w: %w", errContested, err)
	}
	if err == nil && got != want {
		err = fmt.Errorf("object %.80q at %s reads back as %s, sent was %s", name, x.t.To, got, want)
	}
	return ofStore(err)
}

// source is an object being read: summed up, and not faster than the limit.
type source struct {
	ctx   context.Context
	r     io.Reader
	limit *rate.Limiter
	sum   hash.Hash
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b[:min(len(b), copyChunk)])
	if n > 0 {
		_, _ = s.sum.Write(b[:n])
		if s.limit != nil {
			if err := s.limit.WaitN(s.ctx, n); err != nil {
				return n, err
			}
		}
	}
	return n, err
}

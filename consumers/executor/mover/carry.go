package mover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"penstock/consumers/executor"
	"penstock/infra/gate"
	"penstock/infra/objectstore"
	"penstock/schemas/control"
)

const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 2 * time.Second
	// contestedMost bounds how often a move is looked at again because another
	// mover worked on it.
	contestedMost = 20
)

// carry carries a move to its end and returns the outcome. An error leaves the
// move open: the bus, the context, the journal, or a mover that is faster.
func (m *Mover) carry(ctx context.Context, t *task) (control.Outcome, error) {
	attempts, contested, wait := 0, 0, retryFirst
	for {
		res, err := m.try(ctx, t)
		var v *verdict
		var se *storeError
		switch {
		case err == nil:
			m.o.Metrics.Count(executor.Bytes, t.To, res.copied)
			return outcome(t, control.Done, res.reason, res.bytes), nil
		case ctx.Err() != nil:
			return control.Outcome{}, ctx.Err()
		case errors.As(err, &v):
			return m.giveUp(ctx, t, v)
		case errors.Is(err, errContested):
			if contested++; contested >= contestedMost {
				return control.Outcome{}, err
			}
			m.o.Metrics.Count(executor.Retried, "contested", 1)
		case errors.As(err, &se):
			if attempts++; attempts >= m.o.Attempts || hopeless(err) {
				return m.giveUp(ctx, t, &verdict{control.Failed, reasonOf(err), err})
			}
			m.o.Metrics.Count(executor.Retried, "store", 1)
			m.o.Logger.Warn().Err(err).Str("owner", t.Owner).Uint64("move", t.Version).Msg("a store failed, trying again")
		default:
			return control.Outcome{}, err
		}
		if err := m.o.Clock.Sleep(ctx, wait); err != nil {
			return control.Outcome{}, err
		}
		wait = min(2*wait, retryMost)
	}
}

// hopeless: another try would send the same to the same store. What was left out
// because of what was written meanwhile may fit next time.
func hopeless(err error) bool {
	return errors.Is(err, objectstore.ErrUnfit) && !errors.Is(err, objectstore.ErrChanged)
}

// reasonOf is why a move ends whose last try failed in a store.
func reasonOf(err error) string {
	if errors.Is(err, objectstore.ErrUnfit) {
		return ReasonUnfit
	}
	var silent *gate.SilentError
	if errors.As(err, &silent) {
		return ReasonEntrySilent + ": " + silent.Entry
	}
	return ReasonStore
}

// giveUp undoes what was begun of a move and returns its outcome.
func (m *Mover) giveUp(ctx context.Context, t *task, v *verdict) (control.Outcome, error) {
	if m.journal.isOpen(t.key()) {
		done, err := m.abandon(ctx, t)
		var se *storeError
		switch {
		case done:
			// It has flipped, and the copy can't be opened: that must be done
			// some time.
			return control.Outcome{}, v
		case errors.As(err, &se):
			// What is left stays closed to writers. The owner's next move takes
			// it over.
			m.o.Logger.Error().Err(err).Str("owner", t.Owner).Uint64("move", t.Version).Msg("an aborted move could not be undone")
		case err != nil:
			return control.Outcome{}, fmt.Errorf("give up (%w): %w", v, err)
		}
	}
	log := m.o.Logger.Info()
	if v.status == control.Failed {
		log = m.o.Logger.Warn()
	}
	log.Str("owner", t.Owner).Uint64("move", t.Version).Err(v).Msg("move not carried out")
	return outcome(t, v.status, v.reason, 0), nil
}

// attempt is one try at a move.
type attempt struct {
	*Mover
	t        *task
	src, dst objectstore.Store

	at       control.Location // what locations says
	known    bool
	revision uint64

	from  objectstore.Mark // the source's copy bears it
	fence objectstore.Mark // it will bear this
	mine  objectstore.Mark // the destination's copy bears it while it is made

	have   map[string]string             // objects copied: name to the source's version
	there  map[string]objectstore.Object // what the destination holds
	copied int64                         // bytes
	bytes  int64                         // of the owner's data, when last listed
}

type result struct {
	bytes  int64 // the owner's data
	copied int64 // of which were copied
	reason string
}

func newAttempt(m *Mover, t *task) *attempt {
	return &attempt{
		Mover: m, t: t, src: m.o.Stores[t.From], dst: m.o.Stores[t.To],
		fence: objectstore.Mark{State: objectstore.Retired, Version: t.Version, Site: t.To},
		mine:  objectstore.Mark{State: objectstore.Incoming, Version: t.Version, By: m.o.Name},
	}
}

// try takes a move from wherever it stands to its end.
func (m *Mover) try(ctx context.Context, t *task) (result, error) {
	x := newAttempt(m, t)
	if x.src == nil || x.dst == nil {
		return result{}, &verdict{control.Refused, ReasonUnknownSite, nil}
	}
	if err := x.locate(ctx); err != nil {
		return result{}, err
	}
	switch r, reason := judge(x.at, x.known, t.Move); r {
	case refuse:
		return result{}, &verdict{control.Refused, reason, nil}
	case flipped:
		return x.settle(ctx)
	}
	if err := x.plan(ctx); err != nil {
		return result{}, err
	}
	if err := x.source(ctx); err != nil {
		return result{}, err
	}
	if err := x.destination(ctx); err != nil {
		return result{}, err
	}
	reason, err := x.transfer(ctx)
	if err != nil {
		return result{}, err
	}
	return result{bytes: x.bytes, copied: x.copied, reason: reason}, x.arrive(ctx)
}

// locate reads where the owner is.
func (x *attempt) locate(ctx context.Context) error {
	l, revision, err := x.o.Locations.Get(ctx, x.t.Owner)
	if errors.Is(err, control.ErrUndecodable) {
		return &verdict{control.Failed, ReasonUnreadable, err}
	}
	x.at, x.revision, x.known = l, revision, revision > 0
	return err
}

// plan journals the move and cancels a deletion at its destination.
func (x *attempt) plan(context.Context) error {
	if err := x.journal.plan(x.t); err != nil {
		return err
	}
	if e, ok := x.journal.retirement(x.t.Owner, x.t.To); ok {
		if err := x.journal.write(e.record(kept), false); err != nil {
			return err
		}
		x.o.Metrics.Count(executor.Deletes, "kept-return", 1)
	}
	return x.passed(stepPlanned, x.t)
}

// source finds out what the source's copy is.
func (x *attempt) source(ctx context.Context) error {
	m, err := x.src.Stat(ctx, x.t.Owner)
	if err != nil {
		return ofStore(err)
	}
	x.from = m
	switch {
	case m.Writable(), m == x.fence:
		return nil
	case m.State == objectstore.Retired && x.at.Version < m.Version && m.Version < x.t.Version:
		// Fenced by a move that never flipped and could not be undone.
		return nil
	case m.State == objectstore.Absent:
		return &verdict{control.Failed, ReasonSourceMissing, nil}
	case m.State == objectstore.Incoming && x.known && m.Version <= x.at.Version:
		// The move that brought it here was cut off before it settled.
		x.from = objectstore.Mark{State: objectstore.Live, Version: x.at.Version}
		return x.mark(ctx, x.src, m, x.from)
	default:
		return &verdict{control.Failed, ReasonSourceClosed, fmt.Errorf("the copy at %s is %s", x.t.From, m)}
	}
}

// destination makes the destination's copy this mover's. Leftovers of a move
// that was given up, or that is being made by a mover that may be dead, and
// retired copies are taken over as they are: what is equal needn't be copied.
func (x *attempt) destination(ctx context.Context) error {
	m, err := x.dst.Stat(ctx, x.t.Owner)
	if err != nil {
		return ofStore(err)
	}
	switch {
	case m == x.mine:
	case m.State == objectstore.Absent,
		m.State == objectstore.Incoming && m.Version <= x.t.Version,
		m.State == objectstore.Retired && m.Version < x.t.Version:
		if err := x.mark(ctx, x.dst, m, x.mine); err != nil {
			return err
		}
		if m.State == objectstore.Absent {
			x.there = map[string]objectstore.Object{} // no need to look
		}
	case m.State == objectstore.Unmarked:
		if err := x.claim(ctx, m); err != nil {
			return err
		}
	default:
		return x.occupied(ctx, m)
	}
	return x.passed(stepMarked, x.t)
}

// claim makes an empty copy this mover's that somebody made and that anybody may
// write to: under its barrier, so that nothing is put there between the look and
// the mark, which would be thrown away as no part of the source.
func (x *attempt) claim(ctx context.Context, m objectstore.Mark) error {
	l, err := x.dst.List(ctx, x.t.Owner)
	if err != nil {
		return ofStore(err)
	}
	if len(l.Objects) > 0 {
		return x.occupied(ctx, m)
	}
	h, err := x.hold(ctx, x.dst, x.t.Owner, l.Version)
	switch {
	case errors.Is(err, objectstore.ErrNoBarrier):
		return x.mark(ctx, x.dst, m, x.mine)
	case errors.Is(err, objectstore.ErrChanged), errors.Is(err, objectstore.ErrNoOwner):
		return fmt.Errorf("%w: %w", errContested, err)
	case err != nil:
		return ofStore(err)
	}
	defer h.Release()
	return contested(h.Mark(ctx, m, x.mine))
}

// occupied: there is data at the destination that locations doesn't know of.
// Nobody can tell whose it is, so it is not thrown away; unless another mover has
// just brought it, which shows in locations.
func (x *attempt) occupied(ctx context.Context, m objectstore.Mark) error {
	revision := x.revision
	if err := x.locate(ctx); err != nil {
		return err
	}
	if x.revision != revision {
		return errContested
	}
	return &verdict{control.Failed, ReasonOccupied, fmt.Errorf("the copy at %s is %s", x.t.To, m)}
}

// mark changes a mark; that somebody else changed it first is a reason to look
// again.
func (x *attempt) mark(ctx context.Context, s objectstore.Store, from, to objectstore.Mark) error {
	return contested(s.Mark(ctx, x.t.Owner, from, to))
}

// contested tells another's hand in a store from the store's own failure.
func contested(err error) error {
	if errors.Is(err, objectstore.ErrMarked) {
		return fmt.Errorf("%w: %w", errContested, err)
	}
	return ofStore(err)
}

// arrive makes the copy live that this try has flipped to. If another mover has
// done so already, the next try finds the move done.
func (x *attempt) arrive(ctx context.Context) error {
	live := objectstore.Mark{State: objectstore.Live, Version: x.t.Version}
	if err := x.mark(ctx, x.dst, x.mine, live); err != nil {
		return err
	}
	return x.passed(stepSettled, x.t)
}

// settle makes the destination's copy live and sees to it that the source's will
// be deleted. locations names the destination at the move's version. It can be
// repeated, and done by any mover.
func (x *attempt) settle(ctx context.Context) (result, error) {
	m, err := x.dst.Stat(ctx, x.t.Owner)
	if err != nil {
		return result{}, ofStore(err)
	}
	if m.State == objectstore.Incoming && m.Version <= x.t.Version {
		live := objectstore.Mark{State: objectstore.Live, Version: x.t.Version}
		if err := x.mark(ctx, x.dst, m, live); err != nil {
			return result{}, err
		}
	}
	s, err := x.src.Stat(ctx, x.t.Owner)
	if err != nil {
		return result{}, ofStore(err)
	}
	if s == x.fence {
		if err := x.retire(); err != nil {
			return result{}, err
		}
	}
	l, err := x.dst.List(ctx, x.t.Owner)
	if err != nil {
		// locations says that the data is here, and it isn't. The move is done
		// all the same; locations verify reports it.
		x.o.Logger.Error().Err(err).Str("owner", x.t.Owner).Str("site", x.t.To).Msg("the live copy can't be listed")
	}
	return result{bytes: l.Bytes}, x.passed(stepSettled, x.t)
}

// retire journals that the source's copy is to be deleted.
func (x *attempt) retire() error {
	if _, ok := x.journal.retirement(x.t.Owner, x.t.From); ok {
		return nil
	}
	e := retirement{owner: x.t.Owner, site: x.t.From, version: x.t.Version, to: x.t.To}
	if x.o.DeleteAfter > 0 {
		e.at = x.o.Clock.Now().Add(x.o.DeleteAfter)
	}
	if err := x.journal.write(e.record(retired), false); err != nil {
		return err
	}
	select {
	case x.changed <- struct{}{}:
	default:
	}
	return nil
}

package mover

import (
	"context"
	"errors"

	"penstock/infra/gate"
	"penstock/infra/objectstore"
	"penstock/schemas/control"
)

// abandon undoes what was begun of a move that will not be done: the incoming
// copy is removed and the source opened again. If locations names the destination
// by this very move it undoes nothing and returns true: the move is done.
//
// It holds the source's barrier, as whoever flips does: so no other mover flips to
// the copy that is being removed. A flip of which nobody knows whether it arrived
// is kept from arriving by writing locations under a new revision first.
func (m *Mover) abandon(ctx context.Context, t *task) (done bool, err error) {
	x := newAttempt(m, t)
	if x.src == nil || x.dst == nil {
		return false, nil
	}
	fenced, incoming, err := x.begun(ctx)
	if err != nil || !fenced && incoming == (objectstore.Mark{}) {
		return false, err
	}
	h, err := x.hold(ctx, x.src, t.Owner, "")
	switch {
	case errors.Is(err, objectstore.ErrNoOwner), errors.Is(err, objectstore.ErrNoBarrier), errors.Is(err, gate.ErrSilent):
		// Without a source nobody can flip; without a barrier, or with an entry
		// point in its place that is silent, one mover alone must be trusted with an
		// owner.
		h = unheld{x}
	case err != nil:
		return false, ofStore(err)
	}
	defer h.Release()
	if err := x.locate(ctx); err != nil {
		var v *verdict
		if errors.As(err, &v) {
			return false, nil // an unreadable entry is left, and with it all that it may name
		}
		return false, err
	}
	if x.known && (x.at.Site != t.From || x.at.Version >= t.Version) {
		r, _ := judge(x.at, x.known, t.Move)
		return r == flipped, nil
	}
	return false, x.undo(ctx, h)
}

// undo removes the incoming copy and opens the source, which h holds. A barrier
// may be lost without its holder knowing, and another mover may be about to flip to
// a copy that it makes: then that copy is taken over first, which its maker sees
// before it flips, and locations is written, which keeps a flip from arriving that
// was on its way.
func (x *attempt) undo(ctx context.Context, h objectstore.Held) error {
	fenced, incoming, err := x.begun(ctx)
	if err != nil {
		return err
	}
	others := incoming != (objectstore.Mark{}) && incoming.By != x.o.Name
	if others {
		if err := x.mark(ctx, x.dst, incoming, x.mine); err != nil {
			return err
		}
		incoming = x.mine
	}
	if fenced || others {
		if err := x.outrun(ctx); err != nil {
			return err
		}
	}
	if incoming != (objectstore.Mark{}) {
		if err := x.dst.Delete(ctx, x.t.Owner, incoming); err != nil && !errors.Is(err, objectstore.ErrMarked) {
			return ofStore(err)
		}
	}
	if fenced {
		return ofStore(h.Mark(ctx, x.fence, objectstore.Mark{State: objectstore.Live, Version: x.at.Version}))
	}
	return nil
}

// begun reports what there is of the move: whether the source is fenced, and the
// mark of the incoming copy, zero if there is none.
func (x *attempt) begun(ctx context.Context) (fenced bool, incoming objectstore.Mark, err error) {
	s, err := x.src.Stat(ctx, x.t.Owner)
	if err != nil {
		return false, incoming, ofStore(err)
	}
	d, err := x.dst.Stat(ctx, x.t.Owner)
	if err == nil && d.State == objectstore.Incoming && d.Version == x.t.Version {
		incoming = d
	}
	return s == x.fence, incoming, ofStore(err)
}

// outrun writes what locations says once more, under a new revision. An owner
// without an entry gets one: it is where the move found it.
func (x *attempt) outrun(ctx context.Context) error {
	l := x.at
	if !x.known {
		l = control.Location{Site: x.t.From, State: control.Live, Since: x.t.window.UTC()}
	}
	_, err := x.o.Locations.Set(ctx, x.t.Owner, l, x.revision)
	return err
}

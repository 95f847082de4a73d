package mover

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/manifest"
	"penstock/schemas/control"
)

// once calls a function at the first of some operations.
func once(do func(), ops ...string) func(op, owner string) error {
	var did atomic.Bool
	return func(op, _ string) error {
		for _, o := range ops {
			if o == op && did.CompareAndSwap(false, true) {
				do()
			}
		}
		return nil
	}
}

// TestEmptyCopyIsWrittenTo: what somebody puts into an empty copy at the
// destination, just when a mover wants to make it its own, is not thrown away.
func TestEmptyCopyIsWrittenTo(t *testing.T) {
	w := newWorld(t)
	w.put("a", "o", objects(2))
	ok(t, w.stores["b"].Create(t.Context(), "o", objectstore.Mark{}))
	foreign := map[string]string{"foreign": "object"}
	s := &faulty{Store: w.stores["b"], f: once(func() { w.put("b", "o", foreign) }, "hold", "mark")}
	m := w.mover(func(o *Options) { o.Stores["b"] = s })
	if o := w.apply(m, move("o", "a", "b", 1)); o.Status != control.Failed || o.Reason != ReasonOccupied {
		t.Errorf("outcome %+v", o)
	}
	if got := w.get("b", "o"); len(got) != 1 || got["foreign"] != "object" || !w.mark("b", "o").Writable() {
		t.Errorf("b holds %v, %v", got, w.mark("b", "o"))
	}
}

// TestAbandonedBesideAnother: a mover that gives up a move which another one flips
// at the same moment, without the barrier that should have kept them apart, does
// not remove the copy that has become the live one.
func TestAbandonedBesideAnother(t *testing.T) {
	w := newWorld(t)
	data := objects(2)
	w.put("a", "o", data)
	mv := move("o", "a", "b", 1)
	theirs := objectstore.Mark{State: objectstore.Incoming, Version: 1, By: "other"}
	ok(t, w.stores["b"].Mark(t.Context(), "o", objectstore.Mark{State: objectstore.Absent}, theirs))
	for name, content := range data {
		_, err := w.stores["b"].Put(t.Context(), "o", name, strings.NewReader(content), theirs)
		ok(t, err)
	}
	s := &faulty{Store: w.stores["b"], f: once(func() {
		_, err := w.table.Set(t.Context(), "o", control.Location{Site: "b", Version: 1, State: control.Live}, 0)
		ok(t, err)
	}, "mark", "delete")}
	m := w.mover(func(o *Options) { o.Stores["b"] = s })
	if err := m.Decline(t.Context(), command(mv), control.Expired, w.answer); err == nil {
		t.Error("the move was given up although it had been flipped")
	}
	if got := w.get("b", "o"); len(got) != len(data) {
		t.Fatalf("of the live copy there is left %v", got)
	}
	ok(t, m.Decline(t.Context(), command(mv), control.Expired, w.answer))
	if mark := w.mark("b", "o"); mark != (objectstore.Mark{State: objectstore.Live, Version: 1}) {
		t.Errorf("the live copy is %v", mark)
	}
}

// sticky is a place from which blobs can't be deleted until it is told so.
type sticky struct {
	*manifest.Memory
	loose atomic.Bool
}

func (s *sticky) DeleteBlob(ctx context.Context, owner, id string) error {
	if !s.loose.Load() {
		return errBroken
	}
	return s.Memory.DeleteBlob(ctx, owner, id)
}

// TestRestOfADeletion: what is left of a copy whose deletion failed half-way is
// removed when the deletion is repeated, though the copy is none any more.
func TestRestOfADeletion(t *testing.T) {
	w := newWorld(t)
	place := &sticky{Memory: manifest.NewMemory(nil)}
	s := manifest.New(place, manifest.Options{})
	t.Cleanup(func() { _ = s.Close() })
	_, err := s.Put(t.Context(), "o", "x", strings.NewReader("content"), objectstore.Mark{})
	ok(t, err)
	m := w.mover(func(o *Options) { o.Stores["a"] = s })
	w.apply(m, move("o", "a", "b", 1))
	if n, err := m.Purge(t.Context()); n != 0 || !errors.Is(err, errBroken) || m.Pending() != 1 {
		t.Fatalf("purged %d, %v, %d pending", n, err, m.Pending())
	}
	place.loose.Store(true)
	if n, err := m.Purge(t.Context()); n != 1 || err != nil || m.Pending() != 0 {
		t.Errorf("then purged %d, %v, %d pending", n, err, m.Pending())
	}
	ok(t, place.Blobs(t.Context(), "o", func(id string, _ time.Time) error {
		t.Errorf("blob %s is left", id)
		return nil
	}))
}

package mover

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"penstock/infra/clock"
	"penstock/infra/objectstore"
)

// TestDeleteAfter: a retired copy is deleted when its time has come, also by the
// mover that comes back after a restart; not before.
func TestDeleteAfter(t *testing.T) {
	w := newWorld(t)
	now := clock.NewManual(day)
	later := func(o *Options) { o.Clock, o.DeleteAfter = now, 24*time.Hour }
	m := w.mover(later)
	w.put("a", "o", objects(2))
	w.put("a", "p", objects(2))
	w.apply(m, move("o", "a", "b", 1))
	now.Advance(time.Hour)
	w.apply(m, move("p", "a", "b", 1))
	ok(t, m.Close())
	m = w.mover(later)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	ok(t, now.Await(ctx, 1))
	now.Advance(23*time.Hour - time.Second)
	if mark := w.mark("a", "o"); mark.State != objectstore.Retired || m.Pending() != 2 {
		t.Errorf("before its time the copy is %v, %d are pending", mark, m.Pending())
	}
	now.Advance(time.Second)
	w.await("deletes deleted", 1)
	if o, p := w.mark("a", "o"), w.mark("a", "p"); o.State != objectstore.Absent || p.State != objectstore.Retired {
		t.Errorf("after 24 h the copy is %v, after 23 h %v", o, p)
	}
	now.Advance(time.Hour)
	w.await("deletes deleted", 2)
	cancel()
	ok(t, <-done)
	if mark := w.mark("a", "p"); mark.State != objectstore.Absent || m.Pending() != 0 {
		t.Errorf("at last the copy is %v, %d are pending", mark, m.Pending())
	}
	w.check("o", "b", 1, objects(2))
}

// TestRunHearsOfDeletions: a deletion that is planned while Run waits for nothing
// is not forgotten.
func TestRunHearsOfDeletions(t *testing.T) {
	w := newWorld(t)
	m := w.mover(func(o *Options) { o.DeleteAfter = time.Nanosecond })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	w.put("a", "o", objects(2))
	w.apply(m, move("o", "a", "b", 1))
	w.await("deletes deleted", 1)
	cancel()
	ok(t, <-done)
}

// TestDeleteOnlyWhatIsRetired: before anything is deleted, locations and the copy
// itself are asked again.
func TestDeleteOnlyWhatIsRetired(t *testing.T) {
	cases := map[string]func(*testing.T, *world){
		"kept-named": func(t *testing.T, w *world) { // an operator put it back
			l, revision, err := w.table.Get(t.Context(), "o")
			ok(t, err)
			l.Site, l.Version = "a", 2
			_, err = w.table.Set(t.Context(), "o", l, revision)
			ok(t, err)
		},
		"kept-marked": func(t *testing.T, w *world) { // another mover is bringing it back
			ok(t, w.stores["a"].Mark(t.Context(), "o",
				objectstore.Mark{State: objectstore.Retired, Version: 1, Site: "b"},
				objectstore.Mark{State: objectstore.Incoming, Version: 2, By: "other"}))
		},
	}
	for why, change := range cases {
		w := newWorld(t)
		m := w.mover()
		w.put("a", "o", objects(2))
		w.apply(m, move("o", "a", "b", 1))
		change(t, w)
		n, err := m.Purge(t.Context())
		if err != nil || n != 0 || m.Pending() != 0 || w.count("deletes "+why) != 1 {
			t.Errorf("%s: deleted %d, %v, pending %d, %v", why, n, err, m.Pending(), w.counts)
		}
		if got := w.get("a", "o"); len(got) != 2 {
			t.Errorf("%s: left %v", why, got)
		}
	}
}

// TestDeletesThatFail are kept for later, and don't keep others from being done.
func TestDeletesThatFail(t *testing.T) {
	w := newWorld(t)
	broken := &faulty{Store: w.stores["a"]}
	m := w.mover(func(o *Options) { o.Stores["a"] = broken })
	for i := range 3 {
		owner := fmt.Sprint(i)
		w.put("a", owner, objects(1))
		w.apply(m, move(owner, "a", "b", 1))
	}
	broken.fail(func(op, owner string) error {
		if op == "hold" && owner == "1" {
			return errBroken
		}
		return nil
	})
	n, err := m.Purge(t.Context())
	if n != 2 || !errors.Is(err, errBroken) || m.Pending() != 1 {
		t.Errorf("deleted %d, %v, %d pending", n, err, m.Pending())
	}
	broken.fail(nil)
	if n, err := m.Purge(t.Context()); n != 1 || err != nil {
		t.Errorf("then deleted %d, %v", n, err)
	}
}

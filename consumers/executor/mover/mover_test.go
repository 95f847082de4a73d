package mover

import (
	"context"
	"fmt"
	"testing"

	"penstock/infra/objectstore"
	"penstock/infra/objectstore/objectstoretest"
	"penstock/schemas/control"
)

func TestMove(t *testing.T) {
	w := newWorld(t)
	m := w.mover()
	data := objects(7)
	w.put("a", "o", data)
	o := w.apply(m, move("o", "a", "b", 1))
	var bytes int64
	for _, c := range data {
		bytes += int64(len(c))
	}
	if o.Status != control.Done || o.Bytes != bytes || o.Scope != "b" || o.Reason != "" {
		t.Errorf("outcome %+v, want done with %d bytes", o, bytes)
	}
	w.check("o", "b", 1, data)
	if l := w.location("o"); !l.Since.Equal(command(move("o", "a", "b", 1)).Window.End) {
		t.Errorf("since %v, want the end of the window", l.Since)
	}
	if m.Pending() != 1 || !m.Retired("o", "a") || m.Open() != 0 {
		t.Errorf("pending %d, open %d", m.Pending(), m.Open())
	}
	if n, err := m.Purge(t.Context()); n != 1 || err != nil {
		t.Errorf("purged %d, %v", n, err)
	}
	if mark := w.mark("a", "o"); mark.State != objectstore.Absent {
		t.Errorf("after the purge the old copy is %v", mark)
	}
	w.check("o", "b", 1, data)
}

// TestNames: owners that are hard to name are moved and found (Must show 7).
func TestNames(t *testing.T) {
	w := newWorld(t)
	m := w.mover()
	var moves []control.Move
	for _, owner := range objectstoretest.Names {
		w.put("a", owner, map[string]string{"of": owner})
		moves = append(moves, move(owner, "a", "b", 1))
	}
	w.apply(m, moves...)
	for _, owner := range objectstoretest.Names {
		w.check(owner, "b", 1, map[string]string{"of": owner})
	}
}

// TestEmpty: an owner with nothing moves as nothing.
func TestEmpty(t *testing.T) {
	w := newWorld(t)
	w.put("a", "o", nil)
	if o := w.apply(w.mover(), move("o", "a", "b", 1)); o.Status != control.Done || o.Bytes != 0 {
		t.Errorf("outcome %+v", o)
	}
	w.check("o", "b", 1, map[string]string{})
}

// TestReturn: a move back to a retired copy copies the difference only, and the
// copy is no longer to be deleted.
func TestReturn(t *testing.T) {
	w := newWorld(t)
	m := w.mover()
	data := objects(6)
	w.put("a", "o", data)
	w.apply(m, move("o", "a", "b", 1))
	copied := w.count("bytes b")
	data["dir0/object-3"] = "changed"
	data["new"] = "new"
	w.put("b", "o", map[string]string{"dir0/object-3": "changed", "new": "new"})
	ok(t, w.stores["b"].Remove(t.Context(), "o", "dir1/object-4", objectstore.Mark{}))
	delete(data, "dir1/object-4")
	w.apply(m, move("o", "b", "a", 2))
	w.check("o", "a", 2, data)
	if got := w.count("bytes a"); got != int64(len("changed")+len("new")) || copied == 0 {
		t.Errorf("the way back copied %d bytes, want the difference only (the way there %d)", got, copied)
	}
	if m.Retired("o", "a") || !m.Retired("o", "b") {
		t.Error("a is to be deleted, or b is not")
	}
	if n, err := m.Purge(t.Context()); n != 1 || err != nil {
		t.Errorf("purged %d, %v", n, err)
	}
	w.check("o", "a", 2, data)
}

// TestRepeats: the same move again, before and after a restart, has no effect
// and no second outcome (PROBLEMS P21).
func TestRepeats(t *testing.T) {
	w := newWorld(t)
	m := w.mover()
	data := objects(3)
	w.put("a", "o", data)
	for range 5 {
		w.apply(m, move("o", "a", "b", 1))
	}
	if w.known != 4 || w.repeats != 0 {
		t.Errorf("%d already applied, %d repeated outcomes, want 4 and none", w.known, w.repeats)
	}
	ok(t, m.Close())
	m = w.mover()
	w.apply(m, move("o", "a", "b", 1))
	// Another mover has no memory of it: it answers done, and the bus drops it.
	other := w.mover(func(o *Options) { o.Name, o.Dir = "other", t.TempDir() })
	w.apply(other, move("o", "a", "b", 1))
	if w.known != 5 || w.repeats != 1 || len(w.outcomes) != 1 {
		t.Errorf("%d already applied, %d repeated outcomes, %d outcomes, want 5, 1, 1", w.known, w.repeats, len(w.outcomes))
	}
	w.check("o", "b", 1, data)
}

// TestNotMoved: moves that can't be are answered with a reason, change nothing,
// and leave nothing behind.
func TestNotMoved(t *testing.T) {
	live := func(site string, version uint64) control.Location {
		return control.Location{Site: site, Version: version, State: control.Live}
	}
	pinned := live("a", 1)
	pinned.Pinned = true
	tests := map[string]struct {
		at     control.Location
		put    map[string]string // site: content
		move   control.Move
		status control.Status
		reason string
	}{
		"no data":          {move: move("o", "a", "b", 1), status: control.Failed, reason: ReasonSourceMissing},
		"data elsewhere":   {put: map[string]string{"c": "x"}, move: move("o", "a", "b", 1), status: control.Failed, reason: ReasonSourceMissing},
		"destination full": {put: map[string]string{"a": "x", "b": "y"}, move: move("o", "a", "b", 1), status: control.Failed, reason: ReasonOccupied},
		"old version":      {at: live("a", 4), put: map[string]string{"a": "x"}, move: move("o", "a", "b", 3), status: control.Refused, reason: ReasonOldVersion},
		"other site":       {at: live("c", 4), put: map[string]string{"a": "x", "c": "y"}, move: move("o", "a", "b", 5), status: control.Refused, reason: ReasonNotAtSource},
		"pinned":           {at: pinned, put: map[string]string{"a": "x"}, move: move("o", "a", "b", 5), status: control.Refused, reason: ReasonPinned},
		"from no site":     {move: move("o", "nowhere", "b", 1), status: control.Refused, reason: ReasonUnknownSite},
		"to no site":       {put: map[string]string{"a": "x"}, move: move("o", "a", "nowhere", 1), status: control.Refused, reason: ReasonUnknownSite},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.at.Site != "" {
				_, err := w.table.Set(t.Context(), "o", c.at, 0)
				ok(t, err)
			}
			for site, content := range c.put {
				w.put(site, "o", map[string]string{"object": content})
			}
			m := w.mover()
			if o := w.apply(m, c.move); o.Status != c.status || o.Reason != c.reason {
				t.Errorf("outcome %s %s, want %s %s", o.Status, o.Reason, c.status, c.reason)
			}
			if l := w.location("o"); l != c.at {
				t.Errorf("the location is now %+v", l)
			}
			for _, site := range sites {
				if content, there := c.put[site]; !there {
					if mark := w.mark(site, "o"); mark.State != objectstore.Absent {
						t.Errorf("site %s is left with a copy that is %v", site, mark)
					}
				} else if got := w.get(site, "o"); got["object"] != content || w.mark(site, "o") != (objectstore.Mark{}) {
					t.Errorf("site %s holds %v, %v", site, got, w.mark(site, "o"))
				}
			}
			if m.Open() != 0 || m.Pending() != 0 {
				t.Errorf("open %d, pending %d", m.Open(), m.Pending())
			}
		})
	}
}

// TestLeftovers: an aborted copy at the destination, of this move or of one
// before, is taken over and becomes equal to the source.
func TestLeftovers(t *testing.T) {
	for _, version := range []uint64{1, 3} {
		w := newWorld(t)
		data := map[string]string{"same": "same", "other": "right", "folder": "is a file now"}
		w.put("a", "o", data)
		left := objectstore.Mark{State: objectstore.Incoming, Version: version, By: "who died"}
		ok(t, w.stores["b"].Mark(t.Context(), "o", objectstore.Mark{State: objectstore.Absent}, left))
		ok(t, w.stores["b"].Mark(t.Context(), "o", left, objectstore.Mark{}))
		w.put("b", "o", map[string]string{"same": "same", "other": "wrong", "folder/x": "gone", "extra": "gone"})
		ok(t, w.stores["b"].Mark(t.Context(), "o", objectstore.Mark{}, left))
		if o := w.apply(w.mover(), move("o", "a", "b", 3)); o.Status != control.Done {
			t.Fatalf("outcome %+v", o)
		}
		w.check("o", "b", 3, data)
	}
}

// TestDecline: what is only advised is answered each time; what expired is
// answered once, and an aborted copy of it is removed.
func TestDecline(t *testing.T) {
	w := newWorld(t)
	m := w.mover()
	w.put("a", "o", objects(2))
	c := command(move("o", "a", "b", 1))
	n := 0
	count := func(_ context.Context, o control.Outcome) error {
		if o.Status != control.Advised {
			return fmt.Errorf("outcome %+v", o)
		}
		n++
		return nil
	}
	for range 2 {
		ok(t, m.Decline(t.Context(), c, control.Advised, count))
	}
	ok(t, w.stores["b"].Mark(t.Context(), "o", objectstore.Mark{State: objectstore.Absent}, objectstore.Mark{State: objectstore.Incoming, Version: 1, By: "x"}))
	ok(t, w.stores["a"].Mark(t.Context(), "o", objectstore.Mark{}, objectstore.Mark{State: objectstore.Retired, Version: 1, Site: "b"}))
	for range 2 {
		ok(t, m.Decline(t.Context(), c, control.Expired, w.answer))
	}
	if n != 2 || w.known != 1 || fmt.Sprint(statuses(w)) != "[o 1 expired ]" {
		t.Errorf("advised %d times, already applied %d, outcomes %q", n, w.known, statuses(w))
	}
	if mark := w.mark("b", "o"); mark.State != objectstore.Absent {
		t.Errorf("the aborted copy is %v", mark)
	}
	w.put("a", "o", map[string]string{"writers": "may write again"})
	if l := w.location("o"); l.Site != "a" || l.Version != 0 {
		t.Errorf("the location is %+v", l)
	}
}

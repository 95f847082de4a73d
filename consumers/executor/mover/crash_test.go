package mover

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"penstock/infra/objectstore"
	"penstock/schemas/control"
)

var errCrash = errors.New("the process dies here")

// crashAt returns a hook that lets the process die when a step is passed for the
// nth time. Whatever it does after that, it does as a dead one.
func crashAt(s step, nth int) func(step, *task) error {
	var mu sync.Mutex
	dead := false
	return func(now step, _ *task) error {
		mu.Lock()
		defer mu.Unlock()
		if now == s {
			nth--
		}
		if dead || now == s && nth == 0 {
			dead = true
			return errCrash
		}
		return nil
	}
}

type crash struct {
	at  step
	nth int
}

// crashes are all the points at which a move of n objects can die.
func crashes(n int) []crash {
	out := []crash{}
	for _, s := range []step{stepPlanned, stepMarked, stepCopied, stepHeld, stepFenced, stepFlipped, stepJournalled, stepSettled, stepAnswered, stepClosed} {
		out = append(out, crash{s, 1})
	}
	for i := range n {
		out = append(out, crash{stepObject, i + 1})
	}
	return out
}

// die lets a mover die in a move and returns the world after it.
func die(t *testing.T, w *world, c crash, mv control.Move) {
	t.Helper()
	m := w.mover(func(o *Options) { o.after = crashAt(c.at, c.nth) })
	err := m.Apply(t.Context(), command(mv), w.answer)
	if !errors.Is(err, errCrash) {
		t.Fatalf("no crash at %s %d: %v", c.at, c.nth, err)
	}
	ok(t, m.Close())
}

// TestCrashEverywhere lets the mover die after every step of a move. The one
// that comes back finishes it by itself; the command that comes again does
// nothing more.
func TestCrashEverywhere(t *testing.T) {
	data := objects(4)
	for _, c := range crashes(len(data)) {
		t.Run(fmt.Sprint(c.at, c.nth), func(t *testing.T) {
			w := newWorld(t)
			w.put("a", "o", data)
			die(t, w, c, move("o", "a", "b", 1))
			m := w.mover()
			if open := m.Open(); (open == 1) != (c.at != stepClosed) {
				t.Errorf("the mover comes back with %d open moves", open)
			}
			ok(t, m.Resume(t.Context(), w.answer))
			w.check("o", "b", 1, data)
			w.apply(m, move("o", "a", "b", 1))
			w.check("o", "b", 1, data)
			if got := fmt.Sprint(statuses(w)); got != "[o 1 done ]" || w.known != 1 {
				t.Errorf("outcomes %s, already applied %d", got, w.known)
			}
			if w.repeats > 0 && c.at != stepAnswered {
				t.Errorf("the outcome was sent again")
			}
			if n, err := m.Purge(t.Context()); n != 1 || err != nil {
				t.Errorf("purged %d, %v", n, err)
			}
			w.check("o", "b", 1, data)
			if mark := w.mark("a", "o"); mark.State != objectstore.Absent {
				t.Errorf("after the purge the old copy is %v", mark)
			}
		})
	}
}

// TestCrashTwice lets the mover die, come back, and die again at every later
// point.
func TestCrashTwice(t *testing.T) {
	w := newWorld(t)
	data := objects(2)
	for _, first := range crashes(len(data)) {
		for _, second := range crashes(len(data)) {
			owner := fmt.Sprintf("%v %v", first, second)
			w.put("a", owner, data)
			die(t, w, first, move(owner, "a", "b", 1))
			m := w.mover(func(o *Options) { o.after = crashAt(second.at, second.nth) })
			if err := m.Resume(t.Context(), w.answer); err != nil && !errors.Is(err, errCrash) {
				t.Fatalf("%s: %v", owner, err)
			}
			ok(t, m.Close())
			m = w.mover()
			ok(t, m.Resume(t.Context(), w.answer))
			w.apply(m, move(owner, "a", "b", 1))
			ok(t, m.Close())
			w.check(owner, "b", 1, data)
			w.wantDone(owner)
		}
	}
}

// wantDone fails unless the owner's first move has one outcome, done.
func (w *world) wantDone(owner string) {
	w.t.Helper()
	if o, there := w.outcomes[ownerVersion{owner, 1}]; !there || o.Status != control.Done {
		w.t.Errorf("owner %s: outcome %+v", owner, o)
	}
}

// TestCrashForGood: the mover that died never comes back, or without its journal;
// another one gets the command.
func TestCrashForGood(t *testing.T) {
	data := objects(3)
	heirs := map[string]func(*testing.T, *world, string) *Mover{
		"another": func(t *testing.T, w *world, owner string) *Mover {
			return w.mover(func(o *Options) { o.Name, o.Dir = "heir", filepath.Join(w.folder, owner) })
		},
		"journal lost": func(t *testing.T, w *world, _ string) *Mover {
			ok(t, os.RemoveAll(w.folder))
			return w.mover()
		},
	}
	for name, heir := range heirs {
		w := newWorld(t)
		for _, c := range crashes(len(data)) {
			owner := fmt.Sprintf("%s %v", name, c)
			w.put("a", owner, data)
			die(t, w, c, move(owner, "a", "b", 1))
			m := heir(t, w, owner)
			ok(t, m.Resume(t.Context(), w.answer))
			w.apply(m, move(owner, "a", "b", 1))
			w.check(owner, "b", 1, data)
			w.wantDone(owner)
			if n, err := m.Purge(t.Context()); n != 1 || err != nil {
				t.Errorf("%s: purged %d, %v", owner, n, err)
			}
			ok(t, m.Close())
			w.check(owner, "b", 1, data)
		}
	}
}

// TestCrashOfAReturn: the same on the way back to a retired copy whose deletion
// was planned.
func TestCrashOfAReturn(t *testing.T) {
	for _, c := range crashes(1) {
		w := newWorld(t)
		data := objects(3)
		w.put("a", "o", data)
		m := w.mover()
		w.apply(m, move("o", "a", "b", 1))
		ok(t, m.Close())
		w.put("b", "o", map[string]string{"dir1/object-1": "changed"})
		data["dir1/object-1"] = "changed"
		die(t, w, c, move("o", "b", "a", 2))
		m = w.mover()
		ok(t, m.Resume(t.Context(), w.answer))
		w.check("o", "a", 2, data)
		if n, err := m.Purge(t.Context()); n != 1 || err != nil {
			t.Errorf("%v: purged %d, %v", c, n, err)
		}
		w.check("o", "a", 2, data)
	}
}

// TestCrashWithWriters: between a crash and the return, writers who follow the
// marks write where they may, and nothing they were promised is lost.
func TestCrashWithWriters(t *testing.T) {
	for _, c := range crashes(2) {
		w := newWorld(t)
		data := objects(2)
		w.put("a", "o", data)
		want := maps.Clone(data)
		die(t, w, c, move("o", "a", "b", 1))
		for _, site := range []string{"a", "b"} {
			name := "after the crash at " + site
			_, err := w.stores[site].Put(t.Context(), "o", name, strings.NewReader("x"), objectstore.Mark{})
			switch {
			case err == nil:
				want[name] = "x"
			case !errors.Is(err, objectstore.ErrMarked):
				// b is absent before the move has marked it: nobody sends a
				// writer there then, and a write would occupy it.
				t.Fatal(err)
			}
			if site == "a" && c.at == stepPlanned {
				break
			}
		}
		m := w.mover()
		ok(t, m.Resume(t.Context(), w.answer))
		w.apply(m, move("o", "a", "b", 1))
		w.check("o", "b", 1, want)
	}
}

// TestExpiredAfterCrash: a move whose mover died and which expires before another
// gets it is undone if it hadn't flipped, and done if it had.
func TestExpiredAfterCrash(t *testing.T) {
	w := newWorld(t)
	data := objects(2)
	for _, c := range crashes(len(data)) {
		owner := fmt.Sprint(c)
		w.put("a", owner, data)
		die(t, w, c, move(owner, "a", "b", 1))
		flipped := w.location(owner).Site == "b"
		heir := w.mover(func(o *Options) { o.Name, o.Dir = "heir", filepath.Join(w.folder, owner) })
		ok(t, heir.Decline(t.Context(), command(move(owner, "a", "b", 1)), control.Expired, w.answer))
		ok(t, heir.Close())
		o := w.outcomes[ownerVersion{owner, 1}]
		if flipped {
			w.check(owner, "b", 1, data)
			w.wantDone(owner)
			continue
		}
		if o.Status != control.Expired {
			t.Errorf("%v: outcome %+v", c, o)
		}
		if mark := w.mark("b", owner); mark.State != objectstore.Absent {
			t.Errorf("%v: b is left as %v", c, mark)
		}
		w.put("a", owner, map[string]string{"open": "again"})
		if got := w.get("a", owner); len(got) != len(data)+1 {
			t.Errorf("%v: a holds %v", c, got)
		}
	}
}

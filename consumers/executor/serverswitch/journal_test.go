package serverswitch

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/infra/clock"
)

// loseJournal has the journal not be written any more, until what stands in its place is
// removed.
func (g *world) loseJournal() {
	g.t.Helper()
	name := filepath.Join(g.o.Folder, journalName)
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	for { // until no file has taken its place in between
		if err := os.Rename(name, name+".away"); err != nil && !errors.Is(err, os.ErrNotExist) {
			g.t.Fatal(err)
		}
		err := os.MkdirAll(filepath.Join(name, "x"), 0o755)
		if err == nil {
			return
		}
		if !errors.Is(err, syscall.ENOTDIR) {
			g.t.Fatal(err)
		}
	}
}

// TestNoJournal: a step that can't be noted is not taken, and a table comes again.
func TestNoJournal(t *testing.T) {
	t.Parallel()
	m := newMachines("a", "b")
	m.running["b"] = 1
	g := open(t, m, "a b", nil).run()
	done := g.send(1, "a/b")
	g.in("b", Draining)
	name := filepath.Join(g.o.Folder, journalName)
	g.loseJournal()
	m.edit(func() { m.running["b"] = 0 })
	for range 3 {
		wait1(t, g.counts.missed)
	}
	if err := g.w.Apply(g.ctx, table(2, "b/a"), g.answer); !errors.Is(err, ErrJournal) || !errors.Is(err, executor.ErrAgain) {
		t.Errorf("a table: %v", err)
	}
	if told := m.hooks(); len(told) > 0 {
		t.Errorf("nothing is noted, and hooks were called: %v", told)
	}
	if err := os.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
	if err := wait1(t, done); err != nil {
		t.Fatal(err)
	}
	g.apply(2, "b/a") // it comes again
	g.expect("all is noted", []string{"off a"}, []string{"1 refused", "2 done"})
	var kept book
	b, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(b, &kept)
	}
	if err != nil || kept.Sites[site1].Servers["a"].Phase != Off {
		t.Errorf("%s, %v", b, err)
	}
}

// TestNoJournalForATry: a try for which there is nothing to note waits too, if what came
// before it could not be kept.
func TestNoJournalForATry(t *testing.T) {
	t.Parallel()
	at := clock.NewManual(time.Unix(1e9, 0))
	m := newMachines("a")
	m.unready["b"] = true
	g := open(t, m, "a b", func(o *Options) { o.Clock, o.ReadyWithin, o.Look, o.Pause = at, time.Minute, time.Second, time.Second }).run()
	done := g.send(1, "a b/")
	calls := func() (n int) {
		m.edit(func() { n = len(m.calls) })
		return n
	}
	g.in("b", Warming)
	g.loseJournal()
	g.pass(at, time.Second, "the try is put off", func() bool { return g.counts.of("journal ") >= 3 })
	if n := calls(); n != 1 {
		t.Errorf("%d calls of hooks, expected the first", n)
	}
	if err := os.RemoveAll(filepath.Join(g.o.Folder, journalName)); err != nil {
		t.Fatal(err)
	}
	m.edit(func() { m.unready["b"] = false })
	g.pass(at, time.Second, "answered", func() bool { return len(g.answered()) == 1 })
	if err := wait1(t, done); err != nil {
		t.Fatal(err)
	}
	if n := calls(); n != 2 {
		t.Errorf("%d calls of hooks, expected another", n)
	}
}

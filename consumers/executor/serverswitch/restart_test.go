package serverswitch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/infra/lease"
	"penstock/schemas/control"
)

// copyJournal is what a kill would leave: the journal as it is at that instant, in a folder
// of its own.
func copyJournal(t *testing.T, folder string) string {
	t.Helper()
	to := t.TempDir()
	b, err := os.ReadFile(filepath.Join(folder, journalName))
	if err == nil {
		err = os.WriteFile(filepath.Join(to, journalName), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// TestCrashAtEachStep copies the journal at each step of a table, as a kill would leave it,
// and begins again from there, with the machines as they were.
func TestCrashAtEachStep(t *testing.T) {
	t.Parallel()
	for _, blind := range []bool{false, true} {
		for _, step := range []struct {
			name string
			at   func(g *world) // brings the world there
		}{
			{"nothing is begun", func(g *world) { g.in("c", Starting) }},
			{"the hook for on was called", func(g *world) { wait1(g.t, g.m.called); g.m.edit(func() { g.m.on["c"] = true }) }},
			{"not ready yet", func(g *world) { g.in("c", Starting); g.free("on c"); g.in("c", Warming) }},
			{"draining", func(g *world) { g.free("on c"); g.m.edit(func() { g.m.unready["c"] = false }); g.in("a", Draining) }},
			{"the hook for off is to be called", func(g *world) {
				g.free("on c")
				g.m.edit(func() { g.m.unready["c"] = false; g.m.running["a"] = 0 })
				g.in("a", Stopping)
			}},
			{"the hook for off was called", func(g *world) {
				g.free("on c")
				g.m.edit(func() { g.m.unready["c"] = false; g.m.running["a"] = 0 })
				g.in("a", Stopping)
				g.m.edit(func() { g.m.on["a"] = false })
			}},
		} {
			name := step.name
			if blind {
				name += ", blind"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				m := newMachines("a", "b")
				m.blind = blind
				m.unready["c"], m.running["a"] = true, 1
				m.hang["on c"], m.hang["off a"] = make(chan struct{}), make(chan struct{})
				g := open(t, m, "a b c", func(o *Options) { o.Grace = time.Millisecond }).run()
				done := g.send(1, "b c/a")
				step.at(g)
				g.w.mu.Lock()
				folder := copyJournal(t, g.o.Folder)
				g.w.mu.Unlock()
				left := newMachines() // what the machines are after the kill
				left.blind = blind
				m.edit(func() {
					for name, on := range m.on {
						left.on[name] = on
					}
				})
				g.end()
				if err := wait1(t, done); !errors.Is(err, ErrStopped) || !errors.Is(err, executor.ErrAgain) {
					t.Errorf("the end: %v", err)
				}
				again := open(t, left, "a b c", func(o *Options) { o.Folder = folder }).run()
				again.apply(1, "b c/a") // its command comes again
				again.in("a", Off)
				again.in("c", On)
				if left.on["a"] || !left.on["b"] || !left.on["c"] || len(left.wrong) > 0 || !slices.Equal(again.answered(), []string{"1 done"}) {
					t.Errorf("%+v, %v, answers %v", left.on, left.wrong, again.answered())
				}
				for _, hook := range left.told {
					if hook != "on c" && hook != "off a" {
						t.Errorf("hooks %v", left.told)
					}
				}
			})
		}
	}
}

// free lets a hook that hangs go on.
func (g *world) free(what string) {
	g.m.edit(func() {
		if c := g.m.hang[what]; c != nil {
			close(c)
			delete(g.m.hang, what)
		}
	})
}

// TestKeyOverRestart: the tries of one switch have one key, also after a crash.
func TestKeyOverRestart(t *testing.T) {
	t.Parallel()
	m := newMachines("a")
	m.hang["on b"] = make(chan struct{})
	g := open(t, m, "a b", func(o *Options) { o.Grace = time.Millisecond }).run()
	done := g.send(1, "a b/")
	wait1(t, m.called)
	g.end()
	_ = wait1(t, done)
	m.edit(func() { delete(m.hang, "on b") })
	g.begin()
	g.run()
	g.apply(1, "a b/")
	if len(m.calls) != 2 || m.calls[0] != m.calls[1] {
		t.Errorf("calls %q", m.calls)
	}
	g.expect("", []string{"on b"}, []string{"1 done"})
	g.end()
	g.begin()
	g.run()
	g.apply(1, "a b/") // delivered once more
	g.expect("", []string{"on b"}, []string{"1 done", "1 already-applied"})
}

// TestStop: Run lets a hook in flight end, and what waits for a table is told at once.
func TestStop(t *testing.T) {
	t.Parallel()
	m := newMachines("a")
	hang := make(chan struct{})
	m.hang["on b"] = hang
	g := open(t, m, "a b", nil).run()
	done := g.send(1, "a b/")
	wait1(t, m.called)
	ended := make(chan struct{})
	go func() { defer close(ended); g.stop() }()
	if err := wait1(t, done); !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
	select {
	case <-ended:
		t.Error("the hook was cut off")
	default:
	}
	close(hang)
	wait1(t, ended)
	g.expect("", []string{"on b"}, nil)
	if g.w.State()[0].Servers[1].Phase != Warming {
		t.Errorf("%+v", g.w.State())
	}
	if err := g.w.Run(g.ctx); !errors.Is(err, ErrOptions) {
		t.Errorf("a second Run: %v", err)
	}
	g.end()

	// A command that is cut off comes again too.
	g.begin()
	ctx, cancel := context.WithCancel(g.ctx)
	cancel()
	if err := g.w.Apply(ctx, table(2, "b/a"), g.answer); !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
}

// TestResume takes a later table up that the bus holds, asks servers what they are, and
// stops none before.
func TestResume(t *testing.T) {
	t.Parallel()
	m := newMachines("a", "b")
	g := open(t, m, "a b c", nil).run()
	g.apply(1, "a b/c")
	g.end()
	// Another process has turned b off and c on since, by tables 2 and 3.
	m.edit(func() { m.on["b"], m.on["c"] = false, true })
	now := time.Now()
	advice, expired, unknown := table(4, "b/a"), table(5, "b/a"), table(6, "x/a")
	advice.Mode, expired.TTL = control.Advise, "1ms"
	g.past = []sent{{table(2, "a c/b"), now}, {table(3, "a c/b"), now}, {advice, now}}
	g.begin()
	g.runOnly()
	g.in("a", On)
	if err := g.w.Resume(g.ctx, g.answer); err != nil {
		t.Fatal(err)
	}
	g.apply(3, "a c/b")
	g.expect("", nil, []string{"1 done", "3 done"})
	g.end()

	// What can't be followed, or is too old, is not taken up.
	g.past = append(g.past, sent{expired, now.Add(-time.Hour)})
	g.begin()
	g.run()
	g.end()
	g.past = []sent{{unknown, now}}
	g.begin()
	g.run()
	if e := g.w.State()[0].Epoch; e != 3 {
		t.Errorf("epoch %d", e)
	}
	g.end()
	// A history that can't be read.
	g.o.History = func(context.Context, func(*control.Command, time.Time) error) error { return errors.New("no bus") }
	g.begin()
	if err := g.w.Resume(g.ctx, g.answer); err == nil {
		t.Error("it has resumed")
	}
}

// TestNoStopBeforeResume: as long as the bus can't be read, a later table may want a server
// on: what is to be on is turned on, and nothing off.
func TestNoStopBeforeResume(t *testing.T) {
	t.Parallel()
	m := newMachines("a", "b")
	m.running["b"] = 1
	g := open(t, m, "a b c", nil).run()
	done := g.send(1, "a c/b")
	g.in("b", Draining)
	g.end()
	_ = wait1(t, done)
	m.edit(func() { m.running["b"], m.on["c"] = 0, false })
	g.begin()
	g.runOnly()
	g.until("c is on again", func(s *site) bool { return g.counts.of("switched on/machines") == 2 && s.unitOf("c").memo.Phase == On })
	g.in("b", Draining)
	g.expect("before", []string{"on c", "on c"}, nil)
	g.past = []sent{{table(2, "a b/c"), time.Now()}}
	if err := g.w.Resume(g.ctx, g.answer); err != nil {
		t.Fatal(err)
	}
	g.apply(2, "a b/c")
	g.expect("after", []string{"on c", "on c", "off c"}, []string{"2 done"})
}

// TestFolder is one process's, and what is in it has to be readable.
func TestFolder(t *testing.T) {
	t.Parallel()
	g := open(t, newMachines("a"), "a", nil)
	if _, err := New(g.o); !errors.Is(err, ErrInUse) {
		t.Errorf("a second one: %v", err)
	}
	g.end()
	g.begin() // it was given free
	g.end()
	name := filepath.Join(g.o.Folder, journalName)
	for _, text := range []string{"{", `{"version":2}`, "null"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(g.o); !errors.Is(err, ErrJournal) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := os.WriteFile(name, []byte(`{"version":1,"sites":{"east":{"servers":{"a":{},"gone":{"phase":"on"}}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	g.begin()
	if s := g.w.State()[0]; len(s.Servers) != 1 || s.Servers[0].Phase != Unknown {
		t.Errorf("%+v", s)
	}
	g.end()
	o := g.o
	o.Folder = name
	if _, err := New(o); !errors.Is(err, ErrJournal) {
		t.Errorf("a file for a folder: %v", err)
	}
}

// TestStillCut: what a drain was cut off with is told, also by the process that comes after
// the one that had it stopped.
func TestStillCut(t *testing.T) {
	t.Parallel()
	m := newMachines("a", "b")
	m.running["a"] = 3
	m.hang["off a"] = make(chan struct{})
	g := open(t, m, "a b", func(o *Options) { o.Drain, o.Grace = time.Millisecond, time.Millisecond }).run()
	done := g.send(1, "b/a")
	wait1(t, m.called)
	m.edit(func() { m.on["a"] = false }) // it was done, and the hook did not come back
	g.end()
	_ = wait1(t, done)
	g.begin()
	g.run()
	g.apply(1, "b/a")
	if got := g.reasons["1 done"]; got != "a stopped at the deadline of its drain: 3 in service" {
		t.Errorf("told %q", got)
	}
}

// TestStoppedAtOnce: a Run that ends before it has begun tells those who wait, too; and a
// turn that is lost cuts hooks off.
func TestStoppedAtOnce(t *testing.T) {
	t.Parallel()
	for range 20 {
		g := open(t, newMachines("a"), "a b", nil)
		done := g.send(1, "a b/")
		ctx, cancel := context.WithCancel(g.ctx)
		cancel()
		if err := g.w.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if err := wait1(t, done); !errors.Is(err, ErrStopped) {
			t.Error(err)
		}
	}
	m := newMachines("a")
	m.hang["on b"] = make(chan struct{})
	g := open(t, m, "a b", nil)
	if err := g.w.Resume(g.ctx, g.answer); err != nil {
		t.Fatal(err)
	}
	ctx, lose := context.WithCancelCause(g.ctx)
	ended := make(chan error, 1)
	go func() { ended <- g.w.Run(ctx) }()
	done := g.send(1, "a b/")
	wait1(t, m.called)
	lose(lease.ErrLost)
	if err := wait1(t, ended); err != nil {
		t.Error(err)
	}
	_ = wait1(t, done)
	g.expect("cut off", nil, nil)
	if s := g.w.State()[0].Servers[1]; s.Phase != Starting || s.Tries != 0 {
		t.Errorf("%+v", s)
	}
}

// TestUnsure: a server that nobody knew of, and that was to be stopped, is turned on when
// it is wanted on after all: it may not run.
func TestUnsure(t *testing.T) {
	t.Parallel()
	m := newMachines("b")
	m.blind = true
	m.running["a"] = 1
	g := open(t, m, "a b", nil).run()
	first := g.send(1, "b/a")
	g.in("a", Draining)
	g.apply(2, "a b/")
	_ = wait1(t, first)
	if got := g.m.hooks(); !slices.Equal(got, []string{"on a"}) {
		t.Errorf("hooks %v", got)
	}
}

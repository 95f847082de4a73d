package serverswitch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/infra/clock"
	"penstock/schemas/control"
)

// TestOnBeforeOff: what is to be on is on before anything is drained; what has requests is
// stopped once they are done; a table that comes again has no further effect.
func TestOnBeforeOff(t *testing.T) {
	t.Parallel()
	m := newMachines("a", "b")
	m.unready["c"] = true
	m.running["a"] = 2
	g := open(t, m, "a b c", nil).run()
	done := g.send(1, "b c/a")
	g.in("c", Warming)
	g.in("a", Warming) // it runs; nobody has told the switch
	g.expect("c is not ready", []string{"on c"}, nil)
	m.edit(func() { m.unready["c"] = false })
	g.in("a", Draining)
	g.expect("a has requests", []string{"on c"}, nil)
	g.until("what a waits for is told", func(s *site) bool { return s.unitOf("a").detail == "2 in service" })
	m.edit(func() { m.running["a"] = 0 })
	if err := wait1(t, done); err != nil {
		t.Fatal(err)
	}
	g.expect("all is as wanted", []string{"on c", "off a"}, []string{"1 done"})
	g.apply(1, "b c/a")
	g.apply(1, "b c/a")
	g.expect("again", []string{"on c", "off a"}, []string{"1 done", "1 already-applied", "1 already-applied"})
	if m.epochs["off a"] != 1 {
		t.Errorf("epochs %v", m.epochs)
	}
}

// TestFailing: a server that can't be turned on is tried with pauses, then its table is
// answered failed, with its name; what others can do is done. When it works after all the
// table is done.
func TestFailing(t *testing.T) {
	t.Parallel()
	m := newMachines("a", "b")
	m.fail["on c"] = -1
	g := open(t, m, "a b c", nil).run()
	g.apply(1, "b c/a")
	g.in("a", Off)
	g.expect("c has failed", []string{"off a"}, []string{"1 failed c"})
	if r := g.reasons["1 failed"]; !strings.Contains(r, "c: the machine says no") {
		t.Errorf("reason %q", r)
	}
	if n := g.counts.of("hook_failures on/machines"); n < 4 {
		t.Errorf("it was given up after %d tries", n)
	}
	for range 3 { // it goes on trying
		for wait1(t, m.called) != "on c" {
		}
	}
	m.edit(func() { m.fail["on c"] = 0 })
	g.until("it is answered", func(s *site) bool { return s.page.Answered == control.Done })
	g.expect("c works", []string{"off a", "on c"}, []string{"1 failed c", "1 done"})
	m.edit(func() {
		keys := map[string]bool{}
		for _, call := range m.calls {
			if strings.HasPrefix(call, "on c") {
				keys[call] = true
			}
		}
		if len(keys) != 1 {
			t.Errorf("tries of one switch have the keys %v", keys)
		}
	})
}

// TestNothingElseIsOn: the last server that is on stays, whatever becomes of the others.
func TestNothingElseIsOn(t *testing.T) {
	t.Parallel()
	m := newMachines("a")
	m.fail["on b"] = -1
	g := open(t, m, "a b", nil).run()
	g.apply(1, "b/a")
	g.expect("b has failed", nil, []string{"1 failed a,b"})
	if r := g.reasons["1 failed"]; !strings.Contains(r, "a: nothing else is on") {
		t.Errorf("reason %q", r)
	}
	m.edit(func() { m.fail["on b"] = 0 })
	g.until("it is answered", func(s *site) bool { return s.page.Answered == control.Done })
	g.expect("b works", []string{"on b", "off a"}, []string{"1 failed a,b", "1 done"})
}

// TestLeast servers stay on, of those that are wanted on.
func TestLeast(t *testing.T) {
	t.Parallel()
	m := newMachines("a", "b", "c")
	g := open(t, m, "a b c", func(o *Options) { o.Least = 2 }).run()
	g.apply(1, "b/a c")
	g.expect("one is too few", nil, []string{"1 failed a,c"})
	g.apply(2, "a b/c")
	g.expect("two are enough", []string{"off c"}, []string{"1 failed a,c", "2 done"})
}

// TestOffFails: a server that can't be turned off is named; one that another table wants
// on after that has not failed.
func TestOffFails(t *testing.T) {
	t.Parallel()
	m := newMachines("a", "b")
	m.fail["off a"] = -1
	g := open(t, m, "a b", nil).run()
	g.apply(1, "b/a")
	g.apply(2, "a b/")
	g.expect("", []string{"on a"}, []string{"1 failed a", "2 done"})
}

// TestFlip: off and on again while requests are at a server calls no hook.
func TestFlip(t *testing.T) {
	t.Parallel()
	m := newMachines("a", "b")
	m.running["a"] = 1
	g := open(t, m, "a b", nil).run()
	var before <-chan error
	for epoch := uint64(1); epoch < 8; epoch += 2 {
		first := g.send(epoch, "b/a")
		g.in("a", Draining)
		g.apply(epoch+1, "a b/")
		if before = first; wait1(t, before) != nil {
			t.Fatal("the superseded table was not answered")
		}
	}
	g.mu.Lock()
	slices.Sort(g.answers) // two tables are answered at once
	g.mu.Unlock()
	g.expect("", nil, []string{"1 refused", "2 done", "3 refused", "4 done", "5 refused", "6 done", "7 refused", "8 done"})
	if g.reasons["7 refused"] != "older-epoch" {
		t.Errorf("reasons %v", g.reasons)
	}
	g.apply(4, "b/a")
	if got := g.answered(); got[len(got)-1] != "4 refused" {
		t.Errorf("an older table: %v", got)
	}
}

// TestFlipInAHook: a hook that was begun is let end, then what is wanted by that time is
// done; never a part of each.
func TestFlipInAHook(t *testing.T) {
	t.Parallel()
	m := newMachines("a", "b")
	hang := make(chan struct{})
	m.hang["off a"] = hang
	g := open(t, m, "a b", nil).run()
	first := g.send(1, "b/a")
	for wait1(t, m.called) != "off a" {
	}
	second := g.send(2, "a b/")
	if err := wait1(t, first); err != nil {
		t.Fatal(err)
	}
	g.expect("it hangs", nil, []string{"1 refused"})
	third := g.send(3, "b/a")
	_ = wait1(t, second)
	fourth := g.send(4, "a b/")
	_ = wait1(t, third)
	close(hang)
	if err := wait1(t, fourth); err != nil {
		t.Fatal(err)
	}
	g.expect("", []string{"off a", "on a"}, []string{"1 refused", "2 refused", "3 refused", "4 done"})
}

// TestUnknownServer: a table that can't be followed is rejected whole, and stays so.
func TestUnknownServer(t *testing.T) {
	t.Parallel()
	m := newMachines("a", "b")
	g := open(t, m, "a b", nil).run()
	g.apply(1, "a b/")
	g.apply(2, "a/b x")
	g.apply(2, "a/b x")
	g.expect("", nil, []string{"1 done", "2 failed", "2 failed"})
	if r := g.reasons["2 failed"]; r != `"x": a server that is not configured` {
		t.Errorf("reason %q", r)
	}
	g.apply(3, "a/b")
	g.expect("", []string{"off b"}, []string{"1 done", "2 failed", "2 failed", "3 done"})
}

// TestOthersTables: those of other sites, and such as are only advice, or too late.
func TestOthersTables(t *testing.T) {
	t.Parallel()
	m := newMachines("a", "b")
	g := open(t, m, "a b", nil).run()
	other := table(1, "x/y")
	other.Scope = "west"
	for _, c := range []*control.Command{other, {Kind: control.Servers, Scope: site1, Epoch: 1, TTL: "1h"}} {
		if err := g.w.Apply(g.ctx, c, g.answer); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []*control.Command{other, table(1, "a/b")} {
		for _, s := range []control.Status{control.Advised, control.Expired} {
			if err := g.w.Decline(g.ctx, c, s, g.answer); err != nil {
				t.Error(err)
			}
		}
	}
	g.expect("", nil, []string{"1 advised", "1 failed", "1 advised", "1 expired", "1 advised", "1 expired"})
	if err := g.w.Apply(g.ctx, &control.Command{Scope: site1, TTL: "x"}, g.answer); err == nil {
		t.Error("a ttl that is none was taken")
	}
	if g.w.Kind() != control.Servers {
		t.Error(g.w.Kind())
	}
}

// TestPartial: a server that a table doesn't name is left alone, and a backend of nobody is
// as it is wanted.
func TestPartial(t *testing.T) {
	t.Parallel()
	m := newMachines("a", "b")
	g := open(t, m, "a b c", func(o *Options) {
		o.Servers = append(o.Servers, Server{Name: "d", Site: site1, Backend: None{}}, Server{Name: "e", Site: site1, Backend: None{}})
	}).run()
	g.apply(1, "a d/e")
	g.apply(2, "d/a")
	g.expect("", []string{"off a"}, []string{"1 done", "2 done"})
	if p, err := (None{}).Observe(g.ctx, Server{}); p != Unseen || err != nil || (None{}).Switch(g.ctx, Order{}) != nil || (None{}).Name() != "none" {
		t.Error("of none")
	}
	want := []ServerState{
		{Server: "a", Backend: "machines", Wanted: "off", Phase: Off, Observed: "off"},
		{Server: "b", Backend: "machines", Phase: Warming, Observed: "on"},
		{Server: "c", Backend: "machines", Phase: Off, Observed: "off"},
		{Server: "d", Backend: "none", Wanted: "on", Phase: Unknown, Observed: "unseen"},
		{Server: "e", Backend: "none", Phase: Unknown, Observed: "unseen"},
	}
	g.in("b", On)
	state := g.w.State()
	if len(state) != 1 || state[0].Site != site1 || state[0].Epoch != 2 || !state[0].Settled || len(state[0].Servers) != len(want) {
		t.Fatalf("%+v", state)
	}
	want[1].Phase = On
	for i, got := range state[0].Servers {
		got.Since, got.Until = time.Time{}, time.Time{}
		if i == 0 {
			got.Observed = "off" // it may not have been asked again yet
		}
		if got != want[i] {
			t.Errorf("%+v, expected %+v", got, want[i])
		}
	}
}

// TestExpires: when a table's ttl is over all servers are on, or all stays.
func TestExpires(t *testing.T) {
	t.Parallel()
	for expired, want := range map[Expiry][]string{AllOn: {"off a", "on a"}, Keep: {"off a"}} {
		at := clock.NewManual(time.Unix(1e9, 0))
		m := newMachines("a", "b", "c")
		m.running["c"] = 1
		g := open(t, m, "a b c", func(o *Options) { o.Clock, o.Expired, o.Drain = at, expired, 10_000*time.Hour }).run()
		done := g.send(1, "b/a c")
		g.pass(at, time.Millisecond, "a off", func() bool { return g.counts.of("switched off/machines") == 1 })
		at.Advance(1000 * time.Hour)
		if err := wait1(t, done); err != nil {
			t.Fatal(err)
		}
		g.pass(at, time.Millisecond, "at rest", func() bool {
			s := g.w.State()[0]
			return s.Lapsed && s.Servers[2].Phase == On && (expired == Keep || s.Servers[0].Phase == On)
		})
		g.expect(string(expired), want, []string{"1 expired"})
		if g.counts.of("lapsed ") != 1 || expired == AllOn && m.epochs["on a"] != 0 {
			t.Errorf("%s: %v, %v", expired, g.counts.all, m.epochs)
		}
		next := g.send(2, "a b/c")
		m.edit(func() { m.running["c"] = 0 })
		g.pass(at, time.Millisecond, "table 2", func() bool { return len(g.answered()) == 2 })
		if err := wait1(t, next); err != nil || g.answered()[1] != "2 done" {
			t.Errorf("%s: %v, %v", expired, g.answered(), err)
		}
	}
}

// TestDeadline: a drain ends at its deadline, which is counted and told.
func TestDeadline(t *testing.T) {
	t.Parallel()
	at := clock.NewManual(time.Unix(1e9, 0))
	m := newMachines("a", "b")
	m.running["a"] = 3
	g := open(t, m, "a b", func(o *Options) { o.Clock, o.Drain, o.Look = at, time.Minute, time.Second }).run()
	done := g.send(1, "b/a")
	g.pass(at, time.Second, "answered", func() bool { return len(g.answered()) == 1 })
	if err := wait1(t, done); err != nil {
		t.Fatal(err)
	}
	if d := at.Now().Sub(time.Unix(1e9, 0)); d < time.Minute {
		t.Errorf("it was stopped after %v", d)
	}
	if g.reasons["1 done"] != "a stopped at the deadline of its drain: 3 in service" || g.counts.of("drain_cut machines") != 1 {
		t.Errorf("%v, %v", g.reasons, g.counts.all)
	}
	if !slices.Equal(m.wrong, []string{"a was stopped with 3 requests"}) {
		t.Error(m.wrong)
	}
}

// TestNotReady: a server that is not ready in time is turned on anew, under another key,
// and fails in the end.
func TestNotReady(t *testing.T) {
	t.Parallel()
	at := clock.NewManual(time.Unix(1e9, 0))
	m := newMachines("a")
	m.unready["b"] = true
	g := open(t, m, "a b", func(o *Options) {
		o.Clock, o.ReadyWithin, o.Look, o.Tries, o.Pause, o.MostPause, o.Every = at, time.Minute, time.Second, 2, time.Second, time.Second, time.Hour
	}).run()
	done := g.send(1, "a b/")
	g.pass(at, time.Second, "answered", func() bool { return len(g.answered()) == 1 })
	if err := wait1(t, done); err != nil {
		t.Fatal(err)
	}
	if r := g.reasons["1 failed"]; r != "b: not ready in 1m0s: connection refused" || g.counts.of("not_ready machines") < 2 {
		t.Errorf("%q, %v", r, g.counts.all)
	}
	m.edit(func() {
		if len(m.calls) < 2 || m.calls[0] == m.calls[1] {
			t.Errorf("calls %q", m.calls)
		}
	})
}

// TestHangingHook: its time is over, which is a failure like others.
func TestHangingHook(t *testing.T) {
	t.Parallel()
	m := newMachines("a")
	m.hang["on b"] = make(chan struct{})
	g := open(t, m, "a b", func(o *Options) { o.Timeout, o.Tries = 20*time.Millisecond, 2 }).run()
	g.apply(1, "a b/")
	if r := g.reasons["1 failed"]; !strings.Contains(r, "it took too long") {
		t.Errorf("%v", g.reasons)
	}
	g.apply(2, "a/b")
	g.expect("", []string{"off b"}, []string{"1 failed b", "2 done"})
}

// TestLater: what a backend puts off is no failure.
func TestLater(t *testing.T) {
	t.Parallel()
	m := newMachines("a", "b")
	b := &later{machines: m, left: 50}
	g := open(t, m, "a b", func(o *Options) {
		o.Tries = 1
		for i := range o.Servers {
			o.Servers[i].Backend = b
		}
	}).run()
	g.apply(1, "a/b")
	g.expect("", []string{"off b"}, []string{"1 done"})
	if !slices.Equal(b.wanted, []string{"a"}) || !slices.Equal(b.up, []string{"a"}) {
		t.Errorf("wanted %v, up %v", b.wanted, b.up)
	}
}

type later struct {
	*machines
	left       int
	up, wanted []string
}

func (l *later) Switch(ctx context.Context, o Order) error {
	if l.left--; l.left > 0 {
		return errors.Join(errors.New("another is first"), ErrLater)
	}
	l.up, l.wanted = o.Up(), o.Wanted()
	return l.machines.Switch(ctx, o)
}

// TestOptions that can't work, and what they are by default.
func TestOptions(t *testing.T) {
	t.Parallel()
	g := open(t, newMachines(), "a b", nil)
	for name, spoil := range map[string]func(o *Options){
		"drained": func(o *Options) { o.Drained = nil }, "folder": func(o *Options) { o.Folder = "" }, "history": func(o *Options) { o.History = nil },
		"ready": func(o *Options) { o.Ready = nil }, "servers": func(o *Options) { o.Servers = nil }, "time": func(o *Options) { o.Pause = -1 },
		"least": func(o *Options) { o.Least = -1 }, "expired": func(o *Options) { o.Expired = "off" },
		"nameless": func(o *Options) { o.Servers = []Server{{Site: "a", Backend: None{}}} },
		"twice":    func(o *Options) { o.Servers = append(o.Servers, o.Servers[0]) },
		"no hook":  func(o *Options) { o.Servers = []Server{{Site: "a", Name: "a"}} },
	} {
		o := g.o
		o.Folder = t.TempDir()
		spoil(&o)
		if _, err := New(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o, err := Options{Drained: g.o.Drained, History: g.o.History, Ready: g.o.Ready, Folder: "x", Servers: g.o.Servers}.complete()
	if err != nil || o.Tries != 4 || o.Least != 1 || o.Drain != 5*time.Minute || o.Expired != AllOn || o.Clock == nil || o.Metrics == nil {
		t.Errorf("%+v, %v", o, err)
	}
	if got := Power(9).String(); got != "on" {
		t.Error(got)
	}
}

var _ executor.Metrics = (*counts)(nil)

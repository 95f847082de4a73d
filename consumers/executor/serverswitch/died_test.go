package serverswitch

import (
	"slices"
	"testing"
	"time"

	"penstock/schemas/control"
)

// TestDrift: a server that somebody else has turned off, or on, is as it is wanted again.
func TestDrift(t *testing.T) {
	t.Parallel()
	m := newMachines("a", "b", "c")
	g := open(t, m, "a b c", nil).run()
	g.apply(1, "a b/c")
	m.edit(func() { m.on["a"] = false })
	g.until("a is on again", func(s *site) bool { return g.counts.of("switched on/machines") == 1 && s.unitOf("a").memo.Phase == On })
	m.edit(func() { m.on["c"] = true; m.running["c"] = 1 })
	g.in("c", Draining)
	m.edit(func() { m.running["c"] = 0 })
	g.in("c", Off)
	g.expect("", []string{"off c", "on a", "off c"}, []string{"1 done"})
	if g.counts.of("drifted on") != 1 || g.counts.of("drifted off") != 1 {
		t.Errorf("%v", g.counts.all)
	}
}

// TestBlind: where nobody can tell what servers are, those that are ready are on, and
// others are told.
func TestBlind(t *testing.T) {
	t.Parallel()
	m := newMachines("a", "d")
	m.blind = true
	g := open(t, m, "a b c d", nil).run()
	g.apply(1, "a b/c d")
	told := g.m.hooks()
	if len(told) != 3 || told[0] != "on b" || !slices.Contains(told, "off c") || !slices.Contains(told, "off d") {
		t.Errorf("hooks %v", told)
	}
	g.expect("", told, []string{"1 done"})
}

// TestAServerThatDies: where nobody can tell what servers are, one that was on and is not
// ready any more is turned on again; if that fails, its table is answered failed with its
// name, and done once it is on after all.
func TestAServerThatDies(t *testing.T) {
	t.Parallel()
	m := newMachines("a", "b", "c")
	m.blind = true
	g := open(t, m, "a b c", nil).run()
	g.apply(1, "a b/c")
	m.edit(func() { m.on["a"] = false })
	g.until("a is on again", func(s *site) bool {
		return g.counts.of("switched on/machines") == 1 && s.unitOf("a").memo.Phase == On
	})
	m.edit(func() { m.on["b"], m.fail["on b"] = false, -1 })
	g.until("the table is answered failed", func(s *site) bool { return s.page.Answered == control.Failed })
	m.edit(func() { m.fail["on b"] = 0 })
	g.in("b", On)
	g.until("the table is answered done", func(s *site) bool { return s.page.Answered == control.Done })
	g.expect("", []string{"off c", "on a", "on b"}, []string{"1 done", "1 failed b", "1 done"})
}

// TestADeadServerIsNoReasonToStopOthers: a table that has only a server on that has died
// since it was looked at stops nobody before that one is on again, whether the backend can
// tell what servers are or takes it for one that is on; if it can't be brought back the
// others stay.
func TestADeadServerIsNoReasonToStopOthers(t *testing.T) {
	t.Parallel()
	for _, blind := range []bool{true, false} {
		m := newMachines("a", "b")
		m.blind = blind
		g := open(t, m, "a b", func(o *Options) { o.Every = 1000 * generous }).run()
		g.apply(1, "a b/")
		if blind {
			m.edit(func() { m.on["a"] = false })
		} else {
			m.edit(func() { m.unready["a"] = true }) // it hangs
		}
		done := g.send(2, "a/b")
		if blind {
			g.until("b is off", func(s *site) bool { return s.unitOf("b").memo.Phase == Off })
		} else {
			g.in("a", Warming)
			g.expect("a hangs", nil, []string{"1 done"})
			m.edit(func() { m.unready["a"] = false })
		}
		if err := wait1(t, done); err != nil {
			t.Fatal(err)
		}
		hooks := []string{"off b"}
		if blind {
			hooks = []string{"on a", "off b"}
		}
		g.expect("a is on again", hooks, []string{"1 done", "2 done"})
	}
	m := newMachines("a", "b")
	m.blind = true
	g := open(t, m, "a b", func(o *Options) { o.Every = 1000 * generous }).run()
	g.apply(1, "a b/")
	m.edit(func() { m.on["a"], m.fail["on a"] = false, -1 })
	g.apply(2, "a/b")
	g.expect("a can't be brought back", nil, []string{"1 done", "2 failed a,b"})
}

// TestTheOnlyServerDies: while no other is on, a server that was not ready is looked at again
// soon, and counts as failed as soon as one try has failed, so that another can be named;
// with another on there is time for all looks and tries.
func TestTheOnlyServerDies(t *testing.T) {
	t.Parallel()
	for wanted, other := range map[string]Phase{"a/b": Off, "a b/": On} {
		g := open(t, newMachines(), "a b", func(o *Options) { o.Every, o.Tries = 5*time.Second, 4 })
		g.w.mu.Lock()
		s, now := g.w.sites[site1], time.Unix(1e9, 0)
		g.w.adopt(s, table(1, wanted), now.Add(time.Hour))
		a, alone := s.unitOf("a"), other == Off
		for _, u := range s.units {
			u.memo.enter(On, now)
			u.asked, u.proven, u.seen = true, true, now
		}
		s.unitOf("b").memo.enter(other, now)
		s.settle(false)
		if next, again := s.plan(a, now, 5*time.Second); next != rest || !again.Equal(now.Add(5*time.Second)) {
			t.Errorf("%s: a server that is ready: %v, %v", wanted, next, again)
		}
		a.silent = 1
		if next, _ := s.plan(a, now, 5*time.Second); (next == ask) != alone {
			t.Errorf("%s: a server that was not ready once: %v", wanted, next)
		}
		a.memo.enter(Starting, now)
		for try := 1; try <= 4; try++ {
			a.memo.Tries, a.memo.Fault = try, "out of order"
			v := s.judge()
			if failed := alone || try == 4; v.settled != failed || slices.Equal(v.failed, []string{"a"}) != failed {
				t.Errorf("%s, try %d: %+v", wanted, try, v)
			}
		}
		g.w.mu.Unlock()
	}
}

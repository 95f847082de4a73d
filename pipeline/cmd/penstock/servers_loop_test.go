package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// on lists the servers whose processes run.
func (m *machines) on() (list []int) {
	for i := range m.names {
		if m.runs(i) {
			list = append(list, i)
		}
	}
	return list
}

// table is the last one of the site on the bus; nil without one.
func (w *poolWorld) table() *control.Command {
	w.t.Helper()
	m, err := w.client.Last(w.t.Context(), subject.CommandsStream, subject.Commands(string(control.Servers), poolSite))
	if err != nil {
		return nil
	}
	c, err := control.DecodeCommand(m.Data)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// decision is the last one of servers; nil without one.
func (w *poolWorld) decision() *control.Decision {
	w.t.Helper()
	m, err := w.client.Last(w.t.Context(), subject.CommandsStream, subject.Decisions(string(control.Servers)))
	if err != nil {
		return nil
	}
	d, err := control.DecodeDecision(m.Data)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// decided waits for n more decisions that are as wanted, one after the other.
func (w *poolWorld) decided(what string, n int, ok func(d *control.Decision) bool) {
	w.t.Helper()
	last := time.Time{}
	eventually(w.t, what, func() bool {
		if d := w.decision(); d != nil && d.Window.End.After(last) {
			last = d.Window.End
			if ok(d) {
				n--
			}
		}
		return n <= 0
	})
}

// op runs a verb on the bus, which must succeed.
func (w *poolWorld) op(args ...string) string {
	w.t.Helper()
	return must(w.t, append(args, "--nats", w.nats())...)
}

// orderly checks what the hook was called for: nothing was stopped that had requests, and
// no older table had its way after a later one.
func (m *machines) orderly() {
	m.t.Helper()
	var latest uint64
	for _, c := range m.calls() {
		if c.Action == "off" && c.Inside > 0 {
			m.t.Errorf("%+v: a server was stopped that had requests", c)
		}
		if c.Epoch < latest {
			m.t.Errorf("%+v: epoch %d was acted on before", c, latest)
		}
		latest = max(latest, c.Epoch)
	}
	for i, b := range m.boards {
		if n := b.Early.Load(); n > 0 {
			m.t.Errorf("server %d got %d requests before it was ready", i, n)
		}
	}
	if m.t.Failed() {
		m.t.Logf("the hook was called: %+v", m.calls())
	}
}

// TestServersComeAndGo is the whole loop of servers: entry points tell of penalties, serve decides, the
// server switch starts and stops processes. It goes by the mode, the freeze and the
// rollback of the operator; the switch that acts is killed in the middle of its work, and
// the bus is away for a while. No request fails.
func TestServersComeAndGo(t *testing.T) {
	t.Parallel()
	w := newPool(t, poolSettings{servers: 3, entries: 2, decided: true, section: `
servers:
  policy: A1
  in_service: 4
  ramp: 1s
  classes: {other: {t_max: 100ms, penalty: 1}}
  server_cost: 0.5
  switching:
    policy: penalty
    cooldown: 2s
    start_delay: 2s
    hold: 2s
    ready: /ready
    hooks: [{kind: command, on: {hook}, off: {hook}, status: {hook}}]
`})
	for _, b := range w.boards {
		b.Delay.Store(int64(50 * time.Millisecond))
	}
	w.start(0, 1, 2)
	w.serve()
	w.client = connect(t, w.nats(), "")
	w.enter(0, 1)
	first := w.switching("switch-a")
	const all, few = 24, 2
	v := visit(t, all, 20*time.Millisecond, w.points...)
	load := func(clients int64) { v.Few.Store(all - clients) }
	load(few)
	begun := time.Now()
	step := func(what string) { t.Logf("%5.1f s: %s", time.Since(begun).Seconds(), what) }

	// Advice is followed by nobody.
	eventually(t, "a table that turns one off", func() bool {
		c := w.table()
		return c != nil && len(c.Servers.Off) > 0
	})
	if c := w.table(); c.Mode != control.Advise || len(w.on()) != 3 || len(w.calls()) > 0 {
		t.Errorf("mode %s, servers %v run, the hook was called %v; expected advice that nobody follows", c.Mode, w.on(), w.calls())
	}
	step("advice")

	// Few requests: one server is enough.
	w.op("mode", "servers", "act")
	eventually(t, "two servers to be stopped", func() bool { return len(w.on()) == 1 })
	step("one server is left")
	for i, b := range w.boards {
		b.Warm.Store(int64(1500 * time.Millisecond))
		if r, n := w.runs(i), b.Inside.Load(); !r && n > 0 {
			t.Errorf("server %d was stopped with %d requests", i, n)
		}
	}
	before := len(w.calls())

	// Many: others are started. Who does that is killed when it has called its hook.
	load(all)
	eventually(t, "a server to be started", func() bool { return len(w.calls()) > before })
	first.kill()
	step("a server is started, the switch is killed")
	second := w.switching("switch-b")
	eventually(t, "two servers to have requests", func() bool {
		parts, n := w.more(50), 0
		for _, p := range parts {
			if p > 0.1 {
				n++
			}
		}
		return n >= 2
	})
	step("two servers have requests")
	eventually(t, "another switch to act", func() bool {
		return strings.Contains(w.op("explain", "servers", poolSite), "the server switch switch-b, by epoch ")
	})
	step("another switch acts")

	// The bus goes, and comes back.
	w.server.kill()
	w.more(100)
	w.serve()
	step("the bus is back")
	var text string
	var high *control.Command
	eventually(t, "servers to be what is wanted, and to be seen so", func() bool {
		text = w.op("explain", "servers", poolSite)
		c := w.table()
		high = c
		if c == nil || !strings.Contains(text, fmt.Sprintf("the server switch switch-b, by epoch %d:", c.Epoch)) {
			return false
		}
		for _, name := range c.Servers.On {
			if !strings.Contains(text, fmt.Sprintf("  %[1]s: wanted %[2]s, %[2]s, observed %[2]s\n", name, "on")) {
				return false
			}
		}
		for _, name := range c.Servers.Off {
			if !strings.Contains(text, fmt.Sprintf("  %[1]s: wanted %[2]s, %[2]s, observed %[2]s\n", name, "off")) {
				return false
			}
		}
		return len(c.Servers.On) >= 2
	})
	t.Log(text)
	step("servers are as wanted")
	t.Log(w.op("status"))
	if out, errs, code := command(t, "doctor", "-c", w.config, "--nats", w.nats()); code != 0 {
		t.Errorf("doctor: %d\n%s%s", code, out, errs)
	} else {
		t.Log(out)
	}

	// Frozen, nothing changes, whatever comes.
	w.op("freeze", "servers")
	w.decided("windows in which servers are frozen", 1, frozen)
	load(few)
	still := w.table().Epoch
	w.decided("windows in which servers are frozen", 5, frozen)
	if c := w.table(); c.Epoch != still {
		t.Errorf("frozen, and another table: %+v", c)
	}
	calls := len(w.calls())
	step("frozen")
	w.op("thaw", "servers")
	eventually(t, "servers to be stopped again", func() bool { return len(w.calls()) > calls && len(w.on()) == 1 })
	step("thawed: one server is left")

	// The table of the many is in force again, and stays.
	w.op("rollback", "servers", "--to", high.Window.End.UTC().Format(time.RFC3339Nano))
	eventually(t, "the servers of before to run", func() bool { return len(w.on()) == len(high.Servers.On) })
	w.decided("windows in which servers are frozen", 3, frozen)
	if c := w.table(); c.Epoch <= high.Epoch || c.Reason.Code != "RolledBack" || !slices.Equal(c.Servers.On, high.Servers.On) {
		t.Errorf("after the rollback to %+v: %+v", high, c)
	}
	step("rolled back")
	w.neverAbove(4)
	v.end()
	if f := v.failures(); len(f) > 0 {
		t.Errorf("%d requests failed of %d: %+v", len(f), v.Answered.Load(), f)
	}
	w.orderly()
	second.stop()
	for _, e := range w.entries {
		e.stop()
	}
	w.server.stop()
}

// frozen says whether a decision was one of a kind that is frozen.
func frozen(d *control.Decision) bool { return codes(d)["Frozen"] > 0 }

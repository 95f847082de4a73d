package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAServerThatIsOnDies: with hooks that can't tell what a server is, one that is on dies.
// The switch notices it and turns it on again; if its hook fails the decider puts another
// one in its place; and a decider that does not know of it yet, and turns off another,
// leaves nobody without a server: what runs is not stopped before another one does.
func TestAServerThatIsOnDies(t *testing.T) {
	t.Parallel()
	w := newPool(t, poolSettings{servers: 3, entries: 1, decided: true, section: `
servers:
  policy: A1
  in_service: 4
  ramp: 1s
  classes: {other: {t_max: 200ms, penalty: 1}}
  server_cost: 0.5
  switching:
    policy: penalty
    cooldown: 2s
    start_delay: 2s
    hold: 2s
    ready: /ready
    initial: 2
    hooks: [{kind: command, on: {hook}, off: {hook}}]
`})
	for _, b := range w.boards {
		b.Delay.Store(int64(20 * time.Millisecond))
	}
	w.start(0, 1)
	w.serve()
	w.client = connect(t, w.nats(), "")
	w.enter(0)
	w.switching("switch")
	v := visit(t, 4, 20*time.Millisecond, w.points...)
	begun := time.Now()
	step := func(what string) {
		t.Logf("%5.1f s: %s; %d failed of %d", time.Since(begun).Seconds(), what, len(v.failures()), v.Answered.Load())
	}

	// The advice is to turn server 1 off. Server 0 dies before anybody goes by it.
	eventually(t, "a table that turns one off", func() bool {
		c := w.table()
		return c != nil && slices.Contains(c.Servers.Off, w.names[1])
	})
	died := time.Now()
	w.kill(0)
	served := w.boards[1].Begun.Load()
	w.op("mode", "servers", "act")
	step("server 0 is killed, server 1 is to be turned off")
	eventually(t, "server 0 to be turned on again", func() bool { return w.runs(0) })
	step("server 0 runs again")
	eventually(t, "server 1 to be stopped", func() bool { return !w.runs(1) })
	step("server 1 is stopped")
	w.attended()
	if n := w.boards[1].Begun.Load() - served; n == 0 {
		t.Error("server 1 got no request while server 0 was dead")
	}
	// There was always one that ran, so nothing fails but what was in service on the dead
	// one and may not be sent again.
	for _, f := range v.failures() {
		if f.Method != http.MethodPost || f.At.After(died.Add(time.Second)) {
			t.Errorf("%v after the death of server 0: %+v", f.At.Sub(died), f)
		}
	}

	// The only one dies, and can't be started again: another one is.
	w.boards[0].Stuck.Store(true)
	before := w.table().Epoch
	w.kill(0)
	step("server 0 is killed, and its hook fails")
	eventually(t, "another server to be on", func() bool {
		c := w.table()
		return c.Epoch > before && !slices.Contains(c.Servers.On, w.names[0]) && len(w.on()) > 0
	})
	step("another server is on")
	w.more(20)
	failed := len(v.failures())
	w.more(100)
	w.attended()
	for _, f := range v.failures()[failed:] {
		t.Errorf("another server is on, and %+v", f)
	}
	if text := w.op("explain", "servers", poolSite); !strings.Contains(text, "it is stuck") {
		t.Errorf("nobody says why server 0 is off:\n%s", text)
	}
	v.end()
}

// attended checks that nothing that ran was turned off while no other server ran.
func (w *poolWorld) attended() {
	w.t.Helper()
	for _, c := range w.calls() {
		if c.Action == "off" && c.Ran && c.Others == 0 {
			w.t.Errorf("%+v: nobody else ran", c)
		}
	}
	if w.t.Failed() {
		w.t.Logf("the hook was called: %+v", w.calls())
	}
}

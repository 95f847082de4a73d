package main

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/testserver"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// TestDeciderStoppedOverATakeOver stops a decider process. Another takes over and
// decides a window in which nothing moves: no scope of the first one changes.
// When the first one wakes, its next decision is refused; it starts again from
// what the other has written, and decides on.
func TestDeciderStoppedOverATakeOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Listen = 2, "127.0.0.1:0" })
	cfg := configure(t, dir, settings{2, 0.3})
	start := func(name, roles string) *server {
		t.Helper()
		return serve(t, "--roles", roles, "--nats", b.URL(), "--config", cfg, "--name", name, "--state", filepath.Join(dir, name))
	}
	start("sums", "aggregator")
	first := start("first", "decider")
	w := gather(t, bustest.Client(t, b), 6)
	w.decision(w.send("east"))
	if d := w.decision(w.send("west")); moves(d) != 6 {
		t.Fatalf("window 1: %d moves", moves(d))
	}
	first.signal(syscall.SIGSTOP)
	second := start("second", "decider")
	if d := w.decision(w.send("east")); moves(d) != 0 {
		t.Fatalf("window 2: %d moves, expected none", moves(d))
	}
	second.stop()
	before := w.seen
	first.signal(syscall.SIGCONT)
	fenced := []string{`part="decider of placement"`, `what="fenced"`}
	eventually(t, "the first one to be fenced", func() bool { return first.count("penstock_retries_total", fenced...) == 1 })
	first.awaitReady(true)
	if st, err := w.c.State(t.Context(), subject.CommandsStream); err != nil || st.LastSeq != before {
		t.Errorf("COMMANDS ends at %d, not at %d: %v", st.LastSeq, before, err)
	}
	if d := w.decision(w.send("west")); moves(d) != 6 {
		t.Errorf("window 3: %d moves", moves(d))
	}
	if n := first.count("penstock_retries_total", fenced...); n != 1 {
		t.Errorf("fenced %d times", n)
	}
	w.undiverged(b.URL(), 4)
	first.stop()
}

// TestTwoDecidersAreSafe lets two deciders run side by side: whichever writes
// first decides a window, the other is fenced and starts again. Each window has
// one record.
func TestTwoDecidersAreSafe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Listen = 1, "127.0.0.1:0" })
	cfg := configure(t, dir, settings{1, 0.3})
	args := func(name, roles string) []string {
		return []string{"--roles", roles, "--nats", b.URL(), "--config", cfg, "--name", name, "--state", filepath.Join(dir, name)}
	}
	serve(t, args("sums", "aggregator")...)
	pair := []*server{serve(t, args("one", "decider")...), serve(t, args("two", "decider")...)}
	w := gather(t, bustest.Client(t, b), 6)
	const windows = 6
	for n := range windows {
		w.decision(w.send([]string{"east", "west", "north"}[n%3]))
	}
	fences := 0
	eventually(t, "both to be ready", func() bool {
		fences = 0
		for _, s := range pair {
			fences += s.count("penstock_retries_total", `what="fenced"`)
		}
		one, _ := pair[0].get("/readyz")
		two, _ := pair[1].get("/readyz")
		return one == 200 && two == 200 && fences > 0
	})
	w.undiverged(b.URL(), windows)
	for _, s := range pair {
		s.stop()
	}
}

// undiverged sees that each window has one record, in order, and that whoever
// recovers from the bus comes to the recorded states.
func (w *crowd) undiverged(url string, windows int) {
	w.t.Helper()
	var ends []time.Time
	each(w.t, w.c, subject.CommandsStream, func(m bus.Msg) {
		if m.Subject != subject.Decisions(string(control.Placement)) {
			return
		}
		d, err := control.DecodeDecision(m.Data)
		if err != nil {
			w.t.Fatal(err)
		}
		ends = append(ends, d.Window.End)
	})
	if len(ends) != windows || !slices.IsSortedFunc(ends, func(a, b time.Time) int { return a.Compare(b) }) || len(slices.Compact(ends)) != windows {
		w.t.Errorf("records of windows ending %v, expected %d", ends, windows)
	}
	if out := must(w.t, "explain", ownerName(1), "--nats", url); !strings.Contains(out, "data is at") {
		w.t.Errorf("explain: %s", out)
	}
}

// TestFreezeAndAnEditBetweenCrashAndRestart kills the whole process, freezes the
// kind and edits the configuration while it is down, and starts it again: what
// was decided comes out as it was, under the switches and the configuration of
// then; what comes next goes by the new ones.
func TestFreezeAndAnEditBetweenCrashAndRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	cfg := configure(t, dir, settings{2, 0.3})
	args := []string{"--config", cfg, "--state", state, "--listen", testserver.FreeAddress(t), "--name", "one"}
	s := serve(t, args...)
	w := gather(t, connect(t, s.bus, ""), 12)
	homes := stores(t, cfg)
	w.fill(homes)
	must(t, "mode", "placement", "act", "--nats", s.bus)
	w.decision(w.send("east"))
	old := w.decision(w.send("west"))
	s.kill()

	if out := must(t, "freeze", "placement", "--state", state); !strings.Contains(out, "frozen") {
		t.Errorf("freeze: %s", out)
	}
	configure(t, dir, settings{2, 0.6})
	s = serve(t, args...)
	w.outcomes(12) // Moves of before are carried out: a freeze is of decisions.
	w.located()
	d := w.decision(w.send("north"))
	if moves(d) != 0 || codes(d)["Frozen"] == 0 || !d.Operator.Frozen {
		t.Errorf("window 2, frozen: %d moves, reasons %v", moves(d), codes(d))
	}
	if d.Policy == old.Policy {
		t.Errorf("window 2 was decided under the configuration of before: %s", d.Policy)
	}
	s.kill()
	s = serve(t, args...)
	must(t, "thaw", "placement", "--nats", s.bus)
	again := w.decision(w.send("north"))
	if moves(again) != 12 || again.Policy != d.Policy {
		t.Errorf("window 3, thawed: %d moves under %s", moves(again), again.Policy)
	}
	w.outcomes(24)
	w.located()
	w.check(homes, true)
	w.undiverged(s.bus, 4)
	checkAudit(t, w.c)
	s.stop()
}

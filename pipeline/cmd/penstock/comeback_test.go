package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/clock/stall"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// TestMoversComeBackAtOnce kills a replay while the mover's journal has an open
// move and starts it again: the move is answered out of the journal, long
// before an unacknowledged command would be delivered again after the bus's
// usual 30 s. On an idle machine it takes well below 2 s; the bound leaves room
// for a busy one.
func TestMoversComeBackAtOnce(t *testing.T) {
	out := t.TempDir()
	args := accessLog(t, out)
	if err := process(t, "move:30", args...).Run(); err == nil {
		t.Fatal("the process was to be killed at its thirtieth move")
	}
	restart, meter := time.Now(), stall.Start(t.Context())
	if err := process(t, "", args...).Run(); err != nil {
		t.Fatal(err)
	}
	first := firstOutcomeAfter(t, out, restart)
	t.Logf("first outcome %.2f s after the restart, start of the bus included", first.Sub(restart).Seconds())
	if first.Sub(restart) > 15*time.Second+meter.Total() {
		t.Errorf("the first outcome came %v after the restart", first.Sub(restart))
	}
}

func firstOutcomeAfter(t *testing.T, out string, since time.Time) time.Time {
	t.Helper()
	b, err := bus.Open(t.Context(), bus.Options{Dir: filepath.Join(out, "state", "bus"), Purpose: bus.Replay, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	client, err := b.Client(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	last, err := client.Last(t.Context(), subject.OutcomesStream, subject.OutcomesOf(string(control.Placement)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := client.Read(t.Context(), subject.OutcomesStream, []string{subject.OutcomesOf(string(control.Placement))}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for m := range r.C() {
		if m.Time.After(since) {
			return m.Time
		}
		if m.Seq >= last.Seq {
			break
		}
	}
	t.Fatal("no outcome came after the restart")
	return time.Time{}
}

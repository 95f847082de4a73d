package decider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

func TestModesSwitchLive(t *testing.T) {
	w := newWorld(t, 2, bus.Replay)
	r := w.start()
	modeKey := control.ModeKey(control.Placement)
	for n, step := range []struct {
		set      string // value of the switch; "-": leave it, "": delete it
		mode     control.Mode
		reasons  string
		commands int
	}{
		{"-", control.Act, "", 1},
		{`{"version":1,"mode":"advise"}`, control.Advise, "", 1},
		// As if nothing had moved: the same advice again.
		{"-", control.Advise, "", 1},
		{`{"version":1,"mode":"observe"}`, control.Observe, Observing, 0},
		{"", control.Act, "", 1},
		// What was decided in act is under way until it is answered.
		{"-", control.Act, "MoveUnderWay", 0},
		{`{"version":1,"mode":"fast"}`, control.Act, Frozen + " " + SwitchUnreadable + " MoveUnderWay", 0},
	} {
		switch step.set {
		case "-":
		case "":
			w.set(modeKey, nil)
		default:
			w.set(modeKey, step.set)
		}
		w.close(n, row{n, "regular", 9})
		d := w.next()
		if d.record.Mode != step.mode || codes(d.record) != step.reasons || len(d.commands) != step.commands {
			t.Errorf("window %d: mode %s, reasons %q, %d commands; expected %s, %q, %d",
				n, d.record.Mode, codes(d.record), len(d.commands), step.mode, step.reasons, step.commands)
		}
		for _, c := range d.commands {
			if c.Mode != step.mode {
				t.Errorf("window %d: a command of mode %s", n, c.Mode)
			}
		}
		// Windows 4 and later are left without an answer.
		if n < 4 {
			w.settle(d)
		}
	}
	r.stop()
	// Every window has a record, and each can be decided again.
	if _, err := Load(w.ctx, w.reading()); err != nil {
		t.Error(err)
	}
}

func TestEvacuationIsPassedOnAndRecorded(t *testing.T) {
	w := newWorld(t, 1, bus.Replay)
	w.set(control.EvacuateKey("böse"), control.Switch{Version: 1, On: true})
	w.set(control.EvacuateKey("east"), control.Switch{Version: 1, On: true})
	w.set(control.EvacuateKey("west"), control.Switch{Version: 1})
	r := w.start()
	w.close(0, row{0, "regular", 1})
	if got := w.next().record.Operator.Evacuate; len(got) != 2 || got[0] != "böse" || got[1] != "east" {
		t.Errorf("evacuate %q", got)
	}
	r.stop()
}

func TestIncompleteWindowHasNoCommands(t *testing.T) {
	w := newWorld(t, 2, bus.Replay)
	r := w.start()
	lost := []window.Interval{
		{From: epoch + hour/2, To: epoch + hour/2 + 7, Reason: "lost"},
		{From: epoch, To: epoch + 1, Reason: "dropped"},
	}
	w.commit(0, 0, lost[:1], row{0, "regular", 9})
	w.commit(1, 0, lost[1:])
	d := w.next()
	if !d.record.Incomplete || len(d.commands) != 0 || codes(d.record) != IncompleteWindow {
		t.Errorf("incomplete %v, %d commands, reasons %q", d.record.Incomplete, len(d.commands), codes(d.record))
	}
	w.close(1, row{1, "regular", 9})
	if d := w.next(); d.record.Incomplete || len(d.commands) != 1 {
		t.Errorf("the window after: %+v", d.record)
	}
	r.stop()
}

// TestFallsBackToAdviseByItself: once promises were broken the kind only advises,
// whatever becomes of the decider, until its mode is written again. Each step of
// after that is a restart, with or without a snapshot, or a look at the bus.
func TestFallsBackToAdviseByItself(t *testing.T) {
	w := newWorld(t, 2, bus.Replay)
	breaks := func(o *Options) { o.Config = breaking.bytes() }
	r := w.start(breaks)
	w.answer = func(control.Move) control.Status { return control.Refused }
	n := 0
	window := func() *decided {
		t.Helper()
		w.close(n, row{n, "regular", 9}, row{n, "other", 9})
		n++
		return w.next()
	}
	var d *decided
	for range 4 {
		if d = window(); d.record.Mode != control.Act {
			t.Fatalf("window %d: %+v", n, d.record)
		}
		w.settle(d)
	}
	if codes(d.record) != PromisesBroken {
		t.Fatalf("the window that found it: reasons %q", codes(d.record))
	}
	r.settled()
	// It was decided and not yet followed by another window: nothing but the
	// record tells of the fallback.
	r.kill()
	r = w.start(breaks)
	<-r.Ready()
	if s := r.Status(); !s.FellBack || s.Mode != control.Advise {
		t.Errorf("status after the restart: %+v", s)
	}
	advises := func(what string) {
		t.Helper()
		if d = window(); d.record.Mode != control.Advise || d.record.Operator.Mode != control.Act || codes(d.record) != PromisesBroken {
			t.Errorf("%s: mode %s of %s, reasons %q", what, d.record.Mode, d.record.Operator.Mode, codes(d.record))
		}
		if text := d.record.Reasons[0].Text; !strings.Contains(text, "most moves of 3 windows running came to nothing") {
			t.Errorf("%s: it says %q", what, text)
		}
		w.settle(d)
		r.settled()
	}
	advises("after a kill before the next window")
	r.kill()
	r = w.start(breaks)
	advises("after another kill")
	r.stop() // with a snapshot
	r = w.start(breaks)
	advises("out of a snapshot")
	w.set(control.FreezeKey(control.Placement), control.Switch{Version: 1, On: true})
	if d = window(); codes(d.record) != Frozen+" "+PromisesBroken || len(d.commands) != 0 {
		t.Errorf("frozen: reasons %q, %d commands", codes(d.record), len(d.commands))
	}
	w.set(control.FreezeKey(control.Placement), control.Switch{Version: 1})
	advises("thawed")
	if _, err := Load(w.ctx, w.reading(breaks)); err != nil {
		t.Error(err)
	}

	w.answer = nil
	w.set(control.ModeKey(control.Placement), control.Switch{Version: 1, Mode: control.Act})
	if d = window(); d.record.Mode != control.Act || codes(d.record) != "" {
		t.Errorf("after the operator set the mode: mode %s, reasons %q", d.record.Mode, codes(d.record))
	}
	w.settle(d)
	r.kill() // and that is decided again too
	r = w.start(breaks)
	if d = window(); d.record.Mode != control.Act || codes(d.record) != "" {
		t.Errorf("it falls back for what is past: %+v", d.record)
	}
	r.stop()
	if _, err := Load(w.ctx, w.reading(breaks)); err != nil {
		t.Error(err)
	}
}

func TestRollbackIsCarriedOutOnceAndFreezes(t *testing.T) {
	w := newWorld(t, 2, bus.Replay)
	r := w.start()
	w.close(0, row{0, "regular", 9})
	w.settle(w.next()) // regular is at west now
	after := time.UnixMicro(epoch).UTC()
	w.set(control.RollbackKey(control.Placement), control.Switch{Version: 1, After: &after})

	// Something of the window is missing: the rollback waits, and freezes.
	w.commit(0, 1, []window.Interval{{From: epoch + hour, To: epoch + hour + 1, Reason: "lost"}}, row{1, "regular", 1})
	w.commit(1, 1, nil)
	d := w.next()
	if len(d.commands) != 0 || codes(d.record) != IncompleteWindow+" "+Frozen+" "+RollbackWaits {
		t.Fatalf("incomplete window: reasons %q, %d commands", codes(d.record), len(d.commands))
	}
	w.close(2, row{2, "regular", 1})
	d = w.next()
	if len(d.commands) != 1 || d.commands[0].Scope != "east" || d.record.Operator.Rollback == nil || !d.record.Operator.Frozen {
		t.Fatalf("rollback: %+v with %d commands", d.record, len(d.commands))
	}
	w.settle(d)
	r.kill() // and decided again as recorded
	r = w.start()
	for n := 3; n < 5; n++ {
		w.close(n, row{n, "regular", 9})
		if d = w.next(); len(d.commands) != 0 || codes(d.record) != Frozen || d.record.Operator.Rollback != nil {
			t.Errorf("window %d after the rollback: reasons %q, %d commands", n, codes(d.record), len(d.commands))
		}
	}
	w.set(control.FreezeKey(control.Placement), control.Switch{Version: 1})
	w.close(5, row{5, "regular", 9})
	if d = w.next(); len(d.commands) != 1 || d.record.Operator.Frozen {
		t.Errorf("after the thaw: %+v", d.record)
	}
	r.stop()
}

// Serving trims what two snapshots cover, and can still be restarted.
func TestServeTrims(t *testing.T) {
	const windows = 84
	w := newWorld(t, 2, bus.Serve)
	serve := func(o *Options) { o.Purpose = bus.Serve }
	r := w.start(serve)
	for n := range windows {
		w.close(n, traffic(n)...)
		d := w.next()
		if n == 20 {
			// A move that is never answered stays on the bus.
			d.commands = nil
		}
		w.settle(d)
	}
	r.settled()
	count := func(stream string, subjects ...string) (first, n uint64) {
		t.Helper()
		rd, err := w.client.Read(w.ctx, stream, subjects, 0)
		w.ok(err)
		defer rd.Close()
		for m := range rd.C() {
			if n++; first == 0 {
				first = m.Seq
			}
			if m.Pending == 0 {
				break
			}
		}
		return first, n
	}
	if _, n := count(subject.CommandsStream, subject.Decisions("placement")); n < keepLeast || n > keepLeast+8 {
		t.Errorf("%d decisions are kept, expected at least %d and few more", n, keepLeast)
	}
	if _, n := count(subject.WindowsStream, subject.Windows(window.Owners, 0)); n > 3*8*2 {
		t.Errorf("%d messages of WINDOWS are kept", n)
	}
	unanswered := windowSeqs(w, 20)
	if first, n := count(subject.CommandsStream, subject.CommandsOf("placement")); n < keepLeast || first > unanswered && unanswered > 0 {
		t.Errorf("%d commands are kept, the first at %d; an unanswered one was at %d", n, first, unanswered)
	}
	r.kill()
	r = w.start(serve)
	w.lockstep(windows, windows+3)
	r.stop()
}

// windowSeqs is the least sequence of a command of window n that is still there.
func windowSeqs(w *world, n int) uint64 {
	w.t.Helper()
	r, err := w.client.Read(w.ctx, subject.CommandsStream, []string{subject.CommandsOf("placement")}, 0)
	w.ok(err)
	defer r.Close()
	for m := range r.C() {
		c, err := control.DecodeCommand(m.Data)
		w.ok(err)
		if c.Window.Start.Equal(time.UnixMicro(epoch + int64(n)*hour)) {
			return m.Seq
		}
		if m.Pending == 0 {
			break
		}
	}
	w.t.Errorf("the unanswered command of window %d is gone", n)
	return 0
}

// TestImportedLocationsEnterRecordedState: what the operator says of where data is
// comes between windows, in its turn, to a decider that decides; it is decided
// again with the windows, and a move under way is still answered by its mover.
func TestImportedLocationsEnterRecordedState(t *testing.T) {
	w := newWorld(t, 2, bus.Replay)
	r := w.start()
	imported := func(owner, site string, version uint64) {
		t.Helper()
		body, err := control.Encode(control.Outcome{
			Version: 1, Kind: control.Placement, Scope: site, Owner: owner, Move: version, Status: control.Imported, At: time.Unix(0, 0).UTC(),
		})
		w.ok(err)
		_, err = w.client.Publish(w.ctx, bus.Msg{Subject: subject.Outcomes("placement", site), Data: body})
		w.ok(err)
	}
	step := func(n int, want string) *decided {
		t.Helper()
		w.close(n, row{n, "ann", 9})
		d := w.next()
		got := ""
		for _, c := range d.commands {
			for _, m := range c.Placement.Moves {
				got += fmt.Sprintf("%s %s to %s %d;", m.Owner, m.From, m.To, m.Version)
			}
		}
		if got != want {
			t.Errorf("window %d: %q, expected %q", n, got, want)
		}
		return d
	}
	imported("ann", "west", 5) // before anybody has seen her
	w.settle(step(0, "ann west to north 6;"))
	imported("ann", "east", 9)
	d := step(1, "ann east to west 10;")
	r.settled()
	if n := r.Status().Unanswered; n != 1 {
		t.Errorf("%d moves unanswered", n)
	}
	imported("ann", "north", 10) // the mover finds that it comes too late
	r.kill()
	r = w.start()
	w.answer = func(control.Move) control.Status { return control.Refused }
	w.settle(d)
	step(2, "ann north to east 11;")
	r.settled()
	if n := r.Status().Unanswered; n != 1 {
		t.Errorf("%d moves unanswered after the refusal of the first", n)
	}
	r.stop()
	if _, err := Load(w.ctx, w.reading()); err != nil {
		t.Error(err)
	}
}

// TestImportedBeforeTheFirstWindow: what was imported before anything was decided
// is known after a restart under another configuration, and decided again.
func TestImportedBeforeTheFirstWindow(t *testing.T) {
	w := newWorld(t, 1, bus.Serve)
	serve := func(least int64) func(*Options) {
		return func(o *Options) {
			o.Purpose = bus.Serve
			o.Config = toyConfig{Sites: baseConfig.Sites, Least: least}.bytes()
		}
	}
	r := w.start(serve(3))
	<-r.Ready()
	body, err := control.Encode(control.Outcome{
		Version: 1, Kind: control.Placement, Scope: "north", Owner: "ann", Move: 7, Status: control.Imported, At: time.Unix(0, 0).UTC(),
	})
	w.ok(err)
	_, err = w.client.Publish(w.ctx, bus.Msg{Subject: subject.Outcomes("placement", "north"), Data: body})
	w.ok(err)
	for known := false; !known; _, known, err = r.Explain(w.ctx, "ann") {
		w.ok(err)
	}
	r.stop()
	for least := int64(4); least < 6; least++ { // each another configuration
		r = w.start(serve(least))
		<-r.Ready()
		r.stop()
	}
	r = w.start(serve(6))
	w.close(0, row{0, "ann", 9})
	d := w.next()
	if len(d.commands) != 1 || d.commands[0].Placement.Moves[0].From != "north" || d.commands[0].Placement.Moves[0].Version != 8 {
		t.Errorf("%+v, expected a move from the north", d.record)
	}
	r.settled()
	r.kill()
	if _, err := Load(w.ctx, w.reading(serve(6))); err != nil {
		t.Error(err)
	}
}

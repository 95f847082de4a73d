package decider

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// gate holds a decider's publishing until it is opened, as a stopped process
// does.
type gate struct {
	reached chan struct{} // one for each call that waits
	open    chan struct{}
}

// hold makes the decider wait at its publishing from call number n on.
func (r *running) hold(n int) *gate {
	g := &gate{reached: make(chan struct{}, 100), open: make(chan struct{})}
	publish, calls := r.publish, 0
	r.publish = func(ctx context.Context, msgs []bus.Msg, expect uint64) (uint64, error) {
		if calls++; calls >= n {
			g.reached <- struct{}{}
			<-g.open
		}
		return publish(ctx, msgs, expect)
	}
	return g
}

// A decider is stopped; another takes over and decides a window that holds
// nothing for it. The first one wakes: its decision is refused although nobody
// has touched its scopes.
func TestStoppedDeciderIsFenced(t *testing.T) {
	w := newWorld(t, 2, bus.Replay)
	a := w.make()
	g := a.hold(3)
	a.start()
	w.lockstep(0, 2)
	w.close(2, row{2, "regular", 5})
	<-g.reached
	b := w.start()
	if d := w.next(); len(d.commands) != 1 {
		t.Fatalf("the other one decided %+v", d.record)
	}
	w.close(3, row{3, "rare", 1})
	if d := w.next(); len(d.commands) != 0 {
		t.Fatalf("expected a window without commands: %+v", d.record)
	}
	before := w.dump()
	close(g.open)
	if err := a.wait(); !errors.Is(err, ErrFenced) {
		t.Errorf("got %v, expected ErrFenced", err)
	}
	same(t, "after the fenced one woke", w.dump(), before)
	b.stop()
}

// The fenced one has nothing to say for a while: the other decides only windows
// without commands, and its very next decision is refused.
func TestNextDecisionAfterTakeOverIsRefused(t *testing.T) {
	w := newWorld(t, 2, bus.Replay)
	a := w.make()
	g := a.hold(3)
	a.start()
	w.lockstep(0, 2)
	w.close(2, row{2, "rare", 1})
	<-g.reached
	b := w.start()
	w.next()
	close(g.open)
	if err := a.wait(); !errors.Is(err, ErrFenced) {
		t.Errorf("got %v, expected ErrFenced", err)
	}
	// From scratch it takes over what the other has written.
	b.stop()
	a = w.start()
	w.lockstep(3, 5)
	a.stop()
}

// many is a configuration whose decisions go out in three parts.
func many(o *Options) {
	o.Config = toyConfig{Sites: baseConfig.Sites, Least: 1, Scopes: 2000}.bytes()
}

func crowd(n, owners int) []row {
	out := make([]row, owners)
	for i := range out {
		out[i] = row{n, fmt.Sprintf("owner-%04d", i), 1}
	}
	return out
}

func TestDecisionInParts(t *testing.T) {
	w := newWorld(t, 2, bus.Replay)
	r := w.start(many)
	w.close(0, crowd(0, 2000)...)
	d := w.next()
	if d.parts != 3 || len(d.commands) != 2000 {
		t.Fatalf("%d parts with %d commands, expected 3 with 2000", d.parts, len(d.commands))
	}
	w.close(1, row{1, "late-comer", 1})
	d = w.next()
	if d.parts != 1 || len(d.commands) != 1 || d.record.Reasons[0].Code != "MoveUnderWay" {
		t.Errorf("the next window: %d parts, %d commands, reasons %s", d.parts, len(d.commands), codes(d.record))
	}
	r.stop()
}

// A crash between two parts, and a freeze on top of it: the missing parts are
// sent on as they were decided.
func TestCrashBetweenParts(t *testing.T) {
	plain := newWorld(t, 2, bus.Replay)
	p := plain.start(many)
	plain.close(0, crowd(0, 1000)...)
	plain.next()
	p.stop()
	want := plain.dump()
	w := newWorld(t, 2, bus.Replay)
	a := w.make(many)
	publish, calls := a.publish, 0
	a.publish = func(ctx context.Context, msgs []bus.Msg, expect uint64) (uint64, error) {
		if calls++; calls > 1 {
			a.client.Close()
			return 0, bus.ErrClosed
		}
		return publish(ctx, msgs, expect)
	}
	a.start()
	w.close(0, crowd(0, 1000)...)
	if err := a.wait(); !errors.Is(err, bus.ErrClosed) {
		t.Fatalf("got %v", err)
	}
	if _, err := Load(w.ctx, w.reading(many)); !errors.Is(err, ErrFenced) {
		t.Errorf("loading without a decider: %v, expected ErrFenced", err)
	}
	w.set(control.FreezeKey(control.Placement), control.Switch{Version: 1, On: true})
	b := w.start(many)
	if d := w.next(); d.parts != 2 || len(d.commands) != 1000 {
		t.Errorf("%d parts with %d commands", d.parts, len(d.commands))
	}
	same(t, "sent on", w.dump(), want)
	w.close(1, crowd(1, 1)...)
	if d := w.next(); !d.record.Operator.Frozen {
		t.Errorf("the freeze is lost: %+v", d.record.Operator)
	}
	b.stop()
}

// A decider is stopped between two parts; another sends the second one. The
// first one's second part is the same, but it is refused, and it stops.
func TestSecondPartAfterTakeOverIsRefused(t *testing.T) {
	w := newWorld(t, 2, bus.Replay)
	a := w.make(many)
	g := a.hold(2)
	a.start()
	w.close(0, crowd(0, 1000)...)
	<-g.reached
	b := w.start(many)
	if d := w.next(); d.parts != 2 || len(d.commands) != 1000 {
		t.Fatalf("%d parts with %d commands", d.parts, len(d.commands))
	}
	before := w.dump()
	close(g.open)
	if err := a.wait(); !errors.Is(err, ErrFenced) {
		t.Errorf("got %v, expected ErrFenced", err)
	}
	same(t, "after the fenced one woke", w.dump(), before)
	b.stop()
}

// The acknowledgement of every decision is cut: each is sent again, refused, and
// found to be its own.
func TestLostAcknowledgementIsNotAFence(t *testing.T) {
	const windows = 6
	want := undisturbed(t, windows)
	w := newWorld(t, 2, bus.Replay)
	r := w.make()
	publish, cut := r.publish, map[uint64]int{}
	r.publish = func(ctx context.Context, msgs []bus.Msg, expect uint64) (uint64, error) {
		last, err := publish(ctx, msgs, expect)
		if cut[expect]++; cut[expect] == 1 && err == nil {
			return 0, context.DeadlineExceeded
		}
		return last, err
	}
	r.start()
	w.lockstep(0, windows)
	r.settled()
	r.stop()
	same(t, "acknowledgements cut", w.dump(), want)
	for expect, n := range cut {
		if n != 2 {
			t.Errorf("the decision after record %d was sent %d times", expect, n)
		}
	}
	if len(cut) != windows {
		t.Errorf("%d decisions cut, expected %d", len(cut), windows)
	}
}

// A fenced decider leaves no snapshot, not even at a clean stop.
func TestFencedDeciderLeavesNoSnapshot(t *testing.T) {
	w := newWorld(t, 2, bus.Replay)
	a := w.start()
	w.lockstep(0, 2)
	// Somebody else's record, as a decider of another process would write it.
	m, err := w.client.Last(w.ctx, subject.CommandsStream, subject.Decisions("placement"))
	w.ok(err)
	_, err = w.client.PublishFenced(w.ctx, []bus.Msg{{Subject: m.Subject, Data: m.Data}}, m.Seq)
	w.ok(err)
	a.settled()
	a.stop()
	objects, err := w.client.Objects(w.ctx)
	w.ok(err)
	if info, err := objects.GetInfo(w.ctx, placeName(control.Placement, 0)); err == nil {
		t.Errorf("a snapshot of %d bytes was left", info.Size)
	}
}

// The bus goes away and comes back under a decider.
func TestBusRestart(t *testing.T) {
	const windows = 6
	want := undisturbed(t, windows)
	w := newWorld(t, 2, bus.Replay)
	r := w.start()
	for n := range windows {
		if n == 3 {
			w.restartBus()
		}
		w.close(n, traffic(n)...)
		w.settle(w.next())
	}
	r.stop()
	same(t, "bus restarted", w.dump(), want)
}

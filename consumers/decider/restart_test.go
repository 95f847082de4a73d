package decider

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// longRun is how many windows undisturbed knows.
const longRun = 24

var calm struct {
	sync.Once
	dump string
}

// undisturbed is what the first n windows come to without any disturbance.
func undisturbed(t *testing.T, n int) string {
	t.Helper()
	calm.Do(func() {
		w := newWorld(t, 2, bus.Replay)
		r := w.start()
		w.lockstep(0, longRun)
		r.stop()
		calm.dump = w.dump()
	})
	at := 0
	for _, line := range strings.SplitAfter(calm.dump, "\n") {
		if strings.HasPrefix(line, "decisions.") {
			n--
		}
		if n < 0 {
			break
		}
		at += len(line)
	}
	return calm.dump[:at]
}

func TestRestartsLeaveNoTrace(t *testing.T) {
	const windows = longRun
	want := undisturbed(t, windows)
	for seed := range uint64(2) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, 2, bus.Replay)
		r := w.start()
		for n := range windows {
			// The window may close, and its moves may be answered, while no
			// decider is there, or one that has not caught up.
			closed := false
			if rnd.IntN(3) == 0 {
				if rnd.IntN(2) == 0 {
					w.close(n, traffic(n)...)
					closed = true
				}
				if rnd.IntN(2) == 0 {
					r.stop()
				} else {
					r.kill()
				}
				r = w.start()
			}
			if !closed {
				w.close(n, traffic(n)...)
			}
			w.settle(w.next())
		}
		r.stop()
		same(t, fmt.Sprintf("seed %d", seed), w.dump(), want)
	}
}

// A kill in the middle of publishing leaves the batch stored or not, and the
// decider does not know which.
func TestKilledWhilePublishing(t *testing.T) {
	const windows = 10
	want := undisturbed(t, windows)
	for _, stored := range []bool{true, false} {
		w := newWorld(t, 2, bus.Replay)
		w.lockstepWith(0, 5)
		r := w.make()
		publish, calls := r.publish, 0
		r.publish = func(ctx context.Context, msgs []bus.Msg, expect uint64) (uint64, error) {
			if calls++; calls < 3 {
				return publish(ctx, msgs, expect)
			}
			if stored {
				if _, err := publish(ctx, msgs, expect); err != nil {
					return 0, err
				}
			}
			r.client.Close()
			return 0, bus.ErrClosed
		}
		r.start()
		for n := 5; n < 7; n++ {
			w.close(n, traffic(n)...)
			w.settle(w.next())
		}
		w.close(7, traffic(7)...)
		if err := r.wait(); !errors.Is(err, bus.ErrClosed) {
			t.Fatalf("got %v", err)
		}
		r = w.start()
		w.settle(w.next())
		w.lockstep(8, windows)
		r.stop()
		same(t, fmt.Sprintf("stored %v", stored), w.dump(), want)
	}
}

// lockstepWith runs a decider over some windows and stops it.
func (w *world) lockstepWith(from, to int, change ...func(*Options)) {
	w.t.Helper()
	r := w.start(change...)
	w.lockstep(from, to)
	r.stop()
}

// Whatever the operator does, however moves end and whenever the decider dies:
// what is recorded can be decided again, and no epoch or version comes twice.
func TestWhateverHappensCanBeDecidedAgain(t *testing.T) {
	for seed := range uint64(2) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		pick := func(values ...string) string { return values[rnd.IntN(len(values))] }
		w := newWorld(t, 2, bus.Replay)
		w.answer = func(control.Move) control.Status {
			return control.Status(pick("done", "done", "failed", "refused", "expired"))
		}
		change := func(o *Options) {
			c := baseConfig
			c.Least = 1 + int64(rnd.IntN(3))
			o.Config = c.bytes()
		}
		r := w.start()
		epochs, asked := map[string]uint64{}, map[string]bool{}
		for n := range 25 {
			switch rnd.IntN(6) {
			case 0:
				w.set(control.ModeKey(control.Placement), `{"version":1,"mode":"`+pick("act", "act", "advise", "observe")+`"}`)
			case 1:
				w.set(pick(control.FreezeAllKey, control.FreezeKey(control.Placement)), pick(`{"version":1}`, `{"version":1}`, `{"version":1,"on":true}`, `junk`))
			case 2:
				w.set(control.RollbackKey(control.Placement), `{"version":1,"after":"2015-05-18T08:00:00+02:00"}`)
			case 3:
				r.kill()
				r = w.start(change)
			case 4:
				r.stop()
				r = w.start(change)
			}
			w.close(n, traffic(n)...)
			d := w.next()
			for _, c := range d.commands {
				if c.Supersedes != epochs[c.Scope] || c.Epoch != c.Supersedes+1 {
					t.Errorf("seed %d, window %d: epoch %d of %s supersedes %d, the last one was %d", seed, n, c.Epoch, c.Scope, c.Supersedes, epochs[c.Scope])
				}
				epochs[c.Scope] = c.Epoch
				for _, m := range c.Placement.Moves {
					key := fmt.Sprintf("%s %d", m.Owner, m.Version)
					if c.Mode == control.Act && asked[key] {
						t.Errorf("seed %d, window %d: %s is asked for twice", seed, n, key)
					}
					asked[key] = asked[key] || c.Mode == control.Act
				}
			}
			if rnd.IntN(4) > 0 {
				w.settle(d)
			}
		}
		r.kill()
		s := w.store(control.Placement)
		for place := range places {
			// From the very beginning.
			w.ok(putObject(w.ctx, w.client, s.objects, jetstream.ObjectMeta{Name: placeName(control.Placement, place)}, nil))
		}
		l, err := Load(w.ctx, w.reading())
		if err != nil || l.Windows != 25 {
			t.Errorf("seed %d: %+v, %v", seed, l, err)
		}
	}
}

func TestFreezeBetweenCrashAndRestart(t *testing.T) {
	w := newWorld(t, 2, bus.Replay)
	r := w.start()
	w.lockstep(0, 6)
	r.kill()
	// Two windows since the last snapshot are decided again: without the freeze.
	w.set(control.FreezeAllKey, control.Switch{Version: 1, On: true})
	r = w.start()
	w.close(6, traffic(6)...)
	d := w.next()
	if !d.record.Operator.Frozen || codes(d.record) != Frozen || len(d.commands) != 0 {
		t.Errorf("window after the freeze: frozen %v, reasons %q, %d commands", d.record.Operator.Frozen, codes(d.record), len(d.commands))
	}
	w.set(control.FreezeAllKey, nil)
	w.close(7, traffic(7)...)
	if d := w.next(); d.record.Operator.Frozen || len(d.commands) == 0 {
		t.Errorf("window after the thaw: %+v", d.record)
	}
	r.stop()
}

func TestConfigurationEditedBetweenCrashAndRestart(t *testing.T) {
	w := newWorld(t, 2, bus.Replay)
	r := w.start()
	w.lockstep(0, 6)
	old := w.lastRecord()
	r.kill()
	edited := baseConfig
	edited.Least = 2
	change := func(o *Options) { o.Config = edited.bytes() }
	r = w.start(change)
	w.lockstep(6, 8)
	r.kill()
	now := w.lastRecord()
	if old.Policy == now.Policy || now.Policy != ConfigDigest(edited.bytes()) {
		t.Fatalf("policies %s, then %s", old.Policy, now.Policy)
	}
	// Back again, which decides the edited windows again under theirs.
	r = w.start()
	w.lockstep(8, 10)
	r.stop()
	if got := w.lastRecord().Policy; got != old.Policy {
		t.Errorf("policy %s after going back to %s", got, old.Policy)
	}
	if _, err := Load(w.ctx, w.reading()); err != nil {
		t.Errorf("load: %v", err)
	}
}

func (w *world) lastRecord() *control.Decision {
	w.t.Helper()
	m, err := w.client.Last(w.ctx, subject.CommandsStream, subject.Decisions("placement"))
	w.ok(err)
	d, err := control.DecodeDecision(m.Data)
	w.ok(err)
	return d
}

func TestDivergenceNamesWindowAndDigests(t *testing.T) {
	w := newWorld(t, 1, bus.Replay)
	r := w.start()
	w.lockstep(0, 6)
	r.kill()
	before := w.dump()
	r = w.start(func(o *Options) { o.Factory = toyFactory(1) })
	err := r.wait()
	if !errors.Is(err, ErrDiverged) {
		t.Fatalf("got %v, expected ErrDiverged", err)
	}
	if s := err.Error(); strings.Count(s, "sha256:") != 2 || !strings.Contains(s, "2015-05-18T13:00:00Z") {
		t.Errorf("error names not the window and both digests: %v", s)
	}
	if w.dump() != before {
		t.Error("something was sent")
	}
	if got := r.Status(); got.Phase != Failed || !errors.Is(got.Err, ErrDiverged) {
		t.Errorf("status %+v", got)
	}
}

func TestBrokenSnapshots(t *testing.T) {
	const windows = 14
	want := undisturbed(t, windows)
	for _, broken := range [][]int{{0}, {1}, {0, 1}} {
		w := newWorld(t, 2, bus.Replay)
		r := w.start()
		w.lockstep(0, 10) // snapshots after 4 and 8
		r.kill()
		objects, err := w.client.Objects(w.ctx)
		w.ok(err)
		for _, place := range broken {
			body, err := objects.GetBytes(w.ctx, placeName(control.Placement, place))
			w.ok(err)
			body[len(body)/2] ^= 0x55
			meta := jetstream.ObjectMeta{Name: placeName(control.Placement, place)}
			w.ok(putObject(w.ctx, w.client, objects, meta, body[:len(body)-place]))
		}
		r = w.start()
		w.lockstep(10, windows)
		r.stop()
		same(t, fmt.Sprintf("snapshots %v broken", broken), w.dump(), want)
	}
}

// A snapshot beyond the last record is of a bus that has lost what it had
// acknowledged: it is not used, and the windows are decided and sent again.
func TestSnapshotBeyondTheRecords(t *testing.T) {
	w := newWorld(t, 2, bus.Replay)
	r := w.start()
	w.lockstep(0, 6)
	w.close(6, traffic(6)...)
	w.next()
	r.stop()
	want := w.dump()
	st, err := w.client.JS.Stream(w.ctx, w.client.Stream(subject.CommandsStream))
	w.ok(err)
	lost := 0
	for seq := windowSeq(w, 6); st.DeleteMsg(w.ctx, seq) == nil; seq++ {
		lost++
	}
	if lost == 0 {
		t.Fatal("nothing was lost")
	}
	r = w.start()
	w.next()
	r.stop()
	same(t, "lost and sent again", w.dump(), want)
}

// windowSeq is the sequence of the record of window n.
func windowSeq(w *world, n int) uint64 {
	w.t.Helper()
	r, err := w.client.Read(w.ctx, subject.CommandsStream, []string{subject.Decisions("placement")}, 0)
	w.ok(err)
	defer r.Close()
	for m := range r.C() {
		d, err := control.DecodeDecision(m.Data)
		w.ok(err)
		if d.Window.Start.Equal(time.UnixMicro(epoch + int64(n)*hour)) {
			return m.Seq
		}
	}
	w.t.Fatal(r.Err())
	return 0
}

func TestStateLost(t *testing.T) {
	w := newWorld(t, 1, bus.Replay)
	w.lockstepWith(0, 6)
	objects, err := w.client.Objects(w.ctx)
	w.ok(err)
	for place := range places {
		meta := jetstream.ObjectMeta{Name: placeName(control.Placement, place)}
		w.ok(putObject(w.ctx, w.client, objects, meta, []byte("junk")))
	}
	w.ok(w.client.Trim(w.ctx, subject.WindowsStream, w.last[subject.Windows("owners", 0)]))
	if err := w.start().wait(); !errors.Is(err, ErrStateLost) {
		t.Errorf("got %v, expected ErrStateLost", err)
	}
}

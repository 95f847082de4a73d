package decider

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/consumers/panes"
	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

func (w *world) store(k control.Kind) *store {
	w.t.Helper()
	objects, err := w.client.Objects(w.ctx)
	w.ok(err)
	return &store{client: w.client, objects: objects, kind: k}
}

// The client library reads what putObject writes, whatever its size, and nothing
// of an older version stays behind.
func TestObjectsAreOfTheLibrarysFormat(t *testing.T) {
	w := newWorld(t, 1, bus.Replay)
	s := w.store(control.Placement)
	for _, size := range []int{0, 1, chunkBytes, chunkBytes + 1, 3 * chunkBytes} {
		body := make([]byte, size)
		for i := range body {
			body[i] = byte(i * size)
		}
		meta := jetstream.ObjectMeta{Name: "a name.with.dots", Metadata: map[string]string{"k": "v"}}
		w.ok(putObject(w.ctx, w.client, s.objects, meta, body))
		got, err := s.objects.GetBytes(w.ctx, meta.Name)
		if err != nil || !slices.Equal(got, body) {
			t.Fatalf("%d bytes: %d come back, %v", size, len(got), err)
		}
		info, err := s.objects.GetInfo(w.ctx, meta.Name)
		if err != nil || info.Metadata["k"] != "v" {
			t.Errorf("%d bytes: %+v, %v", size, info, err)
		}
	}
	st, err := w.client.JS.Stream(w.ctx, "OBJ_"+w.client.Stream(subject.SnapshotsBucket))
	w.ok(err)
	if n := st.CachedInfo().State.Msgs; n != 4 {
		t.Errorf("%d messages are kept, expected 3 chunks and 1 description", n)
	}
}

// A snapshot of which a chunk is gone is given up, not waited for.
func TestSnapshotWithoutItsChunks(t *testing.T) {
	w := newWorld(t, 1, bus.Replay)
	w.lockstepWith(0, 5)
	s := w.store(control.Placement)
	name := placeName(control.Placement, 0)
	info, err := s.objects.GetInfo(w.ctx, name)
	w.ok(err)
	st, err := w.client.JS.Stream(w.ctx, "OBJ_"+info.Bucket)
	w.ok(err)
	w.ok(st.Purge(w.ctx, jetstream.WithPurgeSubject("$O."+info.Bucket+".C."+info.NUID)))
	if _, err := s.read(w.ctx, name, 50*time.Millisecond); !errors.Is(err, ErrSnapshot) {
		t.Errorf("got %v, expected ErrSnapshot", err)
	}
	if body, err := s.read(w.ctx, "nothing", time.Second); body != nil || err != nil {
		t.Errorf("an object that is not there: %d bytes, %v", len(body), err)
	}
}

func TestCoveredWaitsForEveryKindOfTheGroup(t *testing.T) {
	w := newWorld(t, 2, bus.Serve)
	put := func(k control.Kind, place int, group string, seqs ...uint64) {
		t.Helper()
		s := w.store(k)
		s.next = place
		w.ok(s.put(w.ctx, []byte("x"), group, seqs))
	}
	covered := func(want ...uint64) {
		t.Helper()
		got, ok, err := w.store(control.Split).covered(w.ctx, window.Fast, 2)
		w.ok(err)
		if ok != (want != nil) || ok && !slices.Equal(got, want) {
			t.Errorf("covered %v (%v), expected %v", got, ok, want)
		}
	}
	covered()
	put(control.Split, 0, window.Fast, 10, 20)
	covered()
	put(control.Split, 1, window.Fast, 30, 25)
	covered(10, 20)
	put(control.Placement, 0, window.Owners, 1, 1)
	covered(10, 20)
	put(control.Servers, 0, window.Fast, 5, 90)
	covered()
	put(control.Servers, 1, window.Fast, 6, 91)
	covered(5, 20)
	put(control.Servers, 0, window.Fast, 60, 70)
	covered(6, 20)
	// Of a bus with another number of partitions: nobody knows.
	put(control.Coding, 0, window.Fast, 60, 70, 80)
	covered()
}

// A decider that serves stores a snapshot before it decides anything.
func TestServingBeginsWithASnapshot(t *testing.T) {
	w := newWorld(t, 2, bus.Serve)
	r := w.start(func(o *Options) { o.Purpose = bus.Serve })
	<-r.Ready()
	found, faults, err := w.store(control.Placement).snapshots(w.ctx)
	if err != nil || len(faults) != 0 || len(found) != 1 || found[0].head.Loop.Windows != 0 {
		t.Errorf("%d snapshots, faults %v, %v", len(found), faults, err)
	}
	w.lockstep(0, 2)
	r.kill()
	r = w.start(func(o *Options) { o.Purpose = bus.Serve })
	w.lockstep(2, 3)
	r.stop()
}

// The configuration of a snapshot is gone: the older one, or the beginning.
func TestConfigurationOfASnapshotIsGone(t *testing.T) {
	const windows = 8
	want := undisturbed(t, windows)
	w := newWorld(t, 2, bus.Replay)
	w.lockstepWith(0, 5)
	edited := baseConfig
	edited.Least = 99
	s := w.store(control.Placement)
	// A snapshot under a configuration that nobody has kept, newer than all.
	found, _, err := s.snapshots(w.ctx)
	w.ok(err)
	p, err := toyFactory(0)(edited.bytes())
	w.ok(err)
	loop := found[0].head.Loop
	loop.Windows++
	var b bytes.Buffer
	asm := panes.New(panes.Options{Group: window.Owners, Partitions: 2})
	w.ok(writeSnapshot(&b, &loop, asm, p))
	s.next = 1 - found[0].place
	w.ok(s.put(w.ctx, b.Bytes(), window.Owners, []uint64{0, 0}))
	r := w.start()
	w.lockstep(5, windows)
	r.stop()
	same(t, "configuration gone", w.dump(), want)
}

// A refusal while nobody has written is of an attempt that was under way.
func TestRefusalWithoutAnotherWriter(t *testing.T) {
	w := newWorld(t, 1, bus.Replay)
	r := w.make()
	publish, refused := r.publish, 0
	r.publish = func(ctx context.Context, msgs []bus.Msg, expect uint64) (uint64, error) {
		if refused++; refused%2 == 1 {
			return 0, bus.ErrConflict
		}
		return publish(ctx, msgs, expect)
	}
	r.start()
	w.lockstep(0, 3)
	r.stop()
	if refused != 6 {
		t.Errorf("published %d times, expected twice a window", refused)
	}
}

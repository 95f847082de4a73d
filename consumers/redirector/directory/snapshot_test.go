package directory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"penstock/infra/clock"
)

func (w *world) files(what string) float64 {
	return testutil.ToFloat64(w.d.shown.files.WithLabelValues(what))
}

// TestStartsWithoutTheBus: what was last known is there, with its age, and with the
// bus it goes on from there, whatever happened meanwhile.
func TestStartsWithoutTheBus(t *testing.T) {
	file := filepath.Join(t.TempDir(), "directory")
	w := begin(t, Options{Snapshot: file, Sites: []string{"a", "b"}})
	for i := range 50 {
		w.set(fmt.Sprint("owner-", i), at([]string{"a", "b", "c"}[i%3], uint64(i)))
	}
	w.remove("owner-7")
	w.set("owner-0", at("a", 0))
	w.set("owner-0", at("b", 0)) // the last message stays, by which the bus is known
	w.follows("entries")
	want := w.all()
	o := w.d.opts
	w.stop()
	w.bus.Suspend()

	o.Sites = []string{"c", "b"} // other numbers
	man := clock.NewManual(time.Now().Add(time.Hour))
	o.Clock = man
	d, err := New(o)
	ok(t, err)
	ready(t, d)
	if !matches(d, want) {
		t.Error("the last known is not what was known")
	}
	if since, connected := d.Freshness(); connected || since < time.Hour || since > time.Hour+time.Minute {
		t.Errorf("%v old, connected %v", since, connected)
	}
	ok(t, w.bus.Resume())
	w.set("owner-1", at("b", 99))
	w.remove("owner-2")
	w.set("owner-7", at("a", 1))
	o.Clock = nil
	w.run(o)
	w.follows("what happened meanwhile")
	if n := w.loads("unread") + w.loads("position-gone"); n != 0 {
		t.Errorf("%v loads, although the snapshot goes on", n)
	}
	w.stop()

	// A bus that is another one is read from the beginning.
	ok(t, w.c.JS.DeleteKeyValue(t.Context(), w.c.Stream("locations")))
	w.surely(w.bus.Init) // its connection may still be on its way back
	w.set("owner-1", at("a", 1))
	w.run(o)
	w.follows("another bus")
	if w.loads("made-anew") != 1 {
		t.Error("not read from the beginning")
	}
	w.stop()

	// That there is nothing any more is known too.
	ok(t, w.stream().Purge(t.Context()))
	w.run(o)
	w.follows("nothing")
	w.stop()
	d, err = New(o)
	ok(t, err)
	ready(t, d)
	if d.Len() != 0 {
		t.Errorf("%d owners of nothing", d.Len())
	}
}

// TestDamagedSnapshots: each bit, each length: refused, and written anew after the
// bus was read.
func TestDamagedSnapshots(t *testing.T) {
	file := filepath.Join(t.TempDir(), "directory")
	w := begin(t, Options{Snapshot: file})
	for i := range 3 {
		w.set(fmt.Sprint("owner-", i), at("a", uint64(i)))
	}
	w.remove("owner-1")
	w.follows("entries")
	o := w.d.opts
	w.stop()
	whole, err := os.ReadFile(file)
	ok(t, err)
	refused := func(what string, content []byte) {
		t.Helper()
		ok(t, os.WriteFile(file, content, 0o600))
		d := &Directory{opts: o, names: newNames(nil), table: newTable(0), ghosts: map[uint64]struct{}{}}
		if err := d.load(); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range whole {
		for bit := range 8 {
			damaged := bytes.Clone(whole)
			damaged[i] ^= 1 << bit
			refused(fmt.Sprintf("byte %d bit %d", i, bit), damaged)
		}
		refused(fmt.Sprint(i, " bytes"), whole[:i])
	}
	refused("more than it was", append(bytes.Clone(whole), 0))
	w.bus.Suspend()
	d, err := New(o)
	ok(t, err)
	select {
	case <-d.Ready():
		t.Error("ready with nothing")
	default:
	}
	if since, _ := d.Freshness(); d.Len() != 0 || since != math.MaxInt64 {
		t.Errorf("%d owners, %v old", d.Len(), since)
	}
	ok(t, w.bus.Resume())
	w.run(o)
	w.follows("the bus")
	if w.files("refused") != 1 {
		t.Error("a refusal that is not counted")
	}
	eventually(t, "a new snapshot", func() bool { return w.files("written") == 1 })
	w.stop()
	again := &Directory{opts: o, names: newNames(nil)}
	again.forget()
	ok(t, again.load())
	if !matches(&Directory{table: again.table, names: again.names, hints: newTable(0)}, w.all()) {
		t.Error("the new one is not what the bus has")
	}
}

// TestSnapshotsWhileChangesGoOn: one that was written in the midst of changes leads
// to the state of the bus too.
func TestSnapshotsWhileChangesGoOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "directory")
	w := begin(t, Options{Snapshot: file, SnapshotEvery: time.Millisecond})
	for i := range 600 {
		w.set(fmt.Sprint("owner-", i%37), at(fmt.Sprint("site-", i%11), uint64(i)))
		if i%5 == 0 {
			w.remove(fmt.Sprint("owner-", (i*7)%37))
		}
		if i%100 == 99 {
			o := w.d.opts
			eventually(t, "a snapshot", func() bool { return w.files("written") > 0 })
			copied, err := os.ReadFile(file)
			ok(t, err)
			w.stop()
			ok(t, os.WriteFile(file, copied, 0o600)) // as after a kill
			w.run(o)
			if w.files("read") != 1 {
				t.Fatal("the snapshot was not read")
			}
			w.follows("the bus after a kill")
		}
	}
	w.stop()
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}

// TestASnapshotThatCannotBeWritten is said, and nothing else comes of it.
func TestASnapshotThatCannotBeWritten(t *testing.T) {
	w := begin(t, Options{Snapshot: filepath.Join(t.TempDir(), "no", "such", "folder")})
	w.set("x", at("a", 1))
	w.follows("an entry")
	w.stop()
	if w.files("write-failed") == 0 {
		t.Error("not counted")
	}
}

func TestOptions(t *testing.T) {
	if _, err := New(Options{}); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
	w := begin(t, Options{})
	if _, err := New(Options{Client: w.c, Check: -1}); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
	d, err := New(Options{Client: w.c})
	ok(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ok(t, d.Run(ctx))
}

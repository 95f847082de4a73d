package directory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

var t0 = time.Date(2015, 5, 17, 10, 0, 0, 123456789, time.UTC)

func at(site string, version uint64) control.Location {
	return control.Location{Site: site, Version: version, State: control.Live, Since: t0}
}

// world is a bus with locations and a directory that follows them.
type world struct {
	t    *testing.T
	bus  *bus.Bus
	c    *bus.Client // the writer's
	kv   *locations.KV
	d    *Directory
	stop func()
}

func prefixed(o *bus.Options) { o.Prefix = "P" }

func begin(t *testing.T, o Options) *world {
	t.Helper()
	w := &world{t: t, bus: bustest.Start(t, prefixed)}
	w.c = bustest.Client(t, w.bus)
	var err error
	w.kv, err = locations.Open(t.Context(), w.c)
	ok(t, err)
	o.Client = bustest.Client(t, w.bus)
	w.run(o)
	return w
}

// run starts a directory, in place of the one before.
func (w *world) run(o Options) {
	w.t.Helper()
	if w.stop != nil {
		w.stop()
	}
	if o.Check == 0 {
		o.Check = 20 * time.Millisecond
	}
	var err error
	w.d, err = New(o)
	ok(w.t, err)
	w.stop = running(w.t, w.d)
}

// running runs a directory until stop, or the end of the test.
func running(t *testing.T, d *Directory) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	once := false
	stop = func() {
		if once {
			return
		}
		once = true
		cancel()
		ok(t, <-ended)
	}
	t.Cleanup(stop)
	return stop
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(bustest.Timeout); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, bustest.Timeout)
		}
	}
}

// set writes an entry whatever is there, over lost connections.
func (w *world) set(owner string, l control.Location) {
	w.t.Helper()
	w.surely(func(ctx context.Context) error {
		_, revision, err := w.kv.Get(ctx, owner)
		if err == nil {
			_, err = w.kv.Set(ctx, owner, l, revision)
		}
		return err
	})
}

func (w *world) remove(owner string) {
	w.t.Helper()
	kv := w.raw()
	w.surely(func(ctx context.Context) error { return kv.Delete(ctx, subject.Encode(owner)) })
}

// surely does something until it succeeds.
func (w *world) surely(do func(context.Context) error) {
	w.t.Helper()
	var last error
	eventually(w.t, "a write", func() bool {
		ctx, cancel := context.WithTimeout(w.t.Context(), 500*time.Millisecond)
		defer cancel()
		last = do(ctx)
		return last == nil
	})
}

func (w *world) raw() jetstream.KeyValue {
	w.t.Helper()
	var kv jetstream.KeyValue
	w.surely(func(ctx context.Context) (err error) {
		kv, err = w.c.KV(ctx, subject.LocationsKV)
		return err
	})
	return kv
}

func (w *world) stream() jetstream.Stream {
	w.t.Helper()
	s, err := w.c.JS.Stream(w.t.Context(), w.c.KVStream(subject.LocationsKV))
	ok(w.t, err)
	return s
}

// follows waits until the directory is as the bus is.
func (w *world) follows(what string) {
	w.t.Helper()
	want := w.all()
	eventually(w.t, what, func() bool {
		since, connected := w.d.Freshness()
		return connected && since == 0 && matches(w.d, want)
	})
}

// all is what the bus has.
func (w *world) all() (out map[string]control.Location) {
	w.t.Helper()
	w.surely(func(ctx context.Context) error {
		out = map[string]control.Location{}
		return w.kv.List(ctx, func(o string, l control.Location) error { out[o] = l; return nil })
	})
	return out
}

// ready waits until a directory is.
func ready(t *testing.T, d *Directory) {
	t.Helper()
	eventually(t, "ready", func() bool {
		select {
		case <-d.Ready():
			return true
		default:
			return false
		}
	})
}

func matches(d *Directory, want map[string]control.Location) bool {
	if d.Len() != len(want) {
		return false
	}
	for o, l := range want {
		site, version, known := d.Locate(o)
		if got, there := d.Get(o); !known || !there || got != l || site != l.Site || version != l.Version {
			return false
		}
	}
	return true
}

// loads are how often the bus was read from the beginning, by why.
func (w *world) loads(why string) float64 {
	return testutil.ToFloat64(w.d.shown.loads.WithLabelValues(why))
}

// TestFollowsEveryChange: all entries at the start, then each change and deletion.
func TestFollowsEveryChange(t *testing.T) {
	w := begin(t, Options{Sites: []string{"a"}})
	ready(t, w.d)
	if _, _, known := w.d.Locate("x@y"); known || w.d.Len() != 0 {
		t.Error("an empty bus has owners")
	}
	pinned := at("b", 1<<63)
	pinned.Pinned, pinned.State = true, control.Moving
	for _, o := range []string{"x@y", "", "b64=", "plain", "/p/q?r", "2001:db8::1", strings.Repeat("é", 512)} {
		w.set(o, at("a", 1))
	}
	w.set("z", pinned)
	w.follows("entries that came")
	w.set("x@y", at("b", 2))
	w.set("z", at("a", 0)) // the bus has the last word, whatever the version
	ok(t, w.raw().Delete(t.Context(), "plain"))
	ok(t, w.raw().Purge(t.Context(), subject.Encode("/p/q?r")))
	w.follows("changes")
	w.run(w.d.opts)
	w.follows("a new start")
	w.set("plain", at("c", 9))
	w.follows("one that comes back")
	if since, connected := w.d.Freshness(); since != 0 || !connected {
		t.Errorf("%v old, connected %v", since, connected)
	}
	if w.loads("unread") != 1 || testutil.ToFloat64(w.d.shown.unknownSites) == 0 {
		t.Errorf("loads %v, unknown sites %v", w.loads("unread"), testutil.ToFloat64(w.d.shown.unknownSites))
	}
	if err := w.d.Run(t.Context()); !errors.Is(err, ErrRunning) {
		t.Errorf("a second run: %v", err)
	}
}

// TestPurgesAreSeen: what is gone from the bus without a message is gone here,
// deletion marks included, and nothing else is.
func TestPurgesAreSeen(t *testing.T) {
	w := begin(t, Options{})
	for i := range 20 {
		w.set(fmt.Sprint("owner-", i), at("a", 1))
	}
	w.follows("entries")
	s := w.stream()
	ok(t, s.Purge(t.Context(), jetstream.WithPurgeSubject(w.c.KeyPrefix(subject.LocationsKV)+"owner-3")))
	w.follows("one key")
	ok(t, w.raw().Delete(t.Context(), "owner-4"))
	w.follows("a deletion")
	ok(t, w.raw().PurgeDeletes(t.Context(), jetstream.DeleteMarkersOlderThan(-1)))
	w.set("owner-4", at("b", 1))
	w.follows("a mark that is gone")
	ok(t, s.Purge(t.Context(), jetstream.WithPurgeKeep(5)))
	w.follows("all but five")
	ok(t, s.Purge(t.Context()))
	w.follows("all")
	w.set("owner-1", at("c", 1))
	w.follows("one after all")
}

// TestABusMadeAnew: a bucket that is deleted and made again, with fewer or more
// entries than before and lower versions, is followed as it is.
func TestABusMadeAnew(t *testing.T) {
	for _, n := range []int{1, 3, 40} {
		w := begin(t, Options{})
		for i := range 10 {
			w.set(fmt.Sprint("owner-", i), at("a", 7))
		}
		w.follows("entries")
		ok(t, w.c.JS.DeleteKeyValue(t.Context(), w.c.Stream(subject.LocationsKV)))
		if _, _, known := w.d.Locate("owner-9"); !known {
			t.Error("forgotten before there is anything better")
		}
		ok(t, w.bus.Init(t.Context()))
		for i := range n {
			w.set(fmt.Sprint("owner-", i+5), at("b", 1))
		}
		w.follows(fmt.Sprint(n, " entries of another bucket"))
	}
}

// TestABusSetBack: a server that comes back with an older state of the same
// stream, and has gone on from there past what was read, is read again.
func TestABusSetBack(t *testing.T) {
	w := begin(t, Options{})
	for i := range 5 {
		w.set(fmt.Sprint("owner-", i), at("a", 1))
	}
	w.follows("entries")
	folder := w.bus.Options().Dir
	w.bus.Suspend()
	old := filepath.Join(t.TempDir(), "old")
	ok(t, os.CopyFS(old, os.DirFS(folder)))
	ok(t, w.bus.Resume())
	w.set("owner-0", at("b", 2))
	w.set("lost", at("b", 1))
	w.follows("what will be lost")
	w.bus.Suspend()
	ok(t, os.RemoveAll(filepath.Join(folder, "jetstream")))
	ok(t, os.CopyFS(filepath.Join(folder, "jetstream"), os.DirFS(filepath.Join(old, "jetstream"))))
	if site, _, _ := w.d.Locate("owner-0"); site != "b" {
		t.Error("what was known is gone with the bus")
	}
	ok(t, w.bus.Resume())
	for i := range 9 {
		w.set(fmt.Sprint("new-", i%4), at("c", uint64(i)))
	}
	w.follows("the state set back and gone on")
}

// TestRestartsAndCuts: changes during and between losses are all seen, and a bus
// that is the same is not read again.
func TestRestartsAndCuts(t *testing.T) {
	w := &world{t: t, bus: bustest.Start(t, prefixed, func(o *bus.Options) { o.Listen = "127.0.0.1:0" })}
	w.c = bustest.Client(t, w.bus)
	var err error
	w.kv, err = locations.Open(t.Context(), w.c)
	ok(t, err)
	proxy := bustest.NewProxy(t, w.bus.URL())
	far, err := bus.Open(t.Context(), bus.Options{URL: proxy.URL, Prefix: "P"})
	ok(t, err)
	defer func() { ok(t, far.Close()) }()
	c, err := far.Client(t.Context(), "directory")
	ok(t, err)
	w.run(Options{Client: c})
	defer w.stop()
	for i := range 200 {
		w.set(fmt.Sprint("owner-", i%17), at("a", uint64(i)))
		switch {
		case i%40 == 13:
			proxy.Cut()
		case i%100 == 51:
			bustest.Restart(t, w.bus)
		case i%9 == 4:
			w.remove(fmt.Sprint("owner-", i%17))
		}
	}
	w.follows("everything")
	loads := w.loads("unread") + w.loads("position-gone")
	eventually(t, "in step", func() bool { since, connected := w.d.Freshness(); return connected && since == 0 })
	proxy.Cut()
	w.set("after", at("b", 1))
	w.follows("a change after a cut")
	if now := w.loads("unread") + w.loads("position-gone"); now != loads {
		t.Errorf("the same bus was read again: %v loads, then %v", loads, now)
	}
}

// TestABusThatIsAway: without the bus the last known is served and its age grows;
// when it is back it is followed.
func TestABusThatIsAway(t *testing.T) {
	w := begin(t, Options{})
	w.set("x", at("a", 1))
	w.follows("an entry")
	w.bus.Suspend()
	eventually(t, "the loss is seen", func() bool { _, connected := w.d.Freshness(); return !connected })
	eventually(t, "the age grows", func() bool { since, _ := w.d.Freshness(); return since > 0 })
	if site, _, known := w.d.Locate("x"); site != "a" || !known {
		t.Error("the last known is gone")
	}
	ok(t, w.bus.Resume())
	w.set("x", at("b", 2))
	w.follows("the change afterwards")
	eventually(t, "in step", func() bool { since, connected := w.d.Freshness(); return connected && since == 0 })
}

// TestEntriesThatCannotBeUsed are counted and change nothing; the bus is not read
// again and again for them.
func TestEntriesThatCannotBeUsed(t *testing.T) {
	w := begin(t, Options{})
	w.set("x", at("a", 1))
	w.follows("an entry")
	kv := w.raw()
	for key, value := range map[string]string{
		"x": "{", "new": `{"site":"a"}`, "a/b": `{"site":"a","version":1,"state":"live","since":"2015-05-17T10:00:00Z"}`,
		"b64=" + strings.Repeat("A", 1400): `{"site":"a","version":1,"state":"live","since":"2015-05-17T10:00:00Z"}`,
	} {
		_, err := kv.PutString(t.Context(), key, value)
		ok(t, err)
	}
	aside := func(reason string) float64 { return testutil.ToFloat64(w.d.shown.setAside.WithLabelValues(reason)) }
	eventually(t, "set aside", func() bool { return aside("value") == 2 && aside("key") == 2 })
	if l, known := w.d.Get("x"); !known || l != at("a", 1) || w.d.Len() != 1 {
		t.Errorf("%+v, %d owners", l, w.d.Len())
	}
	w.run(w.d.opts)
	ready(t, w.d)
	if _, known := w.d.Get("x"); known || w.d.Len() != 0 {
		t.Errorf("there is nothing usable, yet %d owners", w.d.Len())
	}
	w.set("y", at("a", 1))
	eventually(t, "an entry among them", func() bool { return w.d.Len() == 1 })
	checks := w.d.at.seq // nothing else is going on
	for range 5 {
		w.set("y", at("a", checks))
		eventually(t, "changes", func() bool { l, _ := w.d.Get("y"); return l.Version == checks })
		checks++
	}
	if n := w.loads("unread"); n != 1 {
		t.Errorf("%v loads", n)
	}
}

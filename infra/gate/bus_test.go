package gate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
	"penstock/infra/testserver"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// barrierless is a store of a folder whose barrier nobody sees.
type barrierless struct{ objectstore.Store }

func (barrierless) Capabilities() objectstore.Capabilities {
	return objectstore.Capabilities{Durable: true}
}

func (barrierless) Hold(context.Context, string, string) (objectstore.Held, error) {
	return nil, objectstore.ErrNoBarrier
}

func folder(t *testing.T) objectstore.Store {
	t.Helper()
	s, err := dir.Open(filepath.Join(t.TempDir(), "store"), dir.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "ann@example.com", "letter", strings.NewReader("hello"), objectstore.Mark{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// eventually waits for what happens elsewhere.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(bustest.Timeout); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// TestOverABus holds through a real server, with a prefix and ids that are no
// tokens, and tells how it ended.
func TestOverABus(t *testing.T) {
	t.Parallel()
	const owner = "ann@example.com"
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Prefix = 1, "blue" })
	near := bustest.Client(t, b)
	learnt := make(chan where, 1)
	k, stop := keeper(t, KeeperOptions{
		Client: bustest.Client(t, b), Site: "eu west", Name: "web.1",
		Learn: func(_, site string, version uint64) { learnt <- where{site, version} },
	})
	<-k.Ready()
	if all, err := Entries(t.Context(), near); err != nil || len(all) != 1 || all[0] != (Entry{"eu west", "web.1", true}) {
		t.Errorf("entries %+v, %v", all, err)
	}
	m, end := barrier(t, BarrierOptions{Client: bustest.Client(t, b), Name: "mover-1"})
	inner := folder(t)
	s := m.Store("eu west", barrierless{inner}, false)
	if _, err := s.Hold(t.Context(), "nobody", ""); !errors.Is(err, objectstore.ErrNoOwner) {
		t.Errorf("an owner that is not there: %v", err)
	}
	l, err := s.List(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	h, err := s.Hold(t.Context(), owner, l.Version)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("held after %s", time.Since(began).Round(100*time.Microsecond))
	waiting := heldNow(t, k, owner)
	if err := h.Mark(t.Context(), objectstore.Mark{}, objectstore.Mark{State: objectstore.Retired, Version: 1, Site: "us"}); err != nil {
		t.Fatal(err)
	}
	link := onBus{near}
	if err := link.relocate(t.Context(), owner, control.Location{Site: "us", Version: 1, State: control.Live, Since: time.Now().UTC()}, 0); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	h.Release()
	t.Logf("released after %s", time.Since(began).Round(100*time.Microsecond))
	<-waiting
	if w := <-learnt; w != (where{"us", 1}) {
		t.Errorf("learnt %+v", w)
	}
	if !s.Capabilities().Barrier || m.Store("us", barrierless{inner}, false).Capabilities().Barrier {
		t.Error("a barrier is where entry points are")
	}
	if _, err := m.Store("us", barrierless{inner}, false).Hold(t.Context(), owner, ""); !errors.Is(err, objectstore.ErrNoBarrier) {
		t.Errorf("a site without entry points: %v", err)
	}
	// An old revision of locations is refused, also when there was none.
	if err := link.relocate(t.Context(), owner, control.Location{Site: "us", State: control.Live}, 0); !errors.Is(err, errConflict) {
		t.Errorf("relocated: %v", err)
	}
	if err := link.relocate(t.Context(), owner, control.Location{Site: "us", State: control.Live}, 999); !errors.Is(err, errConflict) {
		t.Errorf("relocated: %v", err)
	}
	if err := k.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if all, err := Entries(t.Context(), near); err != nil || len(all) != 0 {
		t.Errorf("entries after it has drained: %+v, %v", all, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	end()
}

// TestADeadEntryPoint keeps moves from a store without a barrier until it is back or
// forgotten, and from one whose barrier its writers ignore; a store that has one goes on.
func TestADeadEntryPoint(t *testing.T) {
	t.Parallel()
	const owner = "ann@example.com"
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	near := bustest.Client(t, b)
	k, stop := keeper(t, KeeperOptions{Client: bustest.Client(t, b), Site: "eu", Name: "web-1"})
	k2, stop2 := keeper(t, KeeperOptions{Client: bustest.Client(t, b), Site: "eu", Name: "web-2"})
	<-k.Ready()
	<-k2.Ready()
	if err := stop(); err != nil {
		t.Error(err)
	}
	m, end := barrier(t, BarrierOptions{Client: bustest.Client(t, b), Name: "mover-1", Silence: 200 * time.Millisecond})
	inner := folder(t)
	_, err := m.Store("eu", barrierless{inner}, false).Hold(t.Context(), owner, "")
	var silent *SilentError
	if !errors.As(err, &silent) || silent.Entry != "web-1" {
		t.Errorf("with a dead entry point: %v", err)
	}
	eventually(t, "the other one to let writes in", func() bool { return k2.Holding() == 0 })

	// A store with a barrier of its own does it alone, unless its writers ignore that.
	if _, err := m.Store("eu", inner, true).Hold(t.Context(), owner, ""); !errors.As(err, &silent) || silent.Entry != "web-1" {
		t.Errorf("with a dead entry point, whatever the store can do: %v", err)
	}
	eventually(t, "the other one to let writes in again", func() bool { return k2.Holding() == 0 })
	h, err := m.Store("eu", inner, false).Hold(t.Context(), owner, "")
	if err != nil {
		t.Fatal(err)
	}
	if n := k2.Holding(); n != 0 {
		t.Errorf("%d owners are held for a store that holds by itself", n)
	}
	h.Release()

	all, err := Entries(t.Context(), near)
	if err != nil || len(all) != 2 {
		t.Fatalf("entries %+v, %v", all, err)
	}
	for _, e := range all {
		if e.Alive != (e.Name == "web-2") {
			t.Errorf("entry %+v", e)
		}
	}
	if found, err := Forget(t.Context(), near, "eu", "web-1"); err != nil || !found {
		t.Errorf("forget: %v, %v", found, err)
	}
	if found, err := Forget(t.Context(), near, "eu", "web-1"); err != nil || found {
		t.Errorf("forget again: %v, %v", found, err)
	}
	eventually(t, "the mover to know", func() bool { return len(m.names("eu")) == 1 })
	// With the one that is left both the entry point and the store hold.
	h, err = m.Store("eu", inner, true).Hold(t.Context(), owner, "")
	if err != nil {
		t.Fatal(err)
	}
	if n := k2.Holding(); n != 1 {
		t.Errorf("%d owners are held", n)
	}
	if err := h.Mark(t.Context(), objectstore.Mark{}, objectstore.Mark{State: objectstore.Live, Version: 1}); err != nil {
		t.Error(err)
	}
	h.Release()
	if k2.Holding() != 0 {
		t.Error("held after the release")
	}
	h, err = m.Store("eu", barrierless{inner}, false).Hold(t.Context(), owner, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Delete(t.Context(), objectstore.Mark{State: objectstore.Live, Version: 1}); err != nil {
		t.Error(err)
	}
	h.Release()
	if err := stop2(); err != nil {
		t.Error(err)
	}
	end()
}

// TestCutConnections moves an owner to and fro while the connections of the entry
// point and of the mover are cut again and again: whatever is acknowledged at a site
// is so while the owner is there.
func TestCutConnections(t *testing.T) {
	t.Parallel()
	const owner = "ann@example.com"
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Listen = 1, "127.0.0.1:0" })
	near := bustest.Client(t, b)
	link := onBus{near}
	far := func() (*bus.Client, *bustest.Proxy) {
		p := bustest.NewProxy(t, b.URL())
		o, err := bus.Open(t.Context(), bus.Options{URL: p.URL, Logger: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = o.Close() }) // Its connection may be cut.
		return bustest.Client(t, o), p
	}
	sites := []string{"a", "b"}
	var proxies []*bustest.Proxy
	entries := map[string]*Keeper{}
	at := func() string {
		l, revision, err := link.location(t.Context(), owner)
		if err != nil {
			t.Fatal(err)
		}
		if revision == 0 {
			return "a"
		}
		return l.Site
	}
	for _, site := range sites {
		c, p := far()
		k, _ := keeper(t, KeeperOptions{Client: c, Site: site, Name: "web-1"})
		<-k.Ready()
		entries[site], proxies = k, append(proxies, p)
	}
	c, p := far()
	m, end := barrier(t, BarrierOptions{Client: c, Name: "mover-1", Lease: 500 * time.Millisecond})
	proxies = append(proxies, p)
	inner := folder(t)

	done := make(chan struct{})
	var working sync.WaitGroup
	working.Go(func() { // Somebody pulls the plugs, again and again, and rests.
		for i := 1; ; i++ {
			pause := 60 * time.Millisecond
			p := proxies[i%len(proxies)]
			switch i % 8 {
			case 0:
				for _, p := range proxies {
					p.Deaf(false)
				}
				pause = 800 * time.Millisecond // All find their way back.
			case 3, 7:
				p.Cut()
			default:
				p.Deaf(i%2 == 0)
			}
			select {
			case <-done:
				return
			case <-time.After(pause): // The rate of the faults.
			}
		}
	})
	acked := 0
	working.Go(func() { // Writers, who ask where the owner is before they are acknowledged.
		for {
			select {
			case <-done:
				return
			default:
			}
			site := at()
			leave, held := entries[site].Enter(owner)
			if held != nil {
				select {
				case <-held:
				case <-done:
				}
				continue
			}
			if at() == site { // else it has moved before the write began
				time.Sleep(time.Millisecond) // The service works.
				if now := at(); now != site {
					t.Errorf("a write is acknowledged at %s, and its owner is at %s", site, now)
				}
				acked++
			}
			leave()
		}
	})
	moved := 0
	began := time.Now()
	for time.Since(began) < 2500*time.Millisecond || moved < 5 && time.Since(began) < bustest.Timeout {
		if tryToMove(t, m, inner, owner, at) {
			moved++
		}
	}
	close(done)
	for _, p := range proxies {
		p.Deaf(false)
	}
	working.Wait()
	t.Logf("%d moves, %d writes", moved, acked)
	if moved == 0 || acked == 0 {
		t.Error("too little happened")
	}
	// Everybody comes to know in the end.
	for site, k := range entries {
		eventually(t, fmt.Sprintf("the entry point of %s to let writes in", site), func() bool { return k.Holding() == 0 })
	}
	end()
}

// tryToMove flips an owner under a hold, over the mover's own connection.
func tryToMove(t *testing.T, m *Barrier, inner objectstore.Store, owner string, at func() string) bool {
	t.Helper()
	from := at()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	l, revision, err := m.o.link.location(ctx, owner)
	if err != nil || revision > 0 && l.Site != from {
		return false
	}
	h, err := m.Store(from, barrierless{inner}, false).Hold(ctx, owner, "")
	if err != nil {
		return false
	}
	defer h.Release()
	if h.Mark(ctx, objectstore.Mark{}, objectstore.Mark{}) != nil {
		return false
	}
	to := map[string]string{"a": "b", "b": "a"}[from]
	short, stop := context.WithTimeout(ctx, 200*time.Millisecond)
	defer stop()
	next := control.Location{Site: to, Version: l.Version + 1, State: control.Live, Since: time.Now().UTC()}
	return m.o.link.relocate(short, owner, next, revision) == nil
}

func TestOptionsAreChecked(t *testing.T) {
	if _, err := NewKeeper(KeeperOptions{}); !errors.Is(err, ErrOptions) {
		t.Errorf("keeper: %v", err)
	}
	p := calm(t.Context())
	for _, o := range []BarrierOptions{{}, {Name: "m"}, {link: p}, {link: p, Name: "m", Lease: time.Minute}, {link: p, Name: "m", Silence: -1}} {
		if _, err := NewBarrier(o); !errors.Is(err, ErrOptions) {
			t.Errorf("barrier %+v: %v", o, err)
		}
	}
	for _, key := range []string{"", "entry", "entry.a", "entry.a.b.c", "hold.a.b", "mover.a.b", "other.a.b", "entry.a b.c"} {
		if kind, names, ok := parseKey(key); ok {
			t.Errorf("%q is a key of kind %s, %v", key, kind, names)
		}
	}
	for _, site := range []string{"a", "eu west", "é"} {
		if kind, names, ok := parseKey(holdKey(site, "m.1", 7)); !ok || kind != holdKind || names[0] != site || names[1] != "m.1" {
			t.Errorf("key %s: %v", holdKey(site, "m.1", 7), names)
		}
	}
	if s := subject.Gate("a", "b"); s != "gate.a.b" {
		t.Error(s)
	}
}

// TestAnEntryPointBeforeItsBus starts while there is no server at all, lets writes in
// after a while, and registers when the server comes.
func TestAnEntryPointBeforeItsBus(t *testing.T) {
	t.Parallel()
	address := testserver.FreeAddress(t)
	away, err := bus.Open(t.Context(), bus.Options{URL: "nats://" + address, Patient: true, Partitions: 1, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = away.Close() }()
	k, stop := keeper(t, KeeperOptions{Client: bustest.Client(t, away), Site: "eu", Name: "web-1", Away: 300 * time.Millisecond})
	heldNow(t, k, "ann")
	<-k.Ready()
	entered(t, k, "ann")()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Listen = 1, address })
	near := bustest.Client(t, b)
	eventually(t, "the entry point to register", func() bool {
		all, err := Entries(t.Context(), near)
		return err == nil && len(all) == 1 && all[0].Alive
	})
	m, end := barrier(t, BarrierOptions{Client: near, Name: "mover-1"})
	h, err := m.Store("eu", barrierless{folder(t)}, false).Hold(t.Context(), "ann@example.com", "")
	if err != nil {
		t.Fatal(err)
	}
	heldNow(t, k, "ann@example.com")
	h.Release()
	if err := stop(); err != nil {
		t.Error(err)
	}
	end()
}

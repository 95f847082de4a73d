package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/objectstore"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// bubble runs a test in virtual time; at its end, what is under way arrives.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) }) // After all others.
		f(t)
	})
}

// calm is a sea on which nothing is lost, with a process on it.
func calm(ctx context.Context) *port {
	s := newSea(1)
	s.loss = 0
	s.moved = func(string, string, string, int) {}
	return &port{sea: s, ctx: ctx}
}

// keeper runs an entry point until the test ends or stop is called, which returns
// what Run did.
func keeper(t *testing.T, o KeeperOptions) (k *Keeper, stop func() error) {
	t.Helper()
	o.Logger = zerolog.Nop()
	k, err := NewKeeper(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return k, stop
}

// barrier runs a mover's side likewise.
func barrier(t *testing.T, o BarrierOptions) (b *Barrier, stop func()) {
	t.Helper()
	o.Logger = zerolog.Nop()
	b, err := NewBarrier(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("barrier: %v", err)
		}
	})
	t.Cleanup(stop)
	return b, stop
}

func entered(t *testing.T, k *Keeper, owner string) (leave func()) {
	t.Helper()
	leave, held := k.Enter(owner)
	if held != nil {
		t.Fatalf("%s is held", owner)
	}
	return leave
}

func heldNow(t *testing.T, k *Keeper, owner string) <-chan struct{} {
	t.Helper()
	leave, held := k.Enter(owner)
	if leave != nil || held == nil {
		t.Fatalf("%s is not held", owner)
	}
	return held
}

func isOver(held <-chan struct{}) bool {
	select {
	case <-held:
		return true
	default:
		return false
	}
}

// memory is a store without a barrier that holds one owner's version.
type memory struct {
	objectstore.Store
	mu      sync.Mutex
	version int
	marks   []objectstore.Mark
}

func (*memory) Capabilities() objectstore.Capabilities { return objectstore.Capabilities{} }

func (m *memory) List(context.Context, string) (objectstore.Listing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return objectstore.Listing{Version: fmt.Sprint(m.version), Objects: make([]objectstore.Object, 1)}, nil
}

func (*memory) Hold(context.Context, string, string) (objectstore.Held, error) {
	return nil, objectstore.ErrNoBarrier
}

func (m *memory) Mark(_ context.Context, _ string, _, to objectstore.Mark) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.marks = append(m.marks, to)
	return nil
}

// TestAMoveAtTwoEntryPoints goes through a move: the running write is waited for,
// other owners go on, and who waited learns where the owner is.
func TestAMoveAtTwoEntryPoints(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := calm(t.Context())
		learnt := make(chan where, 4)
		learn := func(owner, site string, version uint64) {
			if owner != "ann" {
				t.Errorf("learnt of %s", owner)
			}
			learnt <- where{site, version}
		}
		var stops []func() error
		var entries []*Keeper
		for _, name := range []string{"web-1", "web-2"} {
			k, stop := keeper(t, KeeperOptions{Site: "a", Name: name, link: p, Learn: learn})
			entries, stops = append(entries, k), append(stops, stop)
			if isOver(heldNow(t, k, "ann")) {
				t.Error("the gate is open before it has registered")
			}
			<-k.Ready()
		}
		b, end := barrier(t, BarrierOptions{Name: "mover-1", link: p})
		m := &memory{}
		s := b.Store("a", m, false)
		leave := entered(t, entries[1], "ann")
		got := make(chan objectstore.Held, 1)
		go func() {
			h, err := s.Hold(t.Context(), "ann", "0")
			if err != nil {
				t.Error(err)
			}
			got <- h
		}()
		time.Sleep(3 * time.Second) // Longer than a lease: who waits for another renews.
		waiting := heldNow(t, entries[0], "ann")
		heldNow(t, entries[1], "ann")
		entered(t, entries[0], "bob")()
		if len(got) > 0 {
			t.Fatal("held while a write is running")
		}
		leave()
		h := <-got
		time.Sleep(5 * time.Second)
		if isOver(waiting) || entries[0].Holding() != 1 {
			t.Fatal("the hold has ended by itself")
		}
		retired := objectstore.Mark{State: objectstore.Retired, Version: 1, Site: "b"}
		if err := h.Mark(t.Context(), objectstore.Mark{}, retired); err != nil {
			t.Fatal(err)
		}
		if err := p.relocate(t.Context(), "ann", control.Location{Site: "b", Version: 1, State: control.Live}, 0); err != nil {
			t.Fatal(err)
		}
		h.Release()
		h.Release()
		<-waiting
		for range entries {
			if w := <-learnt; w != (where{"b", 1}) {
				t.Errorf("learnt %+v", w)
			}
		}
		entered(t, entries[0], "ann")() // To be forwarded, that is.
		if len(m.marks) != 1 || m.marks[0] != retired {
			t.Errorf("marks %v", m.marks)
		}

		// What has changed is not held, and nobody waits.
		if _, err := s.Hold(t.Context(), "ann", "7"); !errors.Is(err, objectstore.ErrChanged) {
			t.Errorf("another version: %v", err)
		}
		if n := entries[0].Holding() + entries[1].Holding(); n != 0 {
			t.Errorf("%d owners are held", n)
		}

		// One drains, and is not waited for any more.
		last := entered(t, entries[1], "ann")
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := entries[1].Drain(short); !errors.Is(err, ErrNotDrained) {
			t.Errorf("drained with a write running: %v", err)
		}
		last()
		if err := entries[1].Drain(t.Context()); err != nil {
			t.Error(err)
		}
		heldNow(t, entries[1], "bob")
		if err := stops[1](); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		h, err := s.Hold(t.Context(), "ann", "")
		if err != nil {
			t.Fatal(err)
		}
		h.Release()

		// The other one dies, and is: the move can't be.
		if err := stops[0](); err != nil {
			t.Error(err)
		}
		_, err = s.Hold(t.Context(), "ann", "")
		var silent *SilentError
		if !errors.As(err, &silent) || silent.Entry != "web-1" || err.Error() != "entry-silent: web-1 (of a): an entry point does not answer" {
			t.Errorf("hold with a dead entry point: %v", err)
		}
		end()
	})
}

// TestAMoverThatDies leaves an owner held until it is known where it is: nobody is
// let in by the lease alone, and what the dead one had sent is refused.
func TestAMoverThatDies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := calm(t.Context())
		learnt := make(chan where, 1)
		k, stop := keeper(t, KeeperOptions{Site: "a", Name: "web-1", link: p, Learn: func(_, site string, version uint64) { learnt <- where{site, version} }})
		<-k.Ready()
		life, die := context.WithCancel(t.Context())
		dying := &port{sea: p.sea, ctx: life}
		b, end := barrier(t, BarrierOptions{Name: "mover-1", link: dying})
		h, err := b.Store("a", &memory{}, false).Hold(t.Context(), "ann", "")
		if err != nil {
			t.Fatal(err)
		}
		waiting := heldNow(t, k, "ann")
		die()
		end()
		h.Release() // What it does comes to nothing.
		time.Sleep(time.Minute)
		if isOver(waiting) {
			t.Fatal("a write was let in, and nobody knows where its owner is")
		}
		entered(t, k, "bob")()

		// An entry point that starts now holds the owner as well.
		k2, stop2 := keeper(t, KeeperOptions{Site: "a", Name: "web-2", link: p})
		<-k2.Ready()
		heldNow(t, k2, "ann")

		_, end2 := barrier(t, BarrierOptions{Name: "mover-2", link: p})
		<-waiting
		if w := <-learnt; w != (where{"a", 0}) {
			t.Errorf("learnt %+v", w)
		}
		// The flip of the dead mover expected nothing to be there.
		if err := p.relocate(t.Context(), "ann", control.Location{Site: "b", Version: 1, State: control.Live}, 0); !errors.Is(err, errConflict) {
			t.Errorf("a flip that was under way: %v", err)
		}
		entered(t, k, "ann")()
		time.Sleep(5 * time.Second)
		entered(t, k2, "ann")()
		if err := errors.Join(stop(), stop2()); err != nil {
			t.Error(err)
		}
		end2()
	})
}

// TestALostBus: a hold in force when the bus goes away stays until it is back; other
// owners don't notice. The mover's hold is lost, and says so.
func TestALostBus(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := calm(t.Context())
		far := &port{sea: p.sea, ctx: t.Context()}
		k, stop := keeper(t, KeeperOptions{Site: "a", Name: "web-1", link: far})
		<-k.Ready()
		b, end := barrier(t, BarrierOptions{Name: "mover-1", link: p})
		h, err := b.Store("a", &memory{}, false).Hold(t.Context(), "ann", "")
		if err != nil {
			t.Fatal(err)
		}
		far.cut(30 * time.Second)
		time.Sleep(10 * time.Second)
		waiting := heldNow(t, k, "ann")
		entered(t, k, "bob")()
		if err := h.Mark(t.Context(), objectstore.Mark{}, objectstore.Mark{State: objectstore.Retired}); !errors.Is(err, objectstore.ErrHoldLost) {
			t.Errorf("mark under a hold that nobody confirms: %v", err)
		}
		if err := h.Delete(t.Context(), objectstore.Mark{}); !errors.Is(err, objectstore.ErrHoldLost) {
			t.Errorf("delete: %v", err)
		}
		h.Release()
		if isOver(waiting) {
			t.Error("let in without the bus")
		}
		<-waiting
		entered(t, k, "ann")()
		if err := stop(); err != nil {
			t.Error(err)
		}
		end()
	})
}

// TestNames: an entry point that lives keeps its name, and one that has lost it lets
// nobody in any more.
func TestNames(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := calm(t.Context())
		k, stop := keeper(t, KeeperOptions{Site: "a", Name: "web-1", link: p})
		<-k.Ready()
		k2, stop2 := keeper(t, KeeperOptions{Site: "a", Name: "web-1", link: p})
		time.Sleep(time.Second)
		if err := stop2(); !errors.Is(err, ErrNameInUse) {
			t.Errorf("a second one of that name: %v", err)
		}
		heldNow(t, k2, "ann")
		// Forgotten, it registers again; displaced, it ends.
		if err := p.remove(t.Context(), entryKey("a", "web-1")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookEvery + time.Second)
		if v, err := p.get(t.Context(), entryKey("a", "web-1")); err != nil || v == nil {
			t.Errorf("it is not registered again: %v", err)
		}
		entered(t, k, "ann")()
		if _, err := p.put(t.Context(), entryKey("a", "web-1"), encode(registration{"another"})); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookEvery + time.Second)
		if err := stop(); !errors.Is(err, ErrDisplaced) {
			t.Errorf("displaced: %v", err)
		}
		heldNow(t, k, "ann")
	})
}

// TestAStartWithoutTheBus keeps writes waiting for a while, and then goes on as if
// there were no movers; told otherwise, it waits. Once the bus is there it registers.
func TestAStartWithoutTheBus(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := calm(t.Context())
		p.cut(time.Minute)
		patient, stop := keeper(t, KeeperOptions{Site: "a", Name: "web-1", link: p})
		strict, stop2 := keeper(t, KeeperOptions{Site: "a", Name: "web-2", link: p, Away: -1})
		synced := make(chan struct{})
		third, stop3 := keeper(t, KeeperOptions{Site: "a", Name: "web-3", link: p, Away: -1, Sync: func(context.Context) error {
			select {
			case <-synced:
				return nil
			default:
				return errors.New("not yet")
			}
		}})
		time.Sleep(DefaultAway - 100*time.Millisecond)
		heldNow(t, patient, "ann")
		time.Sleep(time.Second)
		entered(t, patient, "ann")()
		time.Sleep(30 * time.Second)
		heldNow(t, strict, "ann")
		<-strict.Ready()
		entered(t, strict, "ann")()
		time.Sleep(30 * time.Second) // It looks again and again, and messages travel.
		if v, err := p.get(t.Context(), entryKey("a", "web-1")); err != nil || v == nil {
			t.Errorf("not registered: %v", err)
		}
		time.Sleep(5 * time.Second)
		heldNow(t, third, "ann") // It doesn't know yet where owners are.
		close(synced)
		<-third.Ready()
		if err := errors.Join(stop(), stop2(), stop3()); err != nil {
			t.Error(err)
		}
	})
}

// TestRequestsThatAreNone are answered, and counted.
func TestRequestsThatAreNone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := calm(t.Context())
		var mu sync.Mutex
		counts := map[string]int64{}
		k, _ := keeper(t, KeeperOptions{Site: "a", Name: "web-1", link: p, Count: func(what string, n int64) {
			mu.Lock()
			defer mu.Unlock()
			counts[what] += n
		}})
		<-k.Ready()
		for _, body := range []string{"", "{", `{"op":"dance"}`, `{"op":"hold"}`, `{"op":"hold","id":"1"}`} {
			b, err := p.ask(t.Context(), subject.Gate("a", "web-1"), []byte(body))
			if a, derr := decode[answer](b); err != nil || derr != nil || a.State != stateLost {
				t.Errorf("%q: %s, %v", body, b, err)
			}
		}
		if b, err := p.ask(t.Context(), subject.Gate("a", "web-1"), []byte(`{"op":"release","id":"1","owner":"ann"}`)); err != nil {
			t.Error(err)
		} else if a, _ := decode[answer](b); a.State != stateReleased {
			t.Errorf("release of nothing: %s", b)
		}
		// A request to hold that comes after its release.
		b, err := p.ask(t.Context(), subject.Gate("a", "web-1"), encode(request{Op: opHold, ID: "1", Owner: "ann", LeaseMS: 100}))
		if a, _ := decode[answer](b); err != nil || a.State != stateLost {
			t.Errorf("a hold that is over: %s, %v", b, err)
		}
		entered(t, k, "ann")()
		mu.Lock()
		defer mu.Unlock()
		if counts[Unreadable] < 5 {
			t.Errorf("counts %v", counts)
		}
	})
}

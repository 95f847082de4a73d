package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"penstock/infra/objectstore"
)

// world is several processes that share one owner over a bad line. Each writer has
// objects of its own, so that it knows what they hold: the last number that was
// acknowledged, or one after it whose outcome nobody told.
type world struct {
	t      *testing.T
	f      *faulty
	fences atomic.Int64
	broken atomic.Int64 // holds that lapsed
	acked  atomic.Int64
	enough func() // ends it when there were enough writes and fences
	// closed is odd from the moment that the mover knows of its fence until it
	// opens the copy: a write that begins and ends at one odd number was
	// acknowledged behind the fence.
	closed atomic.Uint64
}

func (w *world) options() Options {
	return Options{
		Lease: 4 * time.Millisecond, Poll: 50 * time.Microsecond, Grace: 100 * time.Microsecond,
		Orphan: 2 * time.Millisecond, Count: func(reason string, n int64) {
			if reason == "lease-broken" {
				w.broken.Add(n)
			}
		},
	}
}

// register is one object of a writer.
type register struct {
	name        string
	acked, next int
}

func (w *world) writer(ctx context.Context, s *Store, id int, r *rand.Rand) {
	regs := []*register{{name: fmt.Sprintf("%d/a", id)}, {name: fmt.Sprintf("%d/b", id)}}
	for ctx.Err() == nil {
		x := regs[r.IntN(len(regs))]
		x.next++
		content := strconv.Itoa(x.next)
		if r.IntN(4) == 0 {
			content += strings.Repeat(" ", 70_000) // too large to be sent again
		}
		before := w.closed.Load()
		_, err := s.Put(ctx, "o", x.name, strings.NewReader(content), objectstore.Mark{})
		if err == nil {
			if after := w.closed.Load(); before == after && before%2 == 1 {
				w.t.Errorf("writer %d: a write was acknowledged while the copy was fenced", id)
			}
			x.acked = x.next
			w.acked.Add(1)
			w.enough()
		}
		if r.IntN(3) == 0 {
			w.check(ctx, s, x)
		}
	}
	for _, x := range regs {
		w.check(context.Background(), s, x)
	}
}

// check reads an object of the one writer that writes it.
func (w *world) check(ctx context.Context, s *Store, x *register) {
	for {
		r, err := s.Open(ctx, "o", x.name)
		switch {
		case errors.Is(err, errLine):
			continue
		case ctx.Err() != nil:
			return
		case errors.Is(err, objectstore.ErrNoObject), errors.Is(err, objectstore.ErrNoOwner):
			if x.acked > 0 {
				w.t.Errorf("%s: write %d was acknowledged and isn't there", x.name, x.acked)
			}
			return
		case err != nil:
			w.t.Errorf("%s: %v", x.name, err)
			return
		}
		b, err := io.ReadAll(r)
		if err != nil {
			w.t.Errorf("%s: %v", x.name, err)
		}
		got, err := strconv.Atoi(strings.TrimRight(string(b), " "))
		if err != nil || got < x.acked || got > x.next {
			w.t.Errorf("%s holds %d, acknowledged was %d, last tried %d", x.name, got, x.acked, x.next)
		}
		return
	}
}

// mover fences and opens the copy again and again. Some holds it forgets.
func (w *world) mover(ctx context.Context, s *Store, r *rand.Rand) {
	for v := uint64(1); ctx.Err() == nil; v++ {
		h, err := s.Hold(ctx, "o", "")
		if err != nil {
			continue
		}
		if r.IntN(4) == 0 {
			Abandon(h)
			continue
		}
		held, err := s.List(ctx, "o")
		if err != nil {
			h.Release()
			continue
		}
		fence := objectstore.Mark{State: objectstore.Retired, Version: v, Site: "b"}
		err = h.Mark(ctx, held.Mark, fence)
		if err == nil {
			w.closed.Add(1)
			h.Release()
			w.fenced(ctx, s, held.Version, r)
			w.closed.Add(1)
			w.fences.Add(1)
			w.enough()
		} else {
			h.Release()
		}
		w.reopen(s)
	}
}

// fenced watches that nothing changes any more.
func (w *world) fenced(ctx context.Context, s *Store, version string, r *rand.Rand) {
	for range 1 + r.IntN(5) {
		l, err := s.List(ctx, "o")
		if err == nil && l.Version != version {
			w.t.Errorf("fenced at %s, now at %s", version, l.Version)
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// reopen makes the copy live whatever it is, as often as it takes.
func (w *world) reopen(s *Store) {
	for {
		m, err := s.Stat(context.Background(), "o")
		if err != nil {
			continue
		}
		if m.Writable() || s.Mark(context.Background(), "o", m, objectstore.Mark{}) == nil {
			return
		}
	}
}

// TestHistories lets writers and a mover in several processes work on one owner
// over a line that is cut now and then: no acknowledged write is lost, none is
// acknowledged behind a fence, no object loses its content, and nothing is left
// over in the end.
func TestHistories(t *testing.T) {
	seeds := uint64(6)
	if os.Getenv("PENSTOCK_WHOLE") != "" {
		seeds = 200
	}
	faults := 0
	for seed := range seeds {
		w := &world{t: t, f: newFaulty(seed, 4)}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		w.enough = func() {
			if w.acked.Load() >= 60 && w.fences.Load() >= 4 {
				cancel()
			}
		}
		var wg sync.WaitGroup
		var stores []*Store
		for i := range 4 {
			s := New(w.f, w.options())
			stores = append(stores, s)
			wg.Go(func() { w.writer(ctx, s, i, rand.New(rand.NewPCG(seed, uint64(i)))) })
		}
		wg.Go(func() { w.mover(ctx, stores[0], rand.New(rand.NewPCG(seed, 99))) })
		wg.Wait()
		cancel()
		w.f.heal()
		w.end(t, stores)
		t.Logf("seed %d: %d writes, %d fences, %d holders died, %d faults", seed, w.acked.Load(), w.fences.Load(), w.broken.Load(), w.f.faults)
		if w.acked.Load() < 60 || w.fences.Load() < 4 {
			t.Error("it came to a standstill")
		}
		faults += w.f.faults
	}
	if faults == 0 {
		t.Error("nothing went wrong")
	}
}

// end: every object has its content, and a deletion leaves nothing but the
// document that says so.
func (w *world) end(t *testing.T, stores []*Store) {
	t.Helper()
	s := stores[0]
	w.reopen(s)
	l, err := s.List(t.Context(), "o")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range l.Objects {
		d, err := s.Digest(t.Context(), "o", o.Name)
		if err != nil || d != o.Digest {
			t.Errorf("object %s: %s, %v", o.Name, d, err)
		}
	}
	for _, s := range stores[1:] {
		_ = s.Close()
	}
	if err := s.Delete(t.Context(), "o", l.Mark); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if n := len(w.f.blobs["o"]); n > 0 {
		t.Errorf("%d blobs are left of a deleted copy", n)
	}
}

package mover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/locations"
	"penstock/infra/objectstore"
	"penstock/schemas/control"
)

var errBroken = errors.New("the disk is broken")

// faulty is a store whose operations fail when told to.
type faulty struct {
	objectstore.Store
	mu        sync.Mutex
	f         func(op, owner string) error
	noBarrier bool
	flip      bool // a bit of what is put is changed
}

func (s *faulty) fail(f func(op, owner string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.f = f
}

func (s *faulty) check(op, owner string) error {
	s.mu.Lock()
	f := s.f
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(op, owner)
}

func (s *faulty) Capabilities() objectstore.Capabilities {
	c := s.Store.Capabilities()
	c.Barrier = c.Barrier && !s.noBarrier
	return c
}

func (s *faulty) Stat(ctx context.Context, owner string) (objectstore.Mark, error) {
	if err := s.check("stat", owner); err != nil {
		return objectstore.Mark{}, err
	}
	return s.Store.Stat(ctx, owner)
}

func (s *faulty) Put(ctx context.Context, owner, name string, r io.Reader, as objectstore.Mark) (objectstore.Object, error) {
	if err := s.check("put", owner); err != nil {
		return objectstore.Object{}, err
	}
	if s.flip {
		b, err := io.ReadAll(r)
		if err != nil {
			return objectstore.Object{}, err
		}
		b[0] ^= 1
		r = bytes.NewReader(b)
	}
	return s.Store.Put(ctx, owner, name, r, as)
}

func (s *faulty) Mark(ctx context.Context, owner string, from, to objectstore.Mark) error {
	if err := s.check("mark", owner); err != nil {
		return err
	}
	return s.Store.Mark(ctx, owner, from, to)
}

func (s *faulty) Delete(ctx context.Context, owner string, as objectstore.Mark) error {
	if err := s.check("delete", owner); err != nil {
		return err
	}
	return s.Store.Delete(ctx, owner, as)
}

func (s *faulty) Hold(ctx context.Context, owner, version string) (objectstore.Held, error) {
	if s.noBarrier {
		return nil, objectstore.ErrNoBarrier
	}
	if err := s.check("hold", owner); err != nil {
		return nil, err
	}
	return s.Store.Hold(ctx, owner, version)
}

// failing fails an operation n times.
func failing(op string, n int32) func(string, string) error {
	var left atomic.Int32
	left.Store(n)
	return func(o, _ string) error {
		if o == op && left.Add(-1) >= 0 {
			return errBroken
		}
		return nil
	}
}

// TestStoreFails: a store that fails for a while costs a try, one that goes on
// failing ends the move: nothing is left and the source is open.
func TestStoreFails(t *testing.T) {
	for _, site := range []string{"a", "b"} {
		for _, op := range []string{"put", "stat", "hold", "mark"} {
			for _, times := range []int32{1, 3} {
				if site == "a" && (op == "put" || op == "mark") || site == "b" && op == "hold" {
					continue // never called there
				}
				w := newWorld(t)
				s := &faulty{Store: w.stores[site], f: failing(op, times)}
				m := w.mover(func(o *Options) { o.Stores[site], o.Attempts = s, 3 })
				data := objects(2)
				w.put("a", "o", data)
				o := w.apply(m, move("o", "a", "b", 1))
				s.fail(nil)
				if times == 1 {
					w.check("o", "b", 1, data)
					continue
				}
				if o.Status != control.Failed || o.Reason != ReasonStore || m.Open() != 0 {
					t.Errorf("%s at %s: outcome %+v", op, site, o)
				}
				if mark := w.mark("b", "o"); mark.State != objectstore.Absent {
					t.Errorf("%s at %s: b is left as %v", op, site, mark)
				}
				w.put("a", "o", map[string]string{"open": "again"})
			}
		}
	}
}

// TestUnfit: what the destination can't take ends the move at once and says so;
// what may fit later is tried as often as any failure.
func TestUnfit(t *testing.T) {
	for _, c := range []struct {
		err  error
		puts int32 // of one object
	}{
		{fmt.Errorf("key 7: %w", objectstore.ErrUnfit), 1},
		// Each try sends it Rounds times, and then while writers wait.
		{fmt.Errorf("%w: refers to what isn't there: %w", objectstore.ErrUnfit, objectstore.ErrChanged), 2 * (3 + 1)},
	} {
		w := newWorld(t)
		var puts atomic.Int32
		s := &faulty{Store: w.stores["b"], f: func(op, _ string) error {
			if op != "put" {
				return nil
			}
			puts.Add(1)
			return c.err
		}}
		var log bytes.Buffer
		m := w.mover(func(o *Options) {
			o.Stores["b"], o.Attempts, o.Rounds, o.Logger = s, 2, 3, zerolog.New(&log)
		})
		w.put("a", "o", objects(1))
		o := w.apply(m, move("o", "a", "b", 1))
		if o.Status != control.Failed || o.Reason != ReasonUnfit || puts.Load() != c.puts || m.Open() != 0 {
			t.Errorf("%v: outcome %+v after %d tries to put, want %d", c.err, o, puts.Load(), c.puts)
		}
		if !strings.Contains(log.String(), c.err.Error()) {
			t.Errorf("the log doesn't say %v: %s", c.err, log.String())
		}
		if mark := w.mark("b", "o"); mark.State != objectstore.Absent {
			t.Errorf("b is left as %v", mark)
		}
		w.put("a", "o", map[string]string{"open": "again"})
	}
}

// TestNothingCanBeUndone: if the store fails when a move is undone, the move is
// answered all the same, and the next one takes over what is left.
func TestNothingCanBeUndone(t *testing.T) {
	w := newWorld(t)
	s := &faulty{Store: w.stores["b"]}
	s.fail(func(op, _ string) error {
		if op == "put" || op == "delete" {
			return errBroken
		}
		return nil
	})
	m := w.mover(func(o *Options) { o.Stores["b"] = s })
	data := objects(2)
	w.put("a", "o", data)
	if o := w.apply(m, move("o", "a", "b", 1)); o.Status != control.Failed || o.Reason != ReasonStore {
		t.Errorf("outcome %+v", o)
	}
	if mark := w.mark("b", "o"); mark.State != objectstore.Incoming {
		t.Errorf("b is %v", mark)
	}
	s.fail(nil)
	if o := w.apply(m, move("o", "a", "b", 2)); o.Status != control.Done {
		t.Errorf("outcome %+v", o)
	}
	w.check("o", "b", 2, data)
}

// TestFenceIsTakenOver: a source that a move fenced which could not be undone is
// not closed for ever: the next move takes the fence over.
func TestFenceIsTakenOver(t *testing.T) {
	w := newWorld(t)
	data := objects(2)
	w.put("a", "o", data)
	ok(t, w.stores["a"].Mark(t.Context(), "o", objectstore.Mark{}, objectstore.Mark{State: objectstore.Retired, Version: 1, Site: "c"}))
	w.apply(w.mover(), move("o", "a", "b", 2))
	w.check("o", "b", 2, data)
}

// TestVerified: what reads back other than it was sent is not moved.
func TestVerified(t *testing.T) {
	w := newWorld(t)
	m := w.mover(func(o *Options) { o.Stores["b"] = &faulty{Store: w.stores["b"], flip: true} })
	data := map[string]string{"x": "content"}
	w.put("a", "o", data)
	if o := w.apply(m, move("o", "a", "b", 1)); o.Status != control.Failed || o.Reason != ReasonStore {
		t.Errorf("outcome %+v", o)
	}
	if got := w.get("a", "o"); got["x"] != "content" || !w.mark("a", "o").Writable() {
		t.Errorf("the source holds %v and is %v", got, w.mark("a", "o"))
	}
}

// TestNoBarrier: a source without a barrier is fenced, and what was written until
// then is copied; the outcome says that no more is promised.
func TestNoBarrier(t *testing.T) {
	w := newWorld(t)
	hook := func(s step, _ *task) error {
		if s == stepHeld {
			w.put("a", "o", map[string]string{"late": "write"})
		}
		return nil
	}
	m := w.mover(func(o *Options) { o.Stores["a"], o.after = &faulty{Store: w.stores["a"], noBarrier: true}, hook })
	data := objects(2)
	w.put("a", "o", data)
	if o := w.apply(m, move("o", "a", "b", 1)); o.Status != control.Done || o.Reason != ReasonNoBarrier {
		t.Errorf("outcome %+v", o)
	}
	data["late"] = "write"
	w.check("o", "b", 1, data)
	if n, err := m.Purge(t.Context()); n != 1 || err != nil {
		t.Errorf("purged %d, %v", n, err)
	}
}

// cut is a table of locations whose answers get lost.
type cut struct {
	locations.Table
	lost   atomic.Int32 // so many writes succeed and their answers are lost
	refuse atomic.Int32 // so many writes don't arrive
}

var errLost = errors.New("no answer")

func (c *cut) Set(ctx context.Context, owner string, l control.Location, revision uint64) (uint64, error) {
	if c.refuse.Add(-1) >= 0 {
		return 0, errLost
	}
	n, err := c.Table.Set(ctx, owner, l, revision)
	if c.lost.Add(-1) >= 0 {
		return 0, errors.Join(err, errLost)
	}
	return n, err
}

// TestFlipWithoutAnswer: a flip whose answer is lost is neither taken for refused
// nor done twice.
func TestFlipWithoutAnswer(t *testing.T) {
	for lost := range int32(3) {
		for refuse := range int32(3) {
			w := newWorld(t)
			table := &cut{Table: w.table}
			table.lost.Store(lost)
			table.refuse.Store(refuse)
			data := objects(2)
			w.put("a", "o", data)
			// A machine that stands still while the source is held is another matter.
			o := w.apply(w.mover(func(o *Options) { o.Locations, o.HoldMax = table, time.Minute }), move("o", "a", "b", 1))
			if o.Status != control.Done {
				t.Errorf("%d lost, %d refused: %+v", lost, refuse, o)
			}
			w.check("o", "b", 1, data)
		}
	}
}

// TestFlipUnknown: while nobody knows whether the flip arrived, the source stays
// closed; then the move is taken up again.
func TestFlipUnknown(t *testing.T) {
	for _, arrived := range []bool{true, false} {
		w := newWorld(t)
		table := &cut{Table: w.table}
		if arrived {
			table.lost.Store(1)
			table.refuse.Store(0)
		}
		m := w.mover(func(o *Options) { o.Locations, o.HoldMax = &deaf{table, arrived}, 300*time.Millisecond })
		data := objects(2)
		w.put("a", "o", data)
		err := m.Apply(t.Context(), command(move("o", "a", "b", 1)), w.answer)
		if !errors.Is(err, errFlip) || m.Open() != 1 {
			t.Fatalf("applied with %v, %d open", err, m.Open())
		}
		_, err = w.stores["a"].Put(t.Context(), "o", "x", strings.NewReader("x"), objectstore.Mark{})
		if !errors.Is(err, objectstore.ErrMarked) {
			t.Errorf("a write to the source meanwhile: %v", err)
		}
		ok(t, m.Close())
		m = w.mover()
		ok(t, m.Resume(t.Context(), w.answer))
		w.check("o", "b", 1, data)
		w.wantDone("o")
	}
}

// deaf never hears an answer to a write; the first one may arrive.
type deaf struct {
	*cut
	arrives bool
}

func (d *deaf) Set(ctx context.Context, owner string, l control.Location, revision uint64) (uint64, error) {
	if d.arrives {
		_, _ = d.Table.Set(ctx, owner, l, revision)
	}
	<-ctx.Done()
	return 0, fmt.Errorf("%w: %w", errLost, ctx.Err())
}

// TestFlippedAndNotOpened: a store that fails after the flip does not make the
// move fail: it stays open until the copy is live.
func TestFlippedAndNotOpened(t *testing.T) {
	w := newWorld(t)
	s := &faulty{Store: w.stores["b"]}
	hook := func(now step, _ *task) error {
		if now == stepFlipped {
			s.fail(failing("mark", 100))
		}
		return nil
	}
	m := w.mover(func(o *Options) { o.Stores["b"], o.after, o.Attempts = s, hook, 2 })
	data := objects(2)
	w.put("a", "o", data)
	if err := m.Apply(t.Context(), command(move("o", "a", "b", 1)), w.answer); !errors.Is(err, errBroken) {
		t.Errorf("applied with %v", err)
	}
	if m.Open() != 1 || len(w.outcomes) != 0 {
		t.Errorf("%d open, outcomes %v", m.Open(), w.outcomes)
	}
	s.fail(nil)
	ok(t, m.Resume(t.Context(), w.answer))
	w.check("o", "b", 1, data)
	w.wantDone("o")
}

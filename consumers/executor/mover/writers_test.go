package mover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"penstock/infra/objectstore"
	"penstock/schemas/control"
)

// writer writes to an owner as an entry point does: where it believes the data
// is, and where the mark sends it if it is wrong.
type writer struct {
	w       *world
	owner   string
	name    string
	site    string
	acked   int // number of the last write that was acknowledged
	refused int
}

func (x *writer) write(ctx context.Context) error {
	n := x.acked + 1
	for {
		s := x.w.stores[x.site]
		// Every other write is a record, whose number the file keeps too.
		var err error
		if n%2 == 0 {
			err = objectstore.Append(ctx, s, x.owner, x.name+".records", uint64(n), []byte(strconv.Itoa(n)))
		} else {
			_, err = s.Put(ctx, x.owner, x.name, strings.NewReader(strconv.Itoa(n)), objectstore.Mark{})
		}
		var marked *objectstore.MarkedError
		switch {
		case err == nil:
			x.acked = n
			return nil
		case errors.As(err, &marked) && marked.Have.State == objectstore.Retired:
			x.refused++
			x.site = marked.Have.Site
		case errors.As(err, &marked):
			x.refused++ // arriving: soon
		default:
			return err
		}
	}
}

// TestWritersDuringMoves: writers write without pause while their owner is moved
// around; no acknowledged write is lost, whoever does the moving.
func TestWritersDuringMoves(t *testing.T) {
	w := newWorld(t)
	const writers, moves = 3, 30
	var list []*writer
	for i := range writers {
		list = append(list, &writer{w: w, owner: "o", name: fmt.Sprintf("w%d", i), site: "a"})
		ok(t, list[i].write(t.Context()))
	}
	movers := []*Mover{w.mover(), w.mover(func(o *Options) { o.Name, o.Dir = "m2", t.TempDir() })}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for _, x := range list {
		wg.Go(func() {
			for !stop.Load() {
				if err := x.write(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	at := "a"
	for v := range uint64(moves) {
		to := sites[(int(v)+1)%len(sites)]
		if o := w.apply(movers[v%2], move("o", at, to, v+1)); o.Status != control.Done {
			t.Errorf("move %d: %+v", v+1, o)
		}
		at = to
	}
	stop.Store(true)
	wg.Wait()
	w.checkWrites(t, "o", at, list)
}

func (w *world) checkWrites(t *testing.T, owner, site string, list []*writer) {
	t.Helper()
	if l := w.location(owner); l.Site != site {
		t.Fatalf("the owner is at %+v, want %s; outcomes %q", l, site, statuses(w))
	}
	got := w.get(site, owner)
	refused := 0
	for _, x := range list {
		put := x.acked - (x.acked+1)%2
		if put > 0 && got[x.name] != strconv.Itoa(put) {
			t.Errorf("%s: the object is %q, acknowledged was %d", x.name, got[x.name], put)
		}
		last := 0
		records := x.acked - x.acked%2
		if records > 0 {
			ok(t, w.stores[site].Scan(t.Context(), owner, x.name+".records", func(n uint64, _ []byte) error {
				if int(n) != last+2 {
					t.Errorf("%s: record %d after %d", x.name, n, last)
				}
				last = int(n)
				return nil
			}))
		}
		if last != records {
			t.Errorf("%s: the last record is %d, acknowledged was %d", x.name, last, records)
		}
		refused += x.refused
	}
	t.Logf("%d writes, %d sent on", list[0].acked+list[len(list)-1].acked, refused)
}

// TestWritersAndCrashes: the same with movers that die at random and come back,
// and two that are given the same moves.
func TestWritersAndCrashes(t *testing.T) {
	for seed := range uint64(5) {
		w := newWorld(t)
		r := rand.New(rand.NewPCG(seed, 1))
		all := crashes(3)
		x := &writer{w: w, owner: "o", name: "w", site: "a"}
		ok(t, x.write(t.Context()))
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for !stop.Load() {
				// A fence stays until the mover comes back, so a write may wait.
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				err := x.write(ctx)
				cancel()
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
		at := "a"
		for v := uint64(1); v <= 6; v++ {
			to := sites[int(v)%len(sites)]
			mv := move("o", at, to, v)
			var both sync.WaitGroup
			for i := range 2 {
				c := all[r.IntN(len(all))]
				both.Go(func() { w.untilDone(t, fmt.Sprintf("m%d", i), c, mv) })
			}
			both.Wait()
			at = to
		}
		stop.Store(true)
		wg.Wait()
		w.checkWrites(t, "o", at, []*writer{x})
		for k, o := range w.outcomes {
			if o.Status != control.Done {
				t.Errorf("seed %d: move %d: %+v", seed, k.version, o)
			}
		}
	}
}

// untilDone applies a move with a mover that dies once, then with one that
// doesn't.
func (w *world) untilDone(t *testing.T, name string, c crash, mv control.Move) {
	for _, hook := range []func(step, *task) error{crashAt(c.at, c.nth), nil} {
		m, err := New(w.options(func(o *Options) { o.Name, o.Dir, o.after = name, w.folder+"/"+name, hook }))
		if err != nil {
			t.Error(err)
			return
		}
		err = m.Resume(t.Context(), w.answer)
		if err == nil {
			err = m.Apply(t.Context(), command(mv), w.answer)
		}
		if err != nil && !errors.Is(err, errCrash) && !errors.Is(err, errContested) {
			t.Errorf("move %d: %v", mv.Version, err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestHeldForTheRest: a source that changes in every round is held in the end,
// and the difference is copied meanwhile; one that can't be copied in that time
// is given up and open again.
func TestHeldForTheRest(t *testing.T) {
	w := newWorld(t)
	w.put("a", "o", map[string]string{"x": "0"})
	n, rounds := 0, 0
	change := func(s step, _ *task) error {
		switch s {
		case stepObject:
			if n++; n <= 10 {
				// Every copy is out of date as soon as it is made, until writers
				// are held.
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := w.stores["a"].Put(ctx, "o", "x", strings.NewReader(strconv.Itoa(n)), objectstore.Mark{})
				if err == nil {
					rounds++
				} else if !errors.Is(err, context.DeadlineExceeded) {
					return err
				}
			}
		default:
		}
		return nil
	}
	m := w.mover(func(o *Options) { o.after, o.HoldMax = change, time.Minute })
	if o := w.apply(m, move("o", "a", "b", 1)); o.Status != control.Done || rounds != 5 {
		t.Errorf("outcome %+v after %d rounds", o, rounds)
	}
	w.check("o", "b", 1, map[string]string{"x": strconv.Itoa(rounds)})
}

// TestHeldTooLong: what can't be copied while writers are held at most HoldMax is
// given up: the source is open again and nothing is left.
func TestHeldTooLong(t *testing.T) {
	w := newWorld(t)
	names := []string{"1", "2", "3", "4", "5"}
	write := func(content string) {
		for _, name := range names {
			w.put("a", "o", map[string]string{name: content})
		}
	}
	write("old")
	held := 0
	hook := func(s step, _ *task) error {
		switch {
		case s == stepCopied:
			write("new")
		case s == stepHeld:
			held++
		case s == stepObject && held > 0:
			time.Sleep(5 * time.Millisecond) // longer than HoldMax
		default:
		}
		return nil
	}
	m := w.mover(func(o *Options) { o.after, o.HoldMax, o.Rounds = hook, 2*time.Millisecond, 1 })
	o := w.apply(m, move("o", "a", "b", 1))
	if o.Status != control.Failed || o.Reason != ReasonBusy || held != holdTries {
		t.Errorf("outcome %+v after writers were held %d times", o, held)
	}
	if mark := w.mark("b", "o"); mark.State != objectstore.Absent {
		t.Errorf("b is left with a copy that is %v", mark)
	}
	w.put("a", "o", map[string]string{"z": "writers may write"})
}

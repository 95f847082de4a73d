package mover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor"
	"penstock/consumers/executor/locations"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
	"penstock/schemas/control"
)

// world is three sites, a table of locations and an outcome stream that drops
// repeats as the bus does.
type world struct {
	t      testing.TB
	stores map[string]*dir.Store
	table  locations.Table
	folder string

	mu       sync.Mutex
	outcomes map[ownerVersion]control.Outcome
	repeats  int // answers that the bus would have dropped
	known    int // answered AlreadyApplied
	counts   map[string]int64
	counted  chan struct{} // closed and replaced at each count
}

var sites = []string{"a", "b", "c"}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{
		t: t, stores: map[string]*dir.Store{}, table: locations.NewMemory(), folder: t.TempDir(),
		outcomes: map[ownerVersion]control.Outcome{}, counts: map[string]int64{}, counted: make(chan struct{}),
	}
	for _, site := range sites {
		s, err := dir.Open(t.TempDir(), dir.Options{NoSync: true})
		ok(t, err)
		w.stores[site] = s
	}
	return w
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Count makes the world a Metrics.
func (w *world) Count(c executor.Counter, reason string, n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[string(c)+" "+reason] += n
	close(w.counted)
	w.counted = make(chan struct{})
}

// await waits until a counter has reached n.
func (w *world) await(what string, n int64) {
	w.t.Helper()
	late := time.After(time.Minute)
	for {
		w.mu.Lock()
		got, counted := w.counts[what], w.counted
		w.mu.Unlock()
		if got >= n {
			return
		}
		select {
		case <-counted:
		case <-late:
			w.t.Fatalf("%s: %d, expected %d", what, got, n)
		}
	}
}

func (w *world) count(what string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts[what]
}

func (w *world) options(change ...func(*Options)) Options {
	o := Options{
		Name: "m", Dir: w.folder, Locations: w.table, NoSync: true, Metrics: w, Stores: map[string]objectstore.Store{},
		Logger: zerolog.New(zerolog.NewTestWriter(w.t)),
	}
	for site, s := range w.stores {
		o.Stores[site] = s
	}
	for _, f := range change {
		f(&o)
	}
	return o
}

func (w *world) mover(change ...func(*Options)) *Mover {
	w.t.Helper()
	m, err := New(w.options(change...))
	ok(w.t, err)
	w.t.Cleanup(func() { _ = m.Close() })
	return m
}

// answer is the bus: it keeps the first outcome of each move.
func (w *world) answer(_ context.Context, o control.Outcome) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.Status == control.AlreadyApplied {
		w.known++
		return nil
	}
	k := ownerVersion{o.Owner, o.Move}
	if _, there := w.outcomes[k]; there {
		w.repeats++
		return nil
	}
	w.outcomes[k] = o
	return nil
}

func (w *world) put(site, owner string, objects map[string]string) {
	w.t.Helper()
	if len(objects) == 0 {
		ok(w.t, w.stores[site].Create(w.t.Context(), owner, objectstore.Mark{}))
	}
	for name, content := range objects {
		_, err := w.stores[site].Put(w.t.Context(), owner, name, strings.NewReader(content), objectstore.Mark{})
		ok(w.t, err)
	}
}

func (w *world) get(site, owner string) map[string]string {
	w.t.Helper()
	l, err := w.stores[site].List(w.t.Context(), owner)
	ok(w.t, err)
	out := map[string]string{}
	for _, o := range l.Objects {
		r, err := w.stores[site].Open(w.t.Context(), owner, o.Name)
		ok(w.t, err)
		b, err := io.ReadAll(r)
		ok(w.t, errors.Join(err, r.Close()))
		out[o.Name] = string(b)
	}
	return out
}

func (w *world) mark(site, owner string) objectstore.Mark {
	w.t.Helper()
	m, err := w.stores[site].Stat(w.t.Context(), owner)
	ok(w.t, err)
	return m
}

func (w *world) location(owner string) control.Location {
	w.t.Helper()
	l, _, err := w.table.Get(w.t.Context(), owner)
	ok(w.t, err)
	return l
}

// command is a command of placement; its window ended at ten.
func command(moves ...control.Move) *control.Command {
	end := time.Date(2015, 5, 17, 10, 0, 0, 0, time.UTC)
	return &control.Command{
		Version: 1, Kind: control.Placement, Scope: moves[0].To, Epoch: 1, Mode: control.Act, TTL: "24h",
		Window: control.Window{Start: end.Add(-time.Hour), End: end}, Placement: &control.Moves{Moves: moves},
	}
}

func move(owner, from, to string, version uint64) control.Move {
	return control.Move{Owner: owner, From: from, To: to, Version: version}
}

// apply carries moves out and returns the outcome of the last.
func (w *world) apply(m *Mover, moves ...control.Move) control.Outcome {
	w.t.Helper()
	ok(w.t, m.Apply(w.t.Context(), command(moves...), w.answer))
	last := moves[len(moves)-1]
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outcomes[ownerVersion{last.Owner, last.Version}]
}

// check fails unless the owner's data is live at one site, with the content, and
// every other copy is retired.
func (w *world) check(owner, site string, version uint64, want map[string]string) {
	w.t.Helper()
	l := w.location(owner)
	if l.Site != site || l.Version != version || l.State != control.Live {
		w.t.Fatalf("owner %.40q is at %+v, want %s at version %d", owner, l, site, version)
	}
	for _, s := range sites {
		m := w.mark(s, owner)
		if s == site {
			if want := (objectstore.Mark{State: objectstore.Live, Version: version}); m != want {
				w.t.Fatalf("the copy of %.40q at %s is %v, want %v", owner, s, m, want)
			}
		} else if m.State != objectstore.Absent && m.State != objectstore.Retired {
			w.t.Fatalf("the copy of %.40q at %s is %v as well", owner, s, m)
		}
	}
	if got := w.get(site, owner); !maps.Equal(got, want) {
		w.t.Fatalf("owner %.40q at %s holds %.200v, want %.200v", owner, site, got, want)
	}
}

func objects(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprintf("dir%d/object-%d", i%3, i)] = strings.Repeat(fmt.Sprintf("%d,", i), 100*i)
	}
	return out
}

func statuses(w *world) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for k, o := range w.outcomes {
		out = append(out, fmt.Sprintf("%s %d %s %s", k.owner, k.version, o.Status, o.Reason))
	}
	slices.Sort(out)
	return out
}

package movertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"penstock/consumers/executor/locations"
	"penstock/consumers/executor/mover"
	"penstock/infra/clock"
	"penstock/infra/clock/stall"
	"penstock/infra/objectstore"
	"penstock/schemas/control"
)

const (
	// HoldMost is for how long a write may be held (DESIGN §4.1).
	HoldMost = time.Second
	owner    = "owner@example.com"
	// stuck is after how long a write that no site takes fails the test.
	stuck = time.Minute
)

// Moves is how often Run moves the owner: 30 times, or 100 where PENSTOCK_WHOLE
// is set.
func Moves() int {
	if os.Getenv("PENSTOCK_WHOLE") != "" {
		return 100
	}
	return 30
}

// Result is what Run saw.
type Result struct {
	Moves   int
	Writes  int // acknowledged
	Refused int // tries that were sent on, or told to wait
	Lost    int // acknowledged and not there, or out of order
	// Held is the longest hold of a barrier; Waited the longest part of a hold
	// that a write met; Slowest the longest time of a write from its first try
	// on, with all its refusals.
	Held, Waited, Slowest time.Duration
	// Stalled is how long the machine stood still at most, for everybody.
	Stalled time.Duration
	// Barrier: every store has one. Else nothing is promised.
	Barrier bool
}

// Run moves an owner Moves() times between all ordered pairs of the stores, by
// site, while a client writes to it, and fails the test if an acknowledged write
// isn't there afterwards, if the order is another, or if a write was held for
// more than HoldMost and what the machine stood still. client makes the client of a site. If a store has no
// barrier, that is said, and nothing is asserted but that the moves end.
func Run(t *testing.T, stores map[string]objectstore.Store, client func(site string, s objectstore.Store) Writer) Result {
	t.Helper()
	sites := slices.Sorted(maps.Keys(stores))
	if len(sites) < 2 {
		t.Fatal("moving takes two sites")
	}
	r := &run{t: t, sites: sites, table: locations.NewMemory(), clients: map[string]Writer{}, watch: watch{open: map[*watchedHold]time.Time{}}}
	r.res.Barrier = true
	movers := map[string]objectstore.Store{}
	for site, s := range stores {
		r.clients[site] = client(site, s)
		movers[site] = watched{s, &r.watch}
		if !s.Capabilities().Barrier {
			r.res.Barrier = false
			t.Logf("%s (%T) has no barrier: writes may be lost, nothing is asserted", site, s)
		}
	}
	m, err := mover.New(mover.Options{
		Name: "movertest", Dir: t.TempDir(), NoSync: true, Locations: r.table, Stores: movers, HoldMax: HoldMost,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	meter := stall.Start(t.Context())
	at := r.moveAround(m)
	r.res.Stalled = meter.Longest()
	r.check(at)
	if _, err := m.Purge(t.Context()); err != nil {
		t.Errorf("delete the retired copies: %v", err)
	}
	for site, s := range stores {
		mark, err := s.Stat(t.Context(), owner)
		if err != nil || site == at && !mark.Writable() || site != at && mark.State != objectstore.Absent {
			t.Errorf("in the end, at %s, the copy at %s is %v, %v", at, site, mark, err)
		}
	}
	res := r.res
	t.Logf("%d moves between %d sites, %d writes, %d sent on; longest hold %v, of it waited %v; slowest write %v; lost %d; the machine stood still for %v",
		res.Moves, len(sites), res.Writes, res.Refused, res.Held, res.Waited, res.Slowest, res.Lost, res.Stalled)
	return res
}

type run struct {
	t       *testing.T
	sites   []string
	table   locations.Table
	clients map[string]Writer
	watch   watch
	times   []span // of writes
	res     Result
}

// moveAround writes and moves, and returns the site of the end.
func (r *run) moveAround(m *mover.Mover) string {
	path := circuit(r.sites)
	at := path[0]
	first := make(chan struct{})
	ctx, stop := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- r.write(ctx, at, first) }()
	select {
	case <-first:
	case err := <-done:
		r.t.Fatalf("the first write: %v", err)
	}
	n := max(Moves(), len(path))
	for v := range n {
		to := path[(v+1)%len(path)]
		if err := r.move(m, at, to, uint64(v+1)); err != nil {
			r.t.Errorf("move %d, from %s to %s: %v", v+1, at, to, err)
			break
		}
		at = to
		r.res.Moves++
	}
	stop()
	if err := <-done; err != nil {
		r.t.Errorf("the writer: %v", err)
	}
	return at
}

// circuit is a round trip that takes every ordered pair of sites once.
func circuit(sites []string) []string {
	left := map[string][]string{}
	for i, from := range sites {
		for k := 1; k < len(sites); k++ {
			left[from] = append(left[from], sites[(i+k)%len(sites)])
		}
	}
	// Hierholzer: walk until there is no way on, and put detours in on the way
	// back.
	var path []string
	stack := []string{sites[0]}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		if to := left[at]; len(to) > 0 {
			stack, left[at] = append(stack, to[0]), to[1:]
			continue
		}
		path, stack = append(path, at), stack[:len(stack)-1]
	}
	slices.Reverse(path)
	return path[:len(path)-1] // which begins again
}

func (r *run) move(m *mover.Mover, from, to string, version uint64) error {
	end := time.Date(2015, 5, 17, 10, 0, 0, 0, time.UTC)
	c := &control.Command{
		Version: 1, Kind: control.Placement, Scope: to, Epoch: version, Mode: control.Act, TTL: "24h",
		Window:    control.Window{Start: end.Add(-time.Hour), End: end},
		Placement: &control.Moves{Moves: []control.Move{{Owner: owner, From: from, To: to, Version: version}}},
	}
	var got control.Outcome
	err := m.Apply(r.t.Context(), c, func(_ context.Context, o control.Outcome) error { got = o; return nil })
	if err == nil && got.Status != control.Done {
		err = fmt.Errorf("%s %s", got.Status, got.Reason)
	}
	return err
}

// write writes one number after the other until ctx ends. first is closed after
// the first one.
func (r *run) write(ctx context.Context, at string, first chan<- struct{}) error {
	for n := uint64(1); n == 1 || ctx.Err() == nil; n++ {
		s := span{from: clock.System().Now()}
		// The end of the test does not end a write: its outcome would be unknown.
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), stuck)
		next, err := r.writeOne(patience, at, n)
		cancel()
		if err != nil {
			return fmt.Errorf("write %d at %s: %w", n, next, err)
		}
		s.to = clock.System().Now()
		r.times = append(r.times, s)
		at = next
		r.res.Writes++
		if n == 1 {
			close(first)
		}
	}
	return nil
}

// writeOne writes a number wherever the owner is, and returns where that was.
func (r *run) writeOne(ctx context.Context, at string, n uint64) (string, error) {
	for {
		err := r.clients[at].Write(ctx, owner, n)
		var moved *MovedError
		if !errors.As(err, &moved) {
			return at, err
		}
		r.res.Refused++
		if moved.Site != "" {
			if r.clients[moved.Site] == nil {
				return at, fmt.Errorf("sent on to %q, which is no site", moved.Site)
			}
			at = moved.Site
			continue
		}
		if err := clock.System().Sleep(ctx, time.Millisecond); err != nil {
			return at, err
		}
	}
}

// check compares what the owner has in the end with what was acknowledged.
func (r *run) check(at string) {
	got, err := r.clients[at].Read(r.t.Context(), owner)
	if err != nil {
		r.t.Errorf("read at %s: %v", at, err)
	}
	r.res.Lost = r.res.Writes - len(got)
	for i, n := range got {
		if n != uint64(i+1) {
			r.res.Lost = max(r.res.Lost, 1)
			if r.res.Barrier {
				r.t.Errorf("number %d is %d", i+1, n)
			}
			break
		}
	}
	r.res.Held = r.watch.longest()
	for _, s := range r.times {
		r.res.Waited = max(r.res.Waited, r.watch.waited(s))
		r.res.Slowest = max(r.res.Slowest, s.to.Sub(s.from))
	}
	if !r.res.Barrier {
		return
	}
	if r.res.Lost != 0 {
		r.t.Errorf("%d writes were acknowledged, %d can be read at %s", r.res.Writes, len(got), at)
	}
	if r.res.Waited > HoldMost+r.res.Stalled {
		r.t.Errorf("a write was held for %v, more than %v and the %v that the machine stood still", r.res.Waited, HoldMost, r.res.Stalled)
	}
}

package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/objectstore"
	"penstock/schemas/control"
)

// world is two sites whose stores have no barrier and know no marks, entry points
// at both, movers between them, and writers. Everything that can be cut, dies or is
// delayed.
type world struct {
	t   *testing.T
	sea *sea
	ctx context.Context

	mu    sync.Mutex
	data  map[string]int // writes by site and owner, as the services have stored them
	acked map[string]int // of which were acknowledged
	total struct{ acked, waited, flips, silent, lost, holds int }
	fault string
}

var simOwners = []string{"ann", "bob", "cid", "dora"}

func (w *world) fail(format string, args ...any) {
	if w.fault == "" {
		w.fault = time.Now().Format("15:04:05.000 ") + fmt.Sprintf(format, args...)
	}
}

// moved checks a flip as it happens: what was acknowledged at the old site was
// copied.
func (w *world) moved(owner, from, to string, copied int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total.flips++
	key := from + "/" + owner
	if copied >= 0 && w.acked[key] > copied {
		w.fail("%s moves from %s to %s with %d writes, and %d were acknowledged", owner, from, to, copied, w.acked[key])
	}
	w.data[to+"/"+owner] = max(copied, w.data[to+"/"+owner])
	w.acked[to+"/"+owner] = w.data[to+"/"+owner]
}

// simStore is a site's store as the mover sees it.
type simStore struct {
	objectstore.Store
	w    *world
	site string
}

func (simStore) Capabilities() objectstore.Capabilities { return objectstore.Capabilities{} }

func (s simStore) writes(owner string) int {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.data[s.site+"/"+owner]
}

func (s simStore) List(ctx context.Context, owner string) (objectstore.Listing, error) {
	time.Sleep(s.w.sea.between(50 * time.Millisecond))
	n := s.writes(owner)
	return objectstore.Listing{Version: fmt.Sprint(n), Objects: make([]objectstore.Object, 1), Bytes: int64(n)}, ctx.Err()
}

func (simStore) Hold(context.Context, string, string) (objectstore.Held, error) {
	return nil, objectstore.ErrNoBarrier
}

func (s simStore) Mark(ctx context.Context, _ string, _, _ objectstore.Mark) error {
	time.Sleep(s.w.sea.between(50 * time.Millisecond))
	return ctx.Err()
}

// entry is a life of an entry point: it ends with its context, or drains.
func (w *world) entry(ctx context.Context, site, name string) {
	p := &port{sea: w.sea, ctx: ctx}
	var mu sync.Mutex
	known := map[string]where{}
	learn := func(owner, site string, version uint64) {
		mu.Lock()
		defer mu.Unlock()
		if at, ok := known[owner]; !ok || version >= at.Version {
			known[owner] = where{site, version}
		}
	}
	look := func(ctx context.Context, owner string) error {
		l, revision, err := p.location(ctx, owner)
		if err == nil && revision > 0 {
			learn(owner, l.Site, l.Version)
		}
		return err
	}
	k, err := NewKeeper(KeeperOptions{
		Site: site, Name: name, link: p, Away: -1, Learn: learn, Logger: zerolog.Nop(),
		Sync: func(ctx context.Context) error {
			for _, o := range simOwners {
				if err := look(ctx, o); err != nil {
					return err
				}
			}
			return nil
		},
		Count: w.count,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var parts sync.WaitGroup
	run, stop := context.WithCancel(ctx)
	defer parts.Wait()
	defer stop()
	parts.Go(func() {
		if err := k.Run(run); err != nil && !errors.Is(err, ErrNameInUse) && !errors.Is(err, ErrDisplaced) {
			w.t.Errorf("keeper: %v", err)
		}
	})
	parts.Go(func() { // The directory follows the bus, in its own time.
		for run.Err() == nil {
			time.Sleep(w.sea.between(2 * time.Second))
			try, cancel := context.WithTimeout(run, time.Second)
			_ = look(try, simOwners[w.sea.pick(len(simOwners))])
			cancel()
		}
	})
	here := func(owner string) bool {
		mu.Lock()
		defer mu.Unlock()
		at, ok := known[owner]
		return ok && at.Site == site || !ok && site == "a"
	}
	accepting, closeDoor := context.WithCancel(run)
	defer closeDoor()
	for range 4 {
		parts.Go(func() {
			for accepting.Err() == nil {
				time.Sleep(w.sea.between(200 * time.Millisecond))
				w.write(accepting, ctx, k, site, simOwners[w.sea.pick(len(simOwners))], here)
			}
		})
	}
	parts.Go(func() {
		for run.Err() == nil {
			time.Sleep(w.sea.between(20 * time.Second))
			p.cut(w.sea.between(6 * time.Second))
		}
	})
	select {
	case <-ctx.Done(): // It dies.
	case <-time.After(w.sea.between(30 * time.Second)):
		if w.sea.chance(0.5) {
			closeDoor()
			drain, cancel := context.WithTimeout(ctx, 5*time.Second)
			_ = k.Drain(drain)
			cancel()
		}
	}
}

// write is one request: it waits while its owner is held, for a while, and is
// acknowledged when the service has stored it, if the entry point lives.
func (w *world) write(accepting, life context.Context, k *Keeper, site, owner string, here func(string) bool) {
	for range 10 {
		if !here(owner) {
			return // It is forwarded.
		}
		leave, held := k.Enter(owner)
		if held != nil {
			w.mu.Lock()
			w.total.waited++
			w.mu.Unlock()
			select {
			case <-held:
				continue
			case <-time.After(time.Second): // 503
				return
			case <-accepting.Done():
				return
			}
		}
		if !here(owner) {
			leave() // It has moved between the look and the entering.
			return
		}
		most := 100 * time.Millisecond
		if w.sea.chance(0.03) {
			most = 5 * time.Second
		}
		time.Sleep(w.sea.between(most))
		key := site + "/" + owner
		w.mu.Lock()
		w.data[key]++
		w.mu.Unlock()
		time.Sleep(w.sea.between(most / 4))
		w.sea.mu.Lock()
		w.mu.Lock()
		if life.Err() == nil { // The client hears of it.
			if at := w.sea.siteOf(owner); at != site {
				w.fail("a write to %s is acknowledged at %s, and it is at %s", owner, site, at)
			}
			w.acked[key] = w.data[key]
			w.total.acked++
		}
		w.mu.Unlock()
		w.sea.mu.Unlock()
		leave()
		return
	}
}

func (w *world) count(what string, n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch what {
	case Silent:
		w.total.silent += int(n)
	case Expired:
		w.total.lost += int(n)
	case Held:
		w.total.holds += int(n)
	}
}

// mover is a life of a mover.
func (w *world) mover(ctx context.Context, name string, turns *[4]sync.Mutex) {
	p := &port{sea: w.sea, ctx: ctx}
	b, err := NewBarrier(BarrierOptions{Name: name, link: p, Logger: zerolog.Nop(), Count: w.count})
	if err != nil {
		w.t.Fatal(err)
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { _ = b.Run(ctx) })
	parts.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(w.sea.between(15 * time.Second))
			p.cut(w.sea.between(5 * time.Second))
		}
	})
	for range 2 {
		parts.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(w.sea.between(500 * time.Millisecond))
				i := w.sea.pick(len(simOwners))
				if turns[i].TryLock() {
					w.move(ctx, p, b, simOwners[i])
					turns[i].Unlock()
				}
			}
		})
	}
	<-ctx.Done()
}

// move moves an owner to the other site, as the real mover does.
func (w *world) move(ctx context.Context, p *port, b *Barrier, owner string) {
	try, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	l, revision, err := p.location(try, owner)
	if err != nil {
		return
	}
	from := "a"
	if revision > 0 {
		from = l.Site
	}
	to := map[string]string{"a": "b", "b": "a"}[from]
	src := b.Store(from, simStore{w: w, site: from}, false)
	var h objectstore.Held
	copied := 0
	for round := 0; h == nil; round++ {
		list, err := src.List(try, owner)
		if err != nil {
			return
		}
		copied = int(list.Bytes)
		time.Sleep(w.sea.between(200 * time.Millisecond))
		version := list.Version
		if round > 3 {
			version = ""
		}
		hold, stop := context.WithTimeout(try, 10*time.Second)
		h, err = src.Hold(hold, owner, version)
		stop()
		switch {
		case err == nil && version == "":
			copied = simStore{w: w, site: from}.writes(owner)
		case errors.Is(err, objectstore.ErrNoBarrier) && len(b.names(from)) == 0:
			return // Without an entry point nobody writes, and the real mover goes on.
		case err != nil && !errors.Is(err, objectstore.ErrChanged):
			return
		}
	}
	defer h.Release()
	held, end := context.WithTimeout(try, time.Second)
	defer end()
	if h.Mark(held, objectstore.Mark{}, objectstore.Mark{State: objectstore.Retired}) != nil {
		return
	}
	next := control.Location{Site: to, Version: l.Version + 1, State: control.Live}
	for {
		err := p.flip(held, owner, next, revision, copied)
		if err == nil || errors.Is(err, errConflict) || held.Err() != nil {
			return // Who of several was refused doesn't know by whom: Release finds out.
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// lives lets something live, die and live again, until the world ends.
func (w *world) lives(of func(ctx context.Context), life, pause time.Duration) {
	for w.ctx.Err() == nil {
		ctx, die := context.WithTimeout(w.ctx, time.Second+w.sea.between(life))
		of(ctx)
		die()
		time.Sleep(w.sea.between(pause))
	}
}

func simulate(t *testing.T, seed uint64, length time.Duration) (w *world) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), length)
		defer cancel()
		w = &world{t: t, sea: newSea(seed), ctx: ctx, data: map[string]int{}, acked: map[string]int{}}
		w.sea.moved = w.moved
		var all sync.WaitGroup
		for _, site := range []string{"a", "b"} {
			for _, name := range []string{"web-1", "web-2"} {
				all.Go(func() {
					w.lives(func(ctx context.Context) { w.entry(ctx, site, name) }, 60*time.Second, 3*time.Second)
				})
			}
		}
		var turns [4]sync.Mutex
		for _, name := range []string{"mover-1", "mover-2"} {
			all.Go(func() {
				w.lives(func(ctx context.Context) { w.mover(ctx, name, &turns) }, 30*time.Second, 5*time.Second)
			})
		}
		all.Wait()
		time.Sleep(30 * time.Second) // What is under way arrives.
	})
	return w
}

// TestNoWriteIsLost lets entry points, movers and the bus fail in every way that
// the simulation knows: no write is acknowledged where its owner isn't any more,
// and none is left behind.
func TestNoWriteIsLost(t *testing.T) {
	// Those in which a fault of before would show, each kind in some of them.
	seeds := []uint64{0, 1, 4, 5, 98, 167}
	if os.Getenv("PENSTOCK_WHOLE") != "" {
		for seed := range uint64(400) {
			seeds = append(seeds, seed)
		}
	}
	sum := struct{ acked, waited, flips, silent, lost, holds int }{}
	for _, seed := range seeds {
		w := simulate(t, seed, 3*time.Minute)
		if w.fault != "" {
			t.Errorf("seed %d: %s", seed, w.fault)
		}
		sum.acked += w.total.acked
		sum.waited += w.total.waited
		sum.flips += w.total.flips
		sum.silent += w.total.silent
		sum.lost += w.total.lost
		sum.holds += w.total.holds
	}
	t.Logf("%d seeds: %+v", len(seeds), sum)
	if sum.acked < 1000*len(seeds) || sum.flips < 5*len(seeds) || sum.waited == 0 || sum.silent == 0 || sum.lost == 0 {
		t.Errorf("too little happened: %+v", sum)
	}
}

package mover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/gate"
	"penstock/infra/objectstore"
	"penstock/schemas/control"
)

// stubborn writes an object whatever the copy's mark is, as a service does that
// knows nothing of marks.
func (w *world) stubborn(site, owner, name, content string) error {
	for {
		m, err := w.stores[site].Stat(w.t.Context(), owner)
		if err != nil {
			return err
		}
		_, err = w.stores[site].Put(w.t.Context(), owner, name, strings.NewReader(content), m)
		if !errors.Is(err, objectstore.ErrMarked) {
			return err
		}
	}
}

// TestEntryPointsStandInForABarrier moves an owner to and fro between stores that
// have no barrier, under writers who respect no mark: whatever entry points have let
// in and was acknowledged goes along, and no move has to say that it may not.
func TestEntryPointsStandInForABarrier(t *testing.T) {
	w := newWorld(t)
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	table, err := locations.Open(t.Context(), bustest.Client(t, b))
	ok(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	barrier, err := gate.NewBarrier(gate.BarrierOptions{Client: bustest.Client(t, b), Name: "m", Logger: zerolog.Nop()})
	ok(t, err)
	running.Go(func() { _ = barrier.Run(ctx) })
	keepers := map[string]*gate.Keeper{}
	for _, site := range []string{"a", "b"} {
		k, err := gate.NewKeeper(gate.KeeperOptions{Client: bustest.Client(t, b), Site: site, Name: "web-1", Logger: zerolog.Nop()})
		ok(t, err)
		running.Go(func() { _ = k.Run(ctx) })
		<-k.Ready()
		keepers[site] = k
	}
	m := w.mover(func(o *Options) {
		o.Locations = table
		for _, site := range []string{"a", "b"} {
			o.Stores[site] = barrier.Store(site, &faulty{Store: w.stores[site], noBarrier: true}, false)
		}
	})
	site := func() string {
		l, revision, err := table.Get(t.Context(), "o")
		if err != nil || revision == 0 {
			return "a"
		}
		return l.Site
	}
	w.put("a", "o", objects(3))
	want := objects(3)
	var mu sync.Mutex
	var writing sync.WaitGroup
	stop := make(chan struct{})
	for writer := range 3 {
		writing.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				at := site()
				leave, held := keepers[at].Enter("o")
				if held != nil {
					<-held
					continue
				}
				if at == site() {
					// Only so many, or they would come faster than a slow machine copies them.
					name, content := fmt.Sprintf("w%d-%d", writer, i%100), fmt.Sprint(i)
					if err := w.stubborn(at, "o", name, content); err == nil {
						mu.Lock()
						want[name] = content
						mu.Unlock()
					} else {
						t.Errorf("write at %s: %v", at, err)
					}
				}
				leave()
			}
		})
	}
	const moves = 6
	at := [2]string{"a", "b"}
	for v := range uint64(moves) {
		if o := w.apply(m, move("o", at[v%2], at[(v+1)%2], v+1)); o.Status != control.Done || o.Reason != "" {
			t.Errorf("move %d: %+v", v+1, o)
		}
	}
	close(stop)
	writing.Wait()
	got := w.get(site(), "o")
	for name, content := range want {
		if got[name] != content {
			t.Errorf("%s was acknowledged as %q and is %q", name, content, got[name])
		}
	}
	if len(want) < 20 {
		t.Errorf("only %d objects were written", len(want))
	}
}

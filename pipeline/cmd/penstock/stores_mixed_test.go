package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"penstock/consumers/executor/locations"
	"penstock/consumers/executor/mover"
	"penstock/consumers/executor/mover/movertest"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/objectstore"
	"penstock/schemas/control"
)

// TestMixedStores moves an owner under continuous writes between four sites, each
// with another kind of store, as the configuration opens them. A table of the
// database is an object at the other sites, which the application writes to
// there, and becomes rows again on its way back: such moves work.
func TestMixedStores(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	e := build(t, t.TempDir(), 1, 0)
	e.open(bustest.Client(t, b))
	pace := time.NewTicker(5 * time.Millisecond) // A rate: elsewhere than in a database each write is one of all posts.
	defer pace.Stop()
	res := movertest.Run(t, e.stores, func(site string, _ objectstore.Store) movertest.Writer {
		return paced{e.writers[site], pace.C}
	})
	if !res.Barrier || res.Moves < movertest.Moves() || res.Refused == 0 || res.Lost != 0 {
		t.Errorf("%+v", res)
	}
}

// paced is a writer at a rate.
type paced struct {
	movertest.Writer
	tick <-chan time.Time
}

func (p paced) Write(ctx context.Context, owner string, n uint64) error {
	<-p.tick
	return p.Writer.Write(ctx, owner, n)
}

// TestWhatADatabaseCannotTake: rows that no table at the destination takes fail
// the move for a reason; the source stays open, whole, and nothing is left behind.
func TestWhatADatabaseCannotTake(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	e := build(t, t.TempDir(), 1, 0)
	e.open(bustest.Client(t, b))
	m, err := mover.New(mover.Options{Name: "m", Dir: t.TempDir(), NoSync: true, Locations: locations.NewMemory(), Stores: e.stores})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	version := uint64(0)
	for name, body := range map[string]string{
		"02.public.pictures": "penstock rows 1\towner\npicture\n",         // of a table that isn't there
		postsObject:          "penstock rows 1\tbody\towner\nx\tme\n",     // without some of the columns
		threadsObject:        threadsHeader + "0\tsomebody else\tfirst\n", // another owner's
		"02.introduction.md": "\x00" + string(content("# any bytes")),     // which are no rows, and can be kept
	} {
		for _, from := range []string{"dir-1", "jetstream-1", "s3-1"} {
			version++
			owner := fmt.Sprintf("owner %d", version)
			e.put(from, owner, "letters/1", content(owner))
			e.put(from, owner, name, []byte(body))
			mv := control.Move{Owner: owner, From: from, To: "postgres-1", Version: 1}
			var got control.Outcome
			err := m.Apply(t.Context(), commandOf(mv), func(_ context.Context, o control.Outcome) error { got = o; return nil })
			if err != nil {
				t.Fatal(err)
			}
			copies := fmt.Sprint(e.copies(owner))
			if body[0] == 0 {
				if got.Status != control.Done {
					t.Errorf("%q from %s: %s %s", name, from, got.Status, got.Reason)
				}
				continue
			}
			if got.Status != control.Failed || got.Reason != mover.ReasonUnfit || copies != fmt.Sprintf("map[%s:live since move 0]", from) && copies != fmt.Sprintf("map[%s:unmarked]", from) {
				t.Errorf("%q from %s: %s %s; copies %s", name, from, got.Status, got.Reason, copies)
			}
		}
	}
}

// commandOf is a command with one move.
func commandOf(m control.Move) *control.Command {
	end := time.UnixMicro(epoch).UTC()
	return &control.Command{
		Version: 1, Kind: control.Placement, Scope: m.To, Epoch: m.Version, Mode: control.Act, TTL: "24h",
		Window: control.Window{Start: end.Add(-time.Hour), End: end}, Placement: &control.Moves{Moves: []control.Move{m}},
	}
}

package movertest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"penstock/consumers/executor/locations"
	"penstock/consumers/executor/mover"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/postgres"
	"penstock/infra/testserver"
	"penstock/schemas/control"
)

// TestKeysOfTwoSites: where two databases hand out the same keys, a move fails at
// once, for a reason, and the log names the key. An owner who can be moved is not
// written to again at its old site, when the copy there is long deleted and a move
// back has failed, too.
func TestKeysOfTwoSites(t *testing.T) {
	stores, clients := map[string]objectstore.Store{}, map[string]*pgx.Conn{}
	for _, site := range []string{"a", "b"} {
		url := testserver.Postgres(t)
		c, err := pgx.Connect(t.Context(), url)
		ok(t, err)
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		_, err = c.Exec(t.Context(), `CREATE TABLE notes (id bigserial PRIMARY KEY, owner text)`)
		ok(t, err)
		s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Tables: []postgres.Table{{Name: "notes", Owner: "owner"}}})
		ok(t, err)
		t.Cleanup(func() { _ = s.Close() })
		stores[site], clients[site] = s, c
	}
	write := func(site, owner string) error {
		_, err := clients[site].Exec(t.Context(), `INSERT INTO notes (owner) VALUES ($1)`, owner)
		return err
	}
	var log bytes.Buffer
	m, err := mover.New(mover.Options{
		Name: "m", Dir: t.TempDir(), NoSync: true, Locations: locations.NewMemory(), Stores: stores, DeleteAfter: time.Hour,
		Logger: zerolog.New(zerolog.SyncWriter(&log)),
	})
	ok(t, err)
	defer func() { _ = m.Close() }()
	apply := func(mv control.Move) string {
		t.Helper()
		var got control.Outcome
		end := time.UnixMicro(1e15).UTC()
		ok(t, m.Apply(t.Context(), &control.Command{
			Version: 1, Kind: control.Placement, Scope: mv.To, Epoch: mv.Version, Mode: control.Act, TTL: "24h",
			Window: control.Window{Start: end.Add(-time.Hour), End: end}, Placement: &control.Moves{Moves: []control.Move{mv}},
		}, func(_ context.Context, o control.Outcome) error { got = o; return nil }))
		return fmt.Sprintf("%s %s", got.Status, got.Reason)
	}
	ok(t, write("a", "ann")) // 1
	ok(t, write("b", "bob")) // 1, too
	if got := apply(control.Move{Owner: "ann", From: "a", To: "b", Version: 1}); got != "failed "+mover.ReasonUnfit {
		t.Errorf("a move with another's key: %s", got)
	}
	if !strings.Contains(log.String(), "Key (id)=(1) already exists") || strings.Contains(log.String(), "trying again") {
		t.Errorf("the log is %s", log.String())
	}
	ok(t, write("a", "ann")) // 2: it is open
	_, err = clients["b"].Exec(t.Context(), `DELETE FROM notes`)
	ok(t, err)
	if got := apply(control.Move{Owner: "ann", From: "a", To: "b", Version: 2}); got != "done " {
		t.Fatalf("a move with keys of its own: %s", got)
	}
	refused := func(when string) {
		t.Helper()
		err := write("a", "ann")
		if mark, is := postgres.Moved(err); !is || mark.Site != "b" || !strings.Contains(err.Error(), "moved to site b") {
			t.Errorf("%s, a write at the old site: %v", when, err)
		}
	}
	refused("moved")
	if n, err := m.Purge(t.Context()); n != 1 || err != nil {
		t.Fatalf("purged %d, %v", n, err)
	}
	refused("purged")
	ok(t, write("b", "ann")) // 3; those that were refused have used up keys at a
	_, err = clients["a"].Exec(t.Context(), `INSERT INTO notes VALUES (3, 'cid')`)
	ok(t, err)
	if got := apply(control.Move{Owner: "ann", From: "b", To: "a", Version: 3}); got != "failed "+mover.ReasonUnfit {
		t.Errorf("a move back with another's key: %s", got)
	}
	refused("not moved back")
	ok(t, write("b", "ann"))
	_, err = clients["a"].Exec(t.Context(), `DELETE FROM notes`)
	ok(t, err)
	if got := apply(control.Move{Owner: "ann", From: "b", To: "a", Version: 4}); got != "done " {
		t.Errorf("a move back: %s", got)
	}
	ok(t, write("a", "ann"))
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

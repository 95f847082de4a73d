package topology

import (
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
	"penstock/schemas/control"
)

// TestEvacuationIsStuck: an evacuation is over before its end only if nothing more
// comes by itself.
func TestEvacuationIsStuck(t *testing.T) {
	pinned, unknown := Held{Owner: "a", Why: "Pinned"}, Held{Owner: "b", Why: Unknown}
	for name, c := range map[string]struct {
		e    Evacuation
		want bool
	}{
		"empty":                        {Evacuation{Decided: true}, false},
		"somebody is coming":           {Evacuation{Decided: true, Coming: 1}, false},
		"somebody is moving":           {Evacuation{Decided: true, Remaining: 2, Moving: 1, Held: []Held{pinned}}, false},
		"somebody waits":               {Evacuation{Decided: true, Remaining: 2, Held: []Held{pinned}}, false},
		"all are held":                 {Evacuation{Decided: true, Remaining: 2, Held: []Held{pinned, unknown}}, true},
		"no window has seen it":        {Evacuation{Remaining: 2, Held: []Held{pinned, unknown}}, false},
		"nobody knows them":            {Evacuation{Remaining: 1, Held: []Held{unknown}}, true},
		"nothing may move":             {Evacuation{Decided: true, Remaining: 9, Blocked: "frozen"}, true},
		"nothing may move, as yet":     {Evacuation{Remaining: 9, Blocked: "frozen"}, false},
		"nothing may move, but it did": {Evacuation{Decided: true, Remaining: 9, Moving: 1, Blocked: "frozen"}, false},
	} {
		if got := c.e.Stuck(); got != c.want {
			t.Errorf("%s: stuck %v", name, got)
		}
	}
}

// TestEvacuationBeforeAnythingWasDecided counts by locations and by the store: who
// is known to be elsewhere and has an open copy is told, and closed copies are not.
func TestEvacuationBeforeAnythingWasDecided(t *testing.T) {
	t.Parallel()
	client := bustest.Client(t, bustest.Start(t, func(o *bus.Options) { o.Sync = bus.SyncInterval }))
	table, err := locations.Open(t.Context(), client)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	store, err := dir.Open(t.TempDir(), dir.Options{NoSync: true})
	must(err)
	set := func(owner, site string, pinned bool) {
		_, err := table.Set(t.Context(), owner, control.Location{Site: site, State: control.Live, Since: time.Unix(0, 0), Pinned: pinned}, 0)
		must(err)
	}
	set("here", "east", false)
	set("pinned", "east", true)
	set("gone", "west", false)
	set("twice", "west", false)
	absent := objectstore.Mark{State: objectstore.Absent}
	for owner, m := range map[string]objectstore.Mark{
		"here": {}, "pinned": {}, "twice": {}, "stranger": {}, "gone": {State: objectstore.Retired, Version: 1, Site: "west"},
	} {
		must(store.Mark(t.Context(), owner, absent, m))
	}
	v := Evacuations{Client: client, Table: table, Logger: zerolog.Nop()}
	e, err := v.Look(t.Context(), "east")
	must(err)
	if e.Remaining != 2 || e.Looked || e.Decided || e.Waiting["a decision"] != 1 || len(e.Held) != 1 || e.Held[0].Why != "Pinned" {
		t.Errorf("without the store: %+v", e)
	}
	v.Store = store
	if e, err = v.Look(t.Context(), "east"); err != nil || e.Remaining != 4 || !e.Looked || e.Stuck() {
		t.Errorf("with the store: %+v, %v", e, err)
	}
	var held strings.Builder
	for _, h := range e.Held {
		held.WriteString(h.Owner + " " + h.Why + ";")
	}
	if held.String() != "pinned Pinned;stranger Unknown;twice SecondCopy;" {
		t.Errorf("held %s", held.String())
	}
}

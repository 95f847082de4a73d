package main

import (
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/locations"
	"penstock/consumers/executor/mover"
	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// check looks at everything at the end, before and after a purge. last are the
// owners' last posts.
func (k *killing) check(s *server, last []uint64) {
	k.t.Helper()
	t := k.t
	eventually(t, "no open moves", func() bool { return s.count("penstock_moves_open", `part="mover"`) == 0 })
	retired, err := mover.Retirements(filepath.Join(k.args[3], "mover"))
	if err != nil {
		t.Fatal(err)
	}
	verify := func() locations.Report {
		rep, err := locations.Verify(t.Context(), k.e.table, k.e.stores, retired)
		if err != nil {
			t.Fatal(err)
		}
		if len(rep.Problems) > 0 || rep.Live != killOwners || rep.Incoming != 0 {
			t.Errorf("verify: %+v", rep)
		}
		return rep
	}
	copies := verify().Retired
	k.w.located()
	for i, n := range last {
		owner := ownerName(i)
		if k.w.at[owner] != k.want[owner] {
			t.Errorf("%s is at %s, sent to %s", owner, k.w.at[owner], k.want[owner])
		}
		k.e.whole(k.w.at[owner], owner, n)
	}
	k.answers()
	must(t, "purge", "--nats", k.url)
	eventually(t, "retired copies to go", func() bool {
		rep, err := locations.Verify(t.Context(), k.e.table, k.e.stores, nil)
		return err == nil && rep.Retired == 0
	})
	if copies == 0 {
		t.Error("there were no copies to purge")
	}
	verify()
	for i, n := range last {
		k.e.whole(k.w.at[ownerName(i)], ownerName(i), n)
	}
	s.stop()
	k.owesNothing()
	at := []string{"audit", "--nats", k.url}
	if k.bus == "its own bus" {
		at = []string{"audit", "--state", k.args[3]}
	}
	if out := must(t, at...); !strings.Contains(out, "every event is accounted for") {
		t.Errorf("audit:\n%s", out)
	}
}

// owesNothing opens the journal of the stopped mover.
func (k *killing) owesNothing() {
	k.t.Helper()
	m, err := mover.New(mover.Options{Dir: filepath.Join(k.args[3], "mover"), Name: "one", Locations: k.e.table, Stores: k.e.stores, Logger: zerolog.Nop()})
	if err != nil {
		k.t.Fatal(err)
	}
	if open, pending := m.Open(), m.Pending(); open != 0 || pending != 0 {
		k.t.Errorf("the journal has %d open moves and %d copies to delete", open, pending)
	}
	if err := m.Close(); err != nil {
		k.t.Error(err)
	}
}

// answers sees that each move of each command has one outcome, done.
func (k *killing) answers() {
	k.t.Helper()
	type move struct {
		owner   string
		version uint64
	}
	want, got := map[move]int{}, map[move]int{}
	each(k.t, k.w.c, subject.CommandsStream, func(m bus.Msg) {
		if !strings.HasPrefix(m.Subject, "commands.") {
			return
		}
		c, err := control.DecodeCommand(m.Data)
		if err != nil {
			k.t.Fatal(err)
		}
		for _, mv := range c.Placement.Moves {
			want[move{mv.Owner, mv.Version}]++
		}
	})
	each(k.t, k.w.c, subject.OutcomesStream, func(m bus.Msg) {
		o, err := control.DecodeOutcome(m.Data)
		if err != nil {
			k.t.Fatal(err)
		}
		got[move{o.Owner, o.Move}]++
		if o.Status != control.Done {
			k.t.Errorf("outcome %+v", o)
		}
	})
	if len(want) != k.moves || len(got) != len(want) {
		k.t.Errorf("%d moves were decided, %d ordered, %d answered", k.moves, len(want), len(got))
	}
	for mv, n := range want {
		if n != 1 || got[mv] != 1 {
			k.t.Errorf("move %d of %s: ordered %d times, %d outcomes", mv.version, mv.owner, n, got[mv])
		}
	}
}

package topology

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"penstock/infra/bus"
	"penstock/pipeline/config"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const twoSites = `
sites:
  - {name: us-east, lat: 37.3719, lon: -79.8164,  capacity: 20KB/h}
  - {name: us-west, lat: 37.783,  lon: -122.417,  capacity: 20KB/h}
placement: {policy: tmatch, limits: {moves: 3}}
`

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Read("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// strangers are owners whose names are hard on files, subjects and keys.
var strangers = []string{
	"ann@example.org", "2001:db8::1", "100%", "two words", "Žluťoučký kůň", "a/b/../c", "b64=YQ", ".", "..",
	strings.Repeat("long", 256), "con\tnul", "*", ">", "a.b",
}

// wandering writes a recording of users that cross the country and back, hour
// by hour, so that their data wants to follow.
func wandering(t *testing.T, dir string, hours int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("time,op,user,owner,bytes,lat,lon\n")
	enc := func(s string) string { return `"` + s + `"` }
	for h := range hours {
		for i, o := range strangers {
			lat, lon := 38.0, -80.0
			if (h/5+i)%2 == 1 {
				lon = -122
			}
			at := fmt.Sprintf("2024-01-%02dT%02d:%02d:00Z", 1+h/24, h%24, i)
			fmt.Fprintf(&b, "%s,write,%s,%s,500,%v,%v\n", at, enc(o), enc(o), lat, lon)
			fmt.Fprintf(&b, "%s,read,%s,%s,600,%v,%v\n", at, enc("reader-"+fmt.Sprint(i)), enc(o), lat, lon)
		}
	}
	// An id that is too long for any subject is malformed and harms nobody.
	fmt.Fprintf(&b, "2024-01-01T00:30:00Z,write,u,%s,500,38,-80\n", strings.Repeat("x", 5000))
	name := filepath.Join(dir, "wandering.csv")
	if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestAMoverThatWasAwayAnswersEveryMoveOnce leaves the mover out for a hundred
// windows and lets it catch up: as many outcomes as moves, and no owner with
// two moves unanswered. Owners have names that are hard to write down.
func TestAMoverThatWasAwayAnswersEveryMoveOnce(t *testing.T) {
	dir := t.TempDir()
	var away atomic.Int64
	r := Replay{
		Files: []string{wandering(t, dir, 130)}, Config: parse(t, twoSites), Out: filepath.Join(dir, "out"), NoWait: true, Sync: bus.SyncInterval,
		Logger: zerolog.Nop(),
		Hold: func(ctx context.Context, client *bus.Client) error {
			in, err := client.Read(ctx, subject.CommandsStream, []string{subject.Decisions(string(control.Placement))}, 0)
			if err != nil {
				return err
			}
			defer in.Close()
			for range in.C() {
				if away.Add(1) == 100 {
					return nil
				}
			}
			return ctx.Err()
		},
	}
	rep, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if away.Load() != 100 || len(rep.Windows) != 130 {
		t.Fatalf("the mover was away for %d of %d windows", away.Load(), len(rep.Windows))
	}
	if rep.Account.Malformed != 1 || !rep.Account.Holds() {
		t.Errorf("account %+v, expected one malformed row", rep.Account)
	}
	if rep.Stores == nil || len(rep.Stores.Faults) > 0 || rep.Stores.Owners != int64(len(strangers)) {
		t.Errorf("stores %+v, expected %d owners without a fault", rep.Stores, len(strangers))
	}
	checkAnswers(t, &r)
}

// checkAnswers reads the bus of a replay that has ended: each move has one
// outcome, and an owner's next move was decided after the last one's outcome.
func checkAnswers(t *testing.T, r *Replay) {
	t.Helper()
	b, err := bus.Open(t.Context(), bus.Options{Dir: filepath.Join(r.State, "bus"), Purpose: bus.Replay, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	client, err := b.Client(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	type move struct {
		owner   string
		version uint64
	}
	moves, latest, owners := map[move]int{}, map[string]uint64{}, map[string]bool{}
	err = client.Each(t.Context(), subject.CommandsStream, []string{subject.CommandsOf("placement")}, 0, func(m bus.Msg) error {
		c, err := control.DecodeCommand(m.Data)
		if err != nil {
			return err
		}
		for _, mv := range c.Placement.Moves {
			if moves[move{mv.Owner, mv.Version}]++; mv.Version != latest[mv.Owner]+1 {
				t.Errorf("owner %q: version %d follows %d", mv.Owner, mv.Version, latest[mv.Owner])
			}
			latest[mv.Owner], owners[mv.Owner] = mv.Version, true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[move]int{}
	err = client.Each(t.Context(), subject.OutcomesStream, []string{subject.OutcomesOf("placement")}, 0, func(m bus.Msg) error {
		var o control.Outcome
		if err := json.Unmarshal(m.Data, &o); err != nil {
			return err
		}
		outcomes[move{o.Owner, o.Move}]++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(moves) < 20 || len(owners) != len(strangers) || len(outcomes) != len(moves) {
		t.Errorf("%d moves of %d owners, %d outcomes", len(moves), len(owners), len(outcomes))
	}
	for m, n := range moves {
		if n != 1 || outcomes[m] != 1 {
			t.Errorf("owner %q, version %d: commanded %d times, answered %d times", m.owner, m.version, n, outcomes[m])
		}
	}
}

package topology

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
)

// TestKnownLocationsComeFirst replays with a table of where data is: requests go
// there until a decision moves it, a pinned owner stays, and the versions of
// moves and the bytes that are stored go on from those of the table.
func TestKnownLocationsComeFirst(t *testing.T) {
	dir := t.TempDir()
	known := filepath.Join(dir, "known.csv")
	writeText(t, known, "owner,site,version,pinned,bytes\nann,us-west,4,false,5000\nbob,us-west,2,true,\ncat,mars,1,false,\n")
	var rows strings.Builder
	rows.WriteString("time,op,user,owner,bytes,lat,lon\n")
	for h := range 4 {
		for m := range 6 {
			for _, o := range []string{"ann", "bob"} {
				fmt.Fprintf(&rows, "2024-01-01T%02d:%02d:00Z,write,%s,%s,100,38,-80\n", h, m, o, o)
			}
		}
	}
	rec := filepath.Join(dir, "rec.csv")
	writeText(t, rec, rows.String())
	var notes []string
	r := Replay{
		Files: []string{rec}, Config: parse(t, twoSites), Locations: known, Out: filepath.Join(dir, "out"), Sync: bus.SyncInterval,
		Logger: zerolog.Nop(), Note: func(s string) { notes = append(notes, s) },
	}
	rep, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first := rep.Windows[0].Traffic
	if first["us-west"] != 1200 || first["us-east"] != 0 {
		t.Errorf("first window %v, expected all at us-west, where the data was", first)
	}
	last := rep.Windows[len(rep.Windows)-1].Traffic
	if last["us-east"] != 600 || last["us-west"] != 600 {
		t.Errorf("last window %v, expected ann at us-east and bob, who is pinned, at us-west", last)
	}
	commands, err := os.ReadFile(filepath.Join(dir, "out", "commands.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if rep.Moves.Done != 1 || !strings.Contains(string(commands), `"owner":"ann","from":"us-west","to":"us-east","version":5,"bytes":5600}`) {
		t.Errorf("%d moves:\n%s", rep.Moves.Done, commands)
	}
	if len(rep.Stores.Faults) > 0 || rep.Stores.Owners != 2 {
		t.Errorf("stores %+v", rep.Stores)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "known.csv line 4") || !strings.Contains(notes[0], "mars") {
		t.Errorf("notes %q, expected line 4 with its site", notes)
	}
}

func writeText(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

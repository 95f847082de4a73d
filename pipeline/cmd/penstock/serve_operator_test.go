package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/objectstore"
	"penstock/infra/testserver"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// write appends to an owner's data where it is served, as its service does, and
// returns what it is now.
func (w *crowd) write(homes map[string]objectstore.Store, owner, more string) []byte {
	w.t.Helper()
	st := homes[w.at[owner]]
	now := w.read(homes, owner)
	now = append(now, more...)
	if _, err := st.Put(w.t.Context(), owner, "letters/1", bytes.NewReader(now), objectstore.Mark{}); err != nil {
		w.t.Fatal(err)
	}
	return now
}

func (w *crowd) read(homes map[string]objectstore.Store, owner string) []byte {
	w.t.Helper()
	r, err := homes[w.at[owner]].Open(w.t.Context(), owner, "letters/1")
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// served is a process that serves a crowd whose data is where it is asked for, and
// the operator's hand.
type served struct {
	config string
	args   []string // of serve, to start it again
	server *server
	crowd  *crowd
	homes  map[string]objectstore.Store
	op     func(args ...string) string // a verb on its bus, which must succeed
}

func serveCrowd(t *testing.T, owners int) *served {
	t.Helper()
	dir := t.TempDir()
	e := &served{config: configure(t, dir, settings{2, 0.3})}
	e.args = []string{"--config", e.config, "--state", filepath.Join(dir, "state"), "--listen", testserver.FreeAddress(t), "--name", "one"}
	e.server = serve(t, e.args...)
	address := e.server.bus
	e.op = func(args ...string) string { t.Helper(); return must(t, append(args, "--nats", address)...) }
	e.crowd = gather(t, connect(t, address, ""), owners)
	e.homes = stores(t, e.config)
	e.crowd.fill(e.homes)
	return e
}

// TestRollbackKeepsWhatWasWritten moves a crowd, lets it write where it is then,
// and takes the moves back inside delete_after: every location is as before, each
// owner has all writes, and of the rest of its data nothing is copied. The kind
// stays frozen until the thaw, over a kill too.
func TestRollbackKeepsWhatWasWritten(t *testing.T) {
	t.Parallel()
	const owners = 12
	at := serveCrowd(t, owners)
	cfg, args, s, w, homes, op := at.config, at.args, at.server, at.crowd, at.homes, at.op
	// Something large that nobody writes to.
	large := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	for owner := range w.at {
		if _, err := homes["east"].Put(t.Context(), owner, "attic", bytes.NewReader(large), objectstore.Mark{}); err != nil {
			t.Fatal(err)
		}
	}
	op("mode", "placement", "act")
	if d := w.decision(w.send("east")); moves(d) != 0 {
		t.Fatalf("window 0: %d moves", moves(d))
	}
	before := maps.Clone(w.at)
	to := time.UnixMicro(epoch + int64(w.window)*hour).UTC()
	if d := w.decision(w.send("west", "north")); moves(d) != owners {
		t.Fatalf("window 1: %d moves", moves(d))
	}
	w.outcomes(owners)
	w.located()
	copied := func(site string) int { return s.count("penstock_moved_bytes_total", fmt.Sprintf("to=%q", site)) }
	if there := copied("west") + copied("north"); there < owners*len(large) {
		t.Errorf("%d bytes were copied", there)
	}
	wrote := map[string][]byte{}
	for owner := range w.at {
		wrote[owner] = w.write(homes, owner, "written after the move\n")
	}

	op("rollback", "placement", "--to", to.Format(time.RFC3339))
	d := w.decision(w.send("north"))
	if moves(d) != owners || d.Operator.Rollback == nil {
		t.Fatalf("window 2: %d moves, reasons %v", moves(d), codes(d))
	}
	w.outcomes(2 * owners)
	w.located()
	if !maps.Equal(w.at, before) {
		t.Errorf("data is at %v, expected %v", w.at, before)
	}
	difference := 0
	for owner := range w.at {
		if got := w.read(homes, owner); !bytes.Equal(got, wrote[owner]) {
			t.Errorf("%s has %d bytes, %d were written", owner, len(got), len(wrote[owner]))
		}
		difference += len(wrote[owner])
		w.write(homes, owner, "and it can be written to\n")
	}
	eventually(t, "the bytes of the way back to be counted", func() bool { return copied("east") > 0 })
	if back := copied("east"); back != difference {
		t.Errorf("%d bytes were copied back, the difference is %d", back, difference)
	}

	s.kill()
	s = serve(t, args...)
	for range 2 {
		if d := w.decision(w.send("west")); moves(d) != 0 || codes(d)["Frozen"] == 0 {
			t.Errorf("after the rollback: %d moves, reasons %v", moves(d), codes(d))
		}
	}
	op("thaw", "placement")
	if d := w.decision(w.send("west")); moves(d) != owners {
		t.Errorf("after the thaw: %d moves, reasons %v", moves(d), codes(d))
	}
	w.outcomes(3 * owners)
	w.located()
	for owner := range w.at {
		if got := w.read(homes, owner); !strings.HasSuffix(string(got), "after the move\nand it can be written to\n") {
			t.Errorf("%s ends in %q", owner, got[max(0, len(got)-60):])
		}
	}
	if out := op("locations", "verify", "--config", cfg); !strings.Contains(out, fmt.Sprintf("%d owners, %d with exactly one live copy", owners, owners)) {
		t.Errorf("locations verify: %s", out)
	}
	s.stop()
}

// TestEvacuate empties a site whose store has owners of whom nobody knows, one who
// is pinned and one whose data cannot be moved. The wait and
// the process that decides and moves are killed half-way and run again; it ends with a list, and when that is dealt with at nothing.
func TestEvacuate(t *testing.T) {
	t.Parallel()
	const owners = 24
	at := serveCrowd(t, owners)
	cfg, args, s, w, homes, op := at.config, at.args, at.server, at.crowd, at.homes, at.op
	put := func(site, owner string) {
		t.Helper()
		if _, err := homes[site].Put(t.Context(), owner, "letters/1", bytes.NewReader(content(owner)), objectstore.Mark{}); err != nil {
			t.Fatal(err)
		}
	}
	put("east", "nobody")      // is known to nobody
	put("west", ownerName(3))  // is in the way of a move, whoever put it there
	put("north", ownerName(3)) // wherever it goes
	op("mode", "placement", "act")
	w.decision(w.send("east"))
	op("locations", "pin", ownerName(5))

	evacuate := func() *server {
		t.Helper()
		return start(t, "evacuate", "east", "--wait", "--config", cfg, "--nats", s.bus)
	}
	first := evacuate()
	eventually(t, "the evacuation to be under way", func() bool {
		return strings.Contains(first.out.String(), fmt.Sprintf("east: %d remaining, 2 held, %d waiting: a decision", owners+1, owners-1))
	})
	if d := w.decision(w.send("east")); moves(d) != owners-1 {
		t.Errorf("%d moves, reasons %v", moves(d), codes(d))
	}
	// Everything is killed half-way, and starts again.
	first.kill()
	s.kill()
	s = serve(t, args...)
	again := evacuate()
	w.outcomes(owners - 1)
	// Nothing more will happen once a window has seen how that ended.
	w.located()
	w.decision(w.send("east"))
	if code := again.code(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"east: is being emptied already\n",
		"east: 3 remaining, 3 held\n",
		`owner "nobody" stays: Unknown: the store has a live copy, and nobody knows the owner: penstock locations import --from-stores`,
		`owner "owner 3" stays: failed: its last move, to `, "destination-occupied (1 in a row)",
		`owner "owner 5" stays: Pinned: `,
	} {
		if !strings.Contains(again.out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, again.out.String())
		}
	}
	out := op("status")
	for _, want := range []string{"being emptied: east\n  east: 2 owners there at the last decision, which moves 0 of them; ", "1 owners' last moves came to nothing:\n  \"owner 3\" to ", ": failed, destination-occupied; 1 in a row\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in status:\n%s", want, out)
		}
	}

	// The operator deals with them.
	for _, site := range []string{"west", "north"} {
		if err := homes[site].Delete(t.Context(), ownerName(3), objectstore.Mark{}); err != nil {
			t.Fatal(err)
		}
	}
	op("locations", "unpin", ownerName(5))
	if out := op("locations", "import", "--from-stores", "--sizes", "--config", cfg); !strings.Contains(out, "25 rows: 2 written, 23 known already") {
		t.Errorf("import: %s", out)
	}
	last := evacuate()
	for n := 0; ; n++ {
		w.located()
		d := w.decision(w.send("east"))
		if moves(d) == 0 && n > 0 || n > 8 {
			break
		}
	}
	if code := last.code(); code != 0 || !strings.Contains(last.out.String(), "east: 0 remaining\neast is empty;") {
		t.Errorf("exit code %d, %s", code, last.out.String())
	}
	w.located()
	if n := w.served()["east"]; n != 0 {
		t.Errorf("%d are served at east", n)
	}
	w.check(homes, true)
	var x topology.Explained
	if out := op("--json", "explain", "nobody"); json.Unmarshal([]byte(out), &x) != nil || x.Stored != int64(len(content("nobody"))) || x.Source != "moved" {
		t.Errorf("%s", out)
	}
	var e topology.Evacuation
	if out := op("--json", "evacuate", "east", "--config", cfg); json.Unmarshal([]byte(out), &e) != nil || !e.Empty() || !e.Looked {
		t.Errorf("%s", out)
	}
	if out := op("evacuate", "east", "--off"); !strings.Contains(out, "no longer being emptied") {
		t.Error(out)
	}
	s.stop()
}

// TestLocationsWhileServing imports for a decider that is at work: it hears of it
// before its next window, and once; what is under way is refused; and it all comes
// out the same when it is decided again.
func TestLocationsWhileServing(t *testing.T) {
	t.Parallel()
	const owners = 8
	at := serveCrowd(t, owners)
	cfg, args, s, w, homes, op := at.config, at.args, at.server, at.crowd, at.homes, at.op
	op("mode", "placement", "act")
	w.decision(w.send("east"))

	// Somebody has carried data to the north by hand.
	var text strings.Builder
	text.WriteString("owner,site\n")
	for i := range 3 {
		owner := ownerName(i)
		if err := homes["east"].Delete(t.Context(), owner, objectstore.Mark{}); err != nil {
			t.Fatal(err)
		}
		w.at[owner] = "north"
		fmt.Fprintf(&text, "%s,north\n", owner)
	}
	for owner := range w.at {
		if w.at[owner] == "north" {
			if _, err := homes["north"].Put(t.Context(), owner, "letters/1", bytes.NewReader(content(owner)), objectstore.Mark{}); err != nil {
				t.Fatal(err)
			}
			w.at[owner] = "" // Requests do not say who served them.
		}
	}
	file := filepath.Join(t.TempDir(), "moved.csv")
	writeFile(t, file, text.String())
	for _, want := range []string{"3 rows: 3 written", "3 rows: 0 written, 3 known already"} {
		if out := op("locations", "import", file, "--config", cfg); !strings.Contains(out, want) {
			t.Errorf("import: %s, expected %s", out, want)
		}
	}
	// Without a configuration the sites are those of the last decision.
	writeFile(t, file, text.String()+"stray,nowhere\n")
	if out, errs, code := command(t, "locations", "import", file, "--nats", s.bus); code != 0 || !strings.Contains(out, "3 known already, 1 unused") ||
		!strings.Contains(errs, `got "nowhere", expected one of east, west, north`) {
		t.Errorf("import: exit code %d\n%s%s", code, out, errs)
	}
	d := w.decision(w.send("east"))
	if moves(d) != 3 {
		t.Fatalf("%d moves, reasons %v: expected those who are not in the east", moves(d), codes(d))
	}
	w.outcomes(3)
	w.located()
	w.check(homes, true)
	if out := op("explain", ownerName(1)); !strings.Contains(out, "north → east, version 1") {
		t.Errorf("explain:\n%s", out)
	}

	// A pin holds, and ends.
	op("locations", "pin", ownerName(6))
	if d := w.decision(w.send("west")); moves(d) != owners-1 || codes(d)["Pinned"] != 1 {
		t.Errorf("%d moves, reasons %v", moves(d), codes(d))
	}
	w.outcomes(3 + owners - 1)
	w.located()
	op("locations", "unpin", ownerName(6))
	if d := w.decision(w.send("west")); moves(d) != 1 {
		t.Errorf("%d moves after the pin, reasons %v", moves(d), codes(d))
	}
	w.outcomes(3 + owners)
	w.located()
	w.check(homes, true)

	// What went through a file is the same table.
	parquet := filepath.Join(t.TempDir(), "out.parquet")
	if out := op("locations", "export", "-o", parquet); !strings.Contains(out, fmt.Sprintf("%d locations written", owners)) {
		t.Error(out)
	}
	if out := op("locations", "import", parquet, "--strict"); !strings.Contains(out, fmt.Sprintf("%d rows: 0 written, %d known already", owners, owners)) {
		t.Error(out)
	}
	s.kill()
	s = serve(t, args...)
	if d := w.decision(w.send("west")); moves(d) != 0 {
		t.Errorf("%d moves after a kill: %v", moves(d), codes(d))
	}
	w.undiverged(s.bus, 5)
	if _, errs, code := command(t, "locations", "pin", "stranger", "--nats", s.bus); code != 1 || !strings.Contains(errs, "unknown owner") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if got := w.outcomes(3 + owners); got[control.Done] != 3+owners {
		t.Errorf("outcomes %v", got)
	}
	s.stop()
}

// TestAWeekWithoutData lets a week pass in which nobody asks for anything (P34):
// nothing is decided for it and nothing moves, the last decision is marked stale
// until the next one, and the gap itself is no reason to move anything then.
func TestAWeekWithoutData(t *testing.T) {
	t.Parallel()
	const owners = 6
	at := serveCrowd(t, owners)
	s, w := at.server, at.crowd
	at.op("mode", "placement", "act")
	stale := func(want bool) {
		t.Helper()
		eventually(t, fmt.Sprintf("the decision to be stale: %v", want), func() bool {
			v, found := s.metric("penstock_decision_stale", `kind="placement"`)
			return found && (v == 1) == want
		})
		if out := must(t, "status", "--nats", s.bus); strings.Contains(out, "; STALE: nothing decided since ") != want {
			t.Errorf("expected to be told that it is stale: %v\n%s", want, out)
		}
	}
	w.decision(w.send("east"))
	if d := w.decision(w.send("west")); moves(d) != owners {
		t.Fatalf("%d moves, reasons %v", moves(d), codes(d))
	}
	w.outcomes(owners)
	w.located()
	w.decision(w.send("west"))
	stale(false)
	records := func() (n uint64) {
		each(t, w.c, subject.CommandsStream, func(bus.Msg) { n++ })
		return n
	}
	before := records()
	w.window += 7 * 24
	end := epoch + int64(w.window)*hour
	w.p.Horizon(end)
	if err := w.p.Barrier(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	stale(true)
	if n := records(); n != before {
		t.Errorf("%d messages were decided for a week without data", n-before)
	}
	if d := w.decision(w.send("west")); moves(d) != 0 {
		t.Errorf("the gap has moved %d owners: %v", moves(d), codes(d))
	}
	stale(false)
	w.check(at.homes, true)
	s.stop()
}

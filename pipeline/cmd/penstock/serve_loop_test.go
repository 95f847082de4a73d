package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/infra/clock/stall"
	"penstock/infra/objectstore"
	"penstock/infra/testserver"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// TestServeEndToEnd runs the whole loop in one process with an embedded bus: a
// crowd moves about, decisions are advice until the operator says act, then data
// moves; freeze, thaw, rollback and purge do what they say; a stop under load
// leaves nothing to be delivered twice, and the next start goes on.
func TestServeEndToEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := configure(t, dir, settings{2, 0.3})
	args := []string{"--config", cfg, "--state", filepath.Join(dir, "state"), "--listen", testserver.FreeAddress(t), "--name", "one"}
	s := serve(t, args...)
	at := []string{"--nats", s.bus}
	op := func(args ...string) string { t.Helper(); return must(t, append(args, at...)...) }
	c := connect(t, s.bus, "")
	w := gather(t, c, 30)
	homes := stores(t, cfg)
	w.fill(homes)

	// Everybody is where the data is: nothing to move. Then they go west.
	if d := w.decision(w.send("east")); moves(d) != 0 || d.Mode != control.Advise {
		t.Fatalf("window 0: %+v", d)
	}
	advised := w.decision(w.send("west"))
	if advised.Mode != control.Advise || moves(advised) != 30 {
		t.Fatalf("window 1: %d moves in mode %s, expected advice of 30", moves(advised), advised.Mode)
	}
	if got := w.outcomes(30); !maps.Equal(got, map[control.Status]int{control.Advised: 30}) {
		t.Errorf("outcomes of advice: %v", got)
	}
	w.located()
	if w.served()["east"] != 30 {
		t.Errorf("advice has moved data: %v", w.served())
	}
	w.check(homes, false)

	op("mode", "placement", "act")
	if d := w.decision(w.send("west")); d.Mode != control.Act || moves(d) != 30 {
		t.Fatalf("window 2: %d moves in mode %s, expected 30 to be carried out", moves(d), d.Mode)
	}
	if got := w.outcomes(60); got[control.Done] != 30 {
		t.Errorf("outcomes: %v", got)
	}
	w.located()
	w.check(homes, true)
	if w.served()["west"] != 30 {
		t.Errorf("served at %v after the moves", w.served())
	}
	if out := op("locations", "export"); strings.Count(out, ",west,") != 30 {
		t.Errorf("locations export:\n%s", out)
	}
	if out := op("locations", "verify", "--config", cfg); !strings.Contains(out, "30 owners, 30 with exactly one live copy, 30 retired copies") {
		t.Errorf("locations verify: %s", out)
	}
	journals(t, cfg, s.bus, filepath.Join(dir, "state"), 30)
	if out := op("explain", "placement", ownerName(7)); !strings.Contains(out, "data is at west (moved there, version 2)") || !strings.Contains(out, "east → west") {
		t.Errorf("explain:\n%s", out)
	}
	if out := op("status"); !strings.Contains(out, "placement: mode act") || !strings.Contains(out, "30 moves") || !strings.Contains(out, "operator: mode act") {
		t.Errorf("status:\n%s", out)
	}

	op("freeze", "placement")
	if d := w.decision(w.send("east")); moves(d) != 0 || codes(d)["Frozen"] == 0 {
		t.Errorf("window 3 of a frozen kind: %d moves, reasons %v", moves(d), codes(d))
	}
	if out := op("status"); !strings.Contains(out, "FROZEN") {
		t.Errorf("status of a frozen kind:\n%s", out)
	}
	op("thaw", "placement")
	before := time.UnixMicro(epoch + int64(w.window)*hour).UTC()
	if d := w.decision(w.send("north")); moves(d) != 30 {
		t.Fatalf("window 4: %d moves after the thaw", moves(d))
	}
	w.outcomes(90)
	w.located()
	if w.served()["north"] != 30 {
		t.Errorf("served at %v after going north", w.served())
	}

	op("rollback", "placement", "--to", before.Format(time.RFC3339))
	if d := w.decision(w.send("north")); moves(d) != 30 || codes(d)["Rollback"] == 0 {
		t.Fatalf("window 5: %d moves, reasons %v; expected a rollback", moves(d), codes(d))
	}
	w.outcomes(120)
	w.located()
	w.check(homes, true)
	if w.served()["west"] != 30 {
		t.Errorf("served at %v after the rollback", w.served())
	}
	if d := w.decision(w.send("north")); moves(d) != 0 || codes(d)["Frozen"] == 0 {
		t.Errorf("window 6 after a rollback: %d moves, reasons %v", moves(d), codes(d))
	}

	op("purge")
	eventually(t, "retired copies to go", func() bool {
		n := 0
		for site, st := range homes {
			err := st.Owners(t.Context(), func(string, objectstore.Mark) error { n++; return nil })
			if err != nil {
				t.Fatalf("%s: %v", site, err)
			}
		}
		return n == 30
	})
	w.check(homes, false)
	if out := op("audit"); !strings.Contains(out, "every event is accounted for") {
		t.Errorf("audit:\n%s", out)
	}
	telemetryOf(t, s, w.rows)

	op("thaw", "placement")
	stopUnderLoad(t, s, w, args, homes)
}

// telemetryOf looks at what a process that has served for a while tells.
func telemetryOf(t *testing.T, s *server, rows int64) {
	t.Helper()
	for _, g := range []string{`group="fast"`, `group="owners"`} {
		received := s.count("penstock_rows_total", g, `account="received"`)
		counted := s.count("penstock_rows_total", g, `account="counted"`)
		if received != int(rows) || counted != int(rows) {
			t.Errorf("%s: received %d, counted %d, sent %d", g, received, counted, rows)
		}
	}
	for _, c := range []struct {
		name, label string
		want        int
	}{
		{"penstock_decisions_total", `kind="placement"`, 7},
		{"penstock_decision_seconds_count", `kind="placement"`, 7},
		{"penstock_outcomes_total", `status="done"`, 90},
		{"penstock_outcomes_total", `status="advised"`, 30},
		{"penstock_moves_open", `part="mover"`, 0},
	} {
		eventually(t, fmt.Sprintf("%s{%s} to be %d", c.name, c.label, c.want), func() bool { return s.count(c.name, c.label) == c.want })
	}
	for _, name := range []string{
		"penstock_lag_seconds", "penstock_stored_lag_seconds", "penstock_watermark_seconds", "penstock_decided_window_age_seconds",
		"penstock_moved_bytes_total", "penstock_bus_reader_messages_total", "penstock_flushes_total",
	} {
		if v, found := s.metric(name); !found || v <= 0 {
			t.Errorf("%s is %v, there: %v", name, v, found)
		}
	}
	if code, body := s.get("/healthz"); code != 200 {
		t.Errorf("health: %d %s", code, body)
	}
}

// journals looks at retired copies from the state folder of an executor that has
// not retired them: they are told, and whose journal to name too, until it is.
func journals(t *testing.T, cfg, url, state string, retired int) {
	t.Helper()
	other := t.TempDir()
	if err := os.Mkdir(filepath.Join(other, "mover"), 0o755); err != nil {
		t.Fatal(err)
	}
	verify := []string{"locations", "verify", "--config", cfg, "--nats", url, "--state", other}
	out, _, code := command(t, verify...)
	says := fmt.Sprintf("%d retired copies are in no journal under %s; if another executor retired them, name its state folder with --movers\n", retired, other)
	if code != 1 || strings.Count(out, ": unjournalled: ") != retired || !strings.HasSuffix(out, says) {
		t.Errorf("locations verify of another's: exit code %d\n%s", code, out)
	}
	if out := must(t, append(verify, "--movers", state)...); strings.Count(out, "\n") != 1 {
		t.Errorf("locations verify with both journals:\n%s", out)
	}
	if _, errs, code := command(t, append(verify, "--movers", filepath.Join(other, "mover"))...); code != 2 || !strings.Contains(errs, "no mover's journal") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// stopUnderLoad stops the process again and again while commands are being
// carried out, starts it each time, and sees that nothing was delivered twice and
// that it goes on (P25).
func stopUnderLoad(t *testing.T, s *server, w *crowd, args []string, homes map[string]objectstore.Store) {
	t.Helper()
	const before = 120 // outcomes, 30 of them of advice
	answered := before
	meter := stall.Start(t.Context())
	for n, delay := range []time.Duration{0, 2 * time.Millisecond, 8 * time.Millisecond, 20 * time.Millisecond} {
		d := w.decision(w.send([][]string{{"east", "north", "west"}, {"north", "west", "east"}}[n%2]...))
		if len(d.Commands) < 2 || moves(d) < 20 {
			t.Fatalf("stop %d: %d commands with %d moves", n, len(d.Commands), moves(d))
		}
		time.Sleep(delay) // The moment of the stop is what is tried.
		began, stood := time.Now(), meter.Total()
		s.stop()
		if took := time.Since(began); took > 12*time.Second+meter.Total()-stood {
			t.Errorf("stopped after %s", took)
		}
		s = serve(t, args...)
		answered += moves(d)
		if got := w.outcomes(answered); got[control.Done] != answered-30 {
			t.Errorf("stop %d: outcomes %v of %d", n, got, answered)
		}
		w.located()
		w.check(homes, true)
	}
	again := s
	commands := uint64(0)
	each(t, w.c, subject.CommandsStream, func(m bus.Msg) {
		if strings.HasPrefix(m.Subject, "commands.") {
			commands++
		}
	})
	stream, err := w.c.JS.Stream(t.Context(), w.c.Stream(subject.CommandsStream))
	if err != nil {
		t.Fatal(err)
	}
	var info *jetstream.ConsumerInfo
	eventually(t, "all commands to be acknowledged", func() bool {
		con, err := stream.Consumer(t.Context(), "placement-mover")
		if err != nil {
			t.Fatal(err)
		}
		info = con.CachedInfo()
		return info.NumPending == 0 && info.NumAckPending == 0
	})
	if info.NumRedelivered != 0 || info.Delivered.Consumer != commands {
		t.Errorf("%d deliveries of %d commands, %d given again", info.Delivered.Consumer, commands, info.NumRedelivered)
	}
	w.located()
	if out := must(t, "--json", "audit", "--nats", again.bus); !json.Valid([]byte(out)) {
		t.Errorf("audit: %s", out)
	}
	again.signal(syscall.SIGINT)
	if c := again.code(); c != 0 {
		t.Errorf("exit code %d after SIGINT", c)
	}
	if _, errs, code := command(t, "status", "--nats", again.bus); code != 1 || !strings.Contains(errs, "NATS at") {
		t.Errorf("status without a server: exit code %d, %s", code, errs)
	}
	// A purge names nobody: it needs no key of users. And it says that it has
	// deleted nothing only if it came to look.
	keyless := filepath.Join(t.TempDir(), "keyless.yaml")
	text, err := os.ReadFile(args[1])
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, keyless, strings.ReplaceAll(string(text), `user_key: "only for this test"`, ""))
	if out, errs, code := command(t, "purge", "--config", keyless, "--state", filepath.Join(t.TempDir(), "none"), "--prefix", "no good"); code == 0 || out != "" {
		t.Errorf("a purge that cannot be: exit code %d\n%s%s", code, out, errs)
	}
	if out := must(t, "purge", "--config", keyless, "--state", args[3], "--name", "one"); !strings.Contains(out, "copies that had moved away") || strings.Contains(out, "deleted 0 ") {
		t.Errorf("purge of a stopped process: %s", out)
	}
	w.check(homes, false)
	if out := must(t, "audit", "--state", args[3]); !strings.Contains(out, "every event is accounted for") {
		t.Errorf("audit of the state folder:\n%s", out)
	}
	if _, err := w.c.State(t.Context(), subject.EventsStream); err == nil || errors.Is(err, bus.ErrNoMessage) {
		t.Errorf("the bus of a stopped process answers: %v", err)
	}
}

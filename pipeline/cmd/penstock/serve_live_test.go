package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock/stall"
	"penstock/infra/publisher"
	"penstock/infra/testserver"
	"penstock/schemas/event"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// TestLiveTrafficOverACrash kills the process that holds the bus while an entry
// point publishes. Publishing never waits, the spool keeps what the bus cannot
// take, and once the process is back every row is in the account, in time.
func TestLiveTrafficOverACrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"--config", configure(t, dir, settings{2, 0.3}), "--state", filepath.Join(dir, "state"), "--listen", testserver.FreeAddress(t)}
	s := serve(t, args...)
	c := connect(t, s.bus, "")
	p, err := publisher.New(t.Context(), publisher.Options{
		Client: c, Entry: "web-1", MaxAge: 20 * time.Millisecond, SpoolDir: filepath.Join(dir, "spool"), AckTimeout: time.Second,
		Disorder: 5 * time.Second, // More than the outage lasts: what was sent in it is not late.
		Logger:   zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	sent, meter := 0, stall.Start(t.Context())
	publish := func(rows int) {
		for range rows {
			r := event.NewRequest(time.Now().UnixMicro())
			r.Owner, r.User, r.ToSite, r.Bytes, r.Status = fmt.Sprintf("owner-%d", sent%50), fmt.Sprintf("user-%d", sent%7), "east", 100, 200
			began, stood := time.Now(), meter.Total()
			p.Publish(&r)
			if took := time.Since(began); took > time.Second+meter.Total()-stood {
				t.Errorf("a caller waited %s", took)
			}
			sent++
			if sent%20 == 0 {
				time.Sleep(2 * time.Millisecond) // A rate, not a wait: 10,000 rows a second.
			}
		}
	}
	publish(4000)
	s.kill()
	publish(4000)
	s = serve(t, args...)
	publish(4000)
	s.awaitLive()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if st := p.Stats(); st.Waiting != 0 || len(st.Dropped) > 0 || st.Sent != uint64(sent) {
		t.Errorf("publisher: %+v, published %d", st, sent)
	}
	total := window.Account{}
	eventually(t, "all rows to be in the account", func() bool {
		total = window.Account{}
		for n := range c.Partitions() {
			m, err := c.Last(t.Context(), subject.WindowsStream, subject.Windows(window.Fast, n))
			if err != nil {
				return false
			}
			commit, err := window.CommitOf(m.Header, m.Data)
			if err != nil {
				return false
			}
			total.Add(commit.Total)
		}
		return total.Counted+total.Late == int64(sent)
	})
	if total.Late != 0 || total.LostBatches != 0 || total.Received-total.Duplicate != int64(sent) {
		t.Errorf("account %+v, published %d", total, sent)
	}
	s.stop()
	if out := must(t, "audit", "--state", args[3]); !strings.Contains(out, "every event is accounted for") {
		t.Errorf("audit:\n%s", out)
	}
}

// awaitLive waits until the newest event that was processed is a moment old.
func (s *server) awaitLive() {
	s.t.Helper()
	eventually(s.t, "the lag to be small", func() bool {
		for _, g := range []string{window.Fast, window.Owners} {
			lag, found := s.metric("penstock_lag_seconds", fmt.Sprintf("group=%q", g), `partition="0"`)
			if !found || lag > 10 {
				return false
			}
		}
		return true
	})
}

// TestImportedLocations tells before the first decision where data is that no
// request was ever served from: it is moved from there. After a restart the table
// has changed, and what was decided comes out as it was.
func TestImportedLocations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Listen = 2, "127.0.0.1:0" })
	cfg := configure(t, dir, settings{2, 0.3})
	w := gather(t, bustest.Client(t, b), 6)
	csv := "owner,site\n"
	homes := stores(t, cfg)
	for owner := range w.at {
		csv += owner + ",north\n"
		w.at[owner] = "north"
	}
	w.fill(homes)
	table := filepath.Join(dir, "locations.csv")
	writeFile(t, table, csv+"stray,nowhere\n")
	out, errs, code := command(t, "locations", "import", table, "--config", cfg, "--nats", b.URL())
	if code != 0 || !strings.Contains(out, "7 rows: 6 written, 0 known already, 1 unused") || !strings.Contains(errs, "line 8") {
		t.Errorf("import: exit code %d\n%s%s", code, out, errs)
	}
	for owner := range w.at {
		w.at[owner] = "" // Requests do not say who served them.
	}
	must(t, "mode", "placement", "act", "--nats", b.URL())
	args := []string{"--nats", b.URL(), "--config", cfg, "--state", filepath.Join(dir, "state")}
	s := serve(t, args...)
	if d := w.decision(w.send("west")); moves(d) != 6 {
		t.Fatalf("window 0: %d moves, reasons %v", moves(d), codes(d))
	}
	w.outcomes(6)
	w.located()
	if w.served()["west"] != 6 {
		t.Errorf("served at %v", w.served())
	}
	w.check(homes, true)
	s.kill()
	s = serve(t, args...)
	if d := w.decision(w.send("east")); moves(d) != 6 {
		t.Errorf("window 1: %d moves, reasons %v", moves(d), codes(d))
	}
	w.outcomes(12)
	w.located()
	w.check(homes, true)
	w.undiverged(b.URL(), 2)
	s.stop()
}

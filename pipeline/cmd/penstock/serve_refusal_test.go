package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/testserver"
	"penstock/schemas/event"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// bare is a NATS server without any stream of Penstock's.
func bare(t testing.TB) (url string, js jetstream.JetStream) {
	t.Helper()
	b, err := bus.Open(t.Context(), bus.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", Sync: bus.SyncInterval, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	nc, err := nats.Connect(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if js, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	return b.URL(), js
}

// refused runs a command that must fail with a code and say why.
func refused(t *testing.T, code int, args []string, want ...string) {
	t.Helper()
	out, errs, got := command(t, args...)
	if got != code {
		t.Errorf("penstock %s: exit code %d, expected %d\n%s%s", strings.Join(args, " "), got, code, out, errs)
	}
	for _, w := range want {
		if !strings.Contains(errs, w) {
			t.Errorf("penstock %s: expected %q in\n%s", strings.Join(args, " "), w, errs)
		}
	}
}

// TestABusThatIsNotAsItShouldBe is what an operator sees who starts too early, or
// against streams that somebody else made or changed.
func TestABusThatIsNotAsItShouldBe(t *testing.T) {
	dir := t.TempDir()
	url, js := bare(t)
	cfg := configure(t, dir, settings{3, 0.3})
	start := []string{"serve", "--nats", url, "--config", cfg, "--state", filepath.Join(dir, "state")}
	refused(t, 1, start, "stream EVENTS: stream: have none, want one", "bucket locations: bucket: have none",
		"penstock init --nats "+url+" --partitions 3")
	refused(t, 1, append(start, "--prefix", "blue"), "stream blue_EVENTS: stream: have none", "penstock init --nats "+url+" --prefix blue --partitions 3")
	for _, verb := range [][]string{{"status"}, {"audit"}, {"mode", "placement", "act"}, {"explain", "anyone"}, {"locations", "export"}, {"purge"}} {
		refused(t, 1, append(verb, "--nats", url), "no stream EVENTS", "penstock init")
	}
	refused(t, 1, []string{"init", "--nats", url, "--partitions", "3", "--check"}, "stream EVENTS: stream: have none")
	if _, err := js.Stream(t.Context(), "EVENTS"); err == nil {
		t.Error("a check has made streams")
	}
	if out := must(t, "init", "--nats", url, "--partitions", "3"); !strings.Contains(out, "1 replicas and 3 partitions") {
		t.Errorf("init: %s", out)
	}
	must(t, "init", "--nats", url, "--partitions", "3")
	must(t, "init", "--nats", url, "--partitions", "3", "--check")
	refused(t, 1, []string{"explain", "anyone", "--nats", url}, "nothing was decided yet")

	// Another number of partitions, and a stream that somebody has changed.
	other := configure(t, t.TempDir(), settings{4, 0.3})
	refused(t, 1, []string{"serve", "--nats", url, "--config", other, "--state", dir}, "have 3, want 4", "nothing was changed", "bus.partitions")
	refused(t, 1, []string{"init", "--nats", url, "--partitions", "4"}, "have 3, want 4")
	s, err := js.Stream(t.Context(), "WINDOWS")
	if err != nil {
		t.Fatal(err)
	}
	changed := s.CachedInfo().Config
	changed.MaxAge = time.Hour
	if _, err := js.UpdateStream(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	refused(t, 1, start, "stream WINDOWS", "have 1h0m0s, want 72h0m0s", "nothing was changed")
	refused(t, 1, []string{"init", "--nats", url, "--partitions", "3"}, "have 1h0m0s, want 72h0m0s")
	if s, err = js.Stream(t.Context(), "WINDOWS"); err != nil || s.CachedInfo().Config.MaxAge != time.Hour {
		t.Errorf("the stream was changed behind the operator's back: %v, %v", s.CachedInfo().Config.MaxAge, err)
	}
}

// TestServersThatCannotBeUsed: too old, nobody there, in use.
func TestServersThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := configure(t, dir, settings{1, 0.3})
	state := filepath.Join(dir, "state")
	old := oldServer(t)
	for _, verb := range [][]string{{"init"}, {"status"}, {"serve", "--config", cfg, "--state", state}} {
		refused(t, 1, append(verb, "--nats", old), "version 2.10.22, need 2.15.3 or later")
	}
	nobody := "nats://" + testserver.FreeAddress(t)
	refused(t, 1, []string{"status", "--nats", nobody}, "NATS at "+nobody, "no servers available")
	refused(t, 2, []string{"serve", "--config", cfg, "--nats", nobody, "--listen", "127.0.0.1:0", "--state", state}, "only an embedded one can")
	refused(t, 2, []string{"serve", "--config", cfg, "--roles", "aggregator,baker", "--state", state}, `role "baker"`)
	keyless := filepath.Join(dir, "keyless.yaml")
	writeFile(t, keyless, "sites:\n  - {name: a, lat: 1, lon: 2, capacity: 1MB/h}\n  - {name: b, lat: 3, lon: 4, capacity: 1MB/h}\n")
	refused(t, 2, []string{"serve", "--config", keyless, "--state", state}, "privacy.user_key")
	writeFile(t, keyless, "sites:\n  - {name: a, lat: 1, lon: 2, capacity: 1MB/h}\n  - {name: b, lat: 3, lon: 4, capacity: 1MB/h}\nprivacy: {user_key: k}\ntelemetry: {listen: \"\"}\nbus: {sync: interval}\n")
	refused(t, 1, []string{"serve", "--config", keyless, "--state", state}, "site a has no store")
	if _, err := os.Stat(filepath.Join(state, "bus")); err == nil {
		t.Error("a process that was refused has made a bus")
	}

	// A port that is taken ends the process, whatever it was told to wait for.
	taken := strings.TrimPrefix(old, "nats://")
	refused(t, 1, []string{"serve", "--config", cfg, "--listen", taken, "--state", filepath.Join(dir, "other")},
		"penstock: bus: cannot listen at "+taken+": ", "address already in use")

	// The folder of a process that runs is its own.
	s := serve(t, "--config", cfg, "--state", state)
	refused(t, 1, []string{"status", "--state", state}, "in use", "--listen")
	refused(t, 1, []string{"serve", "--config", cfg, "--state", state}, "in use")
	s.stop()
	must(t, "status", "--state", state)
	more := configure(t, t.TempDir(), settings{2, 0.3})
	refused(t, 1, []string{"serve", "--config", more, "--state", state}, "have 1, want 2", "nothing was changed")
}

// oldServer is the greeting of a NATS server of two years ago.
func oldServer(t testing.TB) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(c, "INFO {\"server_id\":\"OLD\",\"version\":\"2.10.22\",\"proto\":1,\"headers\":true,\"jetstream\":true,\"max_payload\":1048576}\r\n")
			lines := bufio.NewScanner(c)
			for lines.Scan() {
				if lines.Text() == "PING" {
					fmt.Fprint(c, "PONG\r\n")
				}
			}
			_ = c.Close() // The client is gone.
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "nats://" + l.Addr().String()
}

// TestPrefixesKeepTwoApart runs two Penstocks on one server: neither sees what is
// the other's.
func TestPrefixesKeepTwoApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url, _ := bare(t)
	crowds := map[string]*crowd{}
	for i, name := range []string{"blue", "green"} {
		must(t, "init", "--nats", url, "--prefix", name, "--partitions", fmt.Sprint(i+1))
		cfg := configure(t, t.TempDir(), settings{i + 1, 0.3})
		serve(t, "--nats", url, "--prefix", name, "--config", cfg, "--name", name, "--state", filepath.Join(dir, name))
		crowds[name] = gather(t, connect(t, url, name), 5+i)
	}
	must(t, "mode", "placement", "observe", "--nats", url, "--prefix", "green")
	blue, green := crowds["blue"], crowds["green"]
	blue.decision(blue.send("east"))
	green.decision(green.send("north"))
	b, g := blue.decision(blue.send("west")), green.decision(green.send("west"))
	if moves(b) != 5 || b.Mode != "advise" || moves(g) != 0 || g.Mode != "observe" {
		t.Errorf("blue: %d moves in %s; green: %d in %s", moves(b), b.Mode, moves(g), g.Mode)
	}
	for name, w := range crowds {
		settledRows(t, w)
		if total := checkAudit(t, w.c); total.Counted != w.rows || total.Received != w.rows {
			t.Errorf("%s: account %+v, sent %d", name, total, w.rows)
		}
	}
	refused(t, 1, []string{"status", "--nats", url, "--prefix", "red"}, "no stream red_EVENTS")
	refused(t, 1, []string{"status", "--nats", url}, "no stream EVENTS")
}

// settledRows waits until all rows that a crowd has sent are in the account.
func settledRows(t testing.TB, w *crowd) {
	t.Helper()
	for _, g := range []string{window.Owners, window.Fast} {
		eventually(t, "all rows to be in the account", func() bool {
			n := int64(0)
			for p := range w.c.Partitions() {
				m, err := w.c.Last(t.Context(), subject.WindowsStream, subject.Windows(g, p))
				if err != nil {
					return false
				}
				c, err := window.CommitOf(m.Header, m.Data)
				if err != nil {
					return false
				}
				n += c.Total.Received - c.Total.Duplicate
			}
			return n == w.rows
		})
	}
}

// TestAPartThatCannotGoOnEndsTheProcess: what only a person can mend is said, and
// the exit code is 1.
func TestAPartThatCannotGoOnEndsTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Listen = 1, "127.0.0.1:0" })
	c := bustest.Client(t, b)
	cfg := configure(t, dir, settings{1, 0.3})
	_, err := c.Publish(t.Context(), bus.Msg{
		Subject: subject.Windows(window.Owners, 0), Data: []byte("{}"), Header: map[string][]string{event.HeaderSchema: {"commit/99"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := launch(t, "--nats", b.URL(), "--config", cfg, "--state", filepath.Join(dir, "one"), "--roles", "aggregator")
	if code := s.code(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	said := s.errs.String()
	if why := "the last commit cannot be read"; !strings.Contains(said, "penstock: aggregator of owners: ") || !strings.Contains(said, why) {
		t.Errorf("expected the part and its reason in\n%s", said)
	}
	last := said[strings.LastIndex(said, "penstock: "):]
	if n := strings.Count(last, "the last commit cannot be read"); n != 1 {
		t.Errorf("the reason is given %d times:\n%s", n, last)
	}
	// Who does not read it goes on.
	other := serve(t, "--nats", b.URL(), "--config", cfg, "--state", filepath.Join(dir, "two"), "--roles", "executor")
	other.stop()
}

package haproxy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/consumers/executor/router/routertest"
	"penstock/infra/shares"
)

func put(t *testing.T, target *Target, epoch uint64, split ...float64) int {
	t.Helper()
	n, err := target.Put(t.Context(), routertest.Table(epoch, split...))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// process is the process of HAProxy that answers.
func (w *world) process() string {
	answer, err := w.target.client.ask(context.Background(), "show info")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(answer) {
		if len(line) > 4 && line[:4] == "Pid:" {
			return line
		}
	}
	return ""
}

// TestServersOfASite share the site's part; those that are down get none and are
// ready to come back.
func TestServersOfASite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put(t, w.target, 1, 0.5, 0.25, 0.25)
	weight := func() map[string]int {
		all, err := w.target.servers(t.Context(), w.target.of(func(b *Backend) bool { return b.Name == "search" }))
		if err != nil {
			t.Fatal(err)
		}
		n := map[string]int{}
		for name, s := range all["search"] {
			n[name] = s.weight
		}
		return n
	}
	if n := weight(); n["east-1"] != 256 || n["east-2"] != 256 || n["west-1"] != 256 {
		t.Errorf("weights %v", n)
	}
	if err := w.target.client.set(t.Context(), []string{"set server search/east-2 state maint"}); err != nil {
		t.Fatal(err)
	}
	put(t, w.target, 1, 0.5, 0.25, 0.25)
	if n := weight(); n["east-1"] != 256 || n["east-2"] != 256 || n["west-1"] != 128 {
		t.Errorf("with one server in maintenance: %v", n)
	}
	if got := w.send(routertest.Link, 80); got["east"] != 40 {
		t.Errorf("with one server in maintenance: %v", got)
	}
	if err := w.target.client.set(t.Context(), []string{"set server search/east-2 state ready"}); err != nil {
		t.Fatal(err)
	}
	put(t, w.target, 1, 0.5, 0.25, 0.25)
	if got := w.send(routertest.Link, 80); got["east"] != 40 {
		t.Errorf("with both: %v", got)
	}
}

// TestOverTCP asks the runtime API over TCP.
func TestOverTCP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if n := put(t, w.open("tcp:"+w.tcp), 1, 1, 0, 0); n == 0 {
		t.Error("nothing was changed")
	}
	if got := w.send(routertest.Link, 10); got["east"] != 10 {
		t.Errorf("then %v", got)
	}
}

// TestRefusals of HAProxy reject a table, whole.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := func(more ...string) map[string][]string {
		return map[string][]string{"east": append(more, "east-1"), "west": {"west-1"}}
	}
	open := func(backends ...Backend) *Target {
		target, err := New(Options{Address: w.socket, Backends: backends})
		if err != nil {
			t.Fatal(err)
		}
		return target
	}
	before := w.foreign()
	search := Backend{Name: "search", Link: routertest.Link, Servers: at()}
	fixed := Backend{Name: "static-x", Link: second, Servers: at()}
	none := Backend{Name: "nowhere", Link: second, Servers: at()}
	strange := Backend{Name: "cart", Link: second, Servers: map[string][]string{"east": {"other"}, "west": {"west-1"}}}
	table := routertest.Table(1, 0.25, 0, 0.75)
	two := table
	two.Rows = append(two.Rows, table.Rows[0])
	two.Rows[1].FromSite, two.Rows[1].To = second.FromSite, second.To
	writes := routertest.Table(1, 0.25, 0, 0.75)
	writes.Rows[0].WritesAt = "east"
	for name, tc := range map[string]struct {
		target *Target
		table  shares.Table
		err    error
	}{
		"weights that don't change": {open(search, fixed), two, ErrRefused},
		"no such backend":           {open(search, none), two, shares.ErrAbsent},
		"no such server":            {open(search, strange), two, shares.ErrAbsent},
		"a site for writes":         {open(search), writes, ErrWrites},
		"a level below admin":       {w.open(filepath.Join(w.folder, "low")), table, ErrRefused},
	} {
		put(t, w.target, 1, 0.5, 0.2, 0.3)
		if _, err := tc.target.Put(t.Context(), tc.table); !errors.Is(err, tc.err) || errors.Is(err, executor.ErrAgain) {
			t.Errorf("%s: %v, want %v", name, err, tc.err)
		}
		if n := put(t, w.target, 1, 0.5, 0.2, 0.3); n != 0 {
			t.Errorf("%s: %d weights are not as before", name, n)
		}
	}
	if after := w.foreign(); after != before {
		t.Errorf("foreign servers: before\n%s\nafter\n%s", before, after)
	}
	// A server that is named and isn't there is no reason to refuse the rest.
	more := open(Backend{Name: "search", Link: routertest.Link, Servers: at("east-9")})
	if _, err := more.Put(t.Context(), table); err != nil {
		t.Errorf("one server of two: %v", err)
	}
}

// TestWrites has the backend of writes follow the site for them.
func TestWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := map[string][]string{"east": {"east-1", "east-2"}, "north": {"north-1"}, "west": {"west-1"}}
	target, err := New(Options{Address: w.socket, Backends: []Backend{
		{Name: "search", Link: routertest.Link, Servers: at},
		{Name: "cart", Link: routertest.Link, Servers: at, Writes: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	table := routertest.Table(1, 1, 0, 0)
	table.Rows[0].WritesAt = "west"
	if _, err := target.Put(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	if reads, writes := w.send(routertest.Link, 10), w.send(second, 10); reads["east"] != 10 || writes["west"] != 10 {
		t.Errorf("reads %v, writes %v", reads, writes)
	}
	put(t, target, 2, 0, 1, 0)
	if writes := w.send(second, 10); writes["north"] != 10 {
		t.Errorf("without a site for writes: %v", writes)
	}
}

// TestDrainOfStickySessions gives them another server, and lets the request that
// runs come to its end.
func TestDrainOfStickySessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := map[string][]string{"east": {"east-1", "east-2"}, "north": {"north-1"}, "west": {"west-1"}}
	target, err := New(Options{Address: w.socket, Backends: []Backend{{Name: "sticky", Link: routertest.Link, Servers: at}}})
	if err != nil {
		t.Fatal(err)
	}
	site, cookie := w.get("/sticky", "")
	for range 5 {
		if again, _ := w.get("/sticky", cookie); again != site {
			t.Fatalf("a session at %s came to %s", site, again)
		}
	}
	var held string
	var release func()
	for {
		if held, release = w.hold("/sticky"); held == site {
			break
		}
		release()
	}
	short, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	replica := shares.Replica{Component: routertest.Search, Site: site}
	if n, err := target.Drain(short, replica); n != 1 || !errors.Is(err, shares.ErrRemaining) {
		t.Errorf("%d remaining, %v", n, err)
	}
	for range 10 {
		if again, _ := w.get("/sticky", cookie); again == site {
			t.Errorf("a session came to %s, which drains", again)
		}
	}
	release()
	if n, err := target.Drain(t.Context(), replica); n != 0 || err != nil {
		t.Errorf("%d remaining, %v", n, err)
	}
}

// TestStateFile that can't be written is no reason to doubt a table, and is
// written as soon as it can be.
func TestStateFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder := filepath.Join(t.TempDir(), "later")
	c := &counts{}
	w.target.o.StateFile, w.target.o.Metrics = filepath.Join(folder, "servers"), c
	put(t, w.target, 1, 1, 0, 0)
	put(t, w.target, 1, 1, 0, 0)
	if n := c.n.Load(); n != 2 {
		t.Errorf("%d failures were counted", n)
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, w.target, 1, 1, 0, 0)
	b, err := os.ReadFile(w.target.o.StateFile)
	if err != nil {
		t.Fatal(err)
	}
	servers, err := parseState(string(b))
	if err != nil || len(servers) < 12 {
		t.Errorf("%d servers, %v", len(servers), err)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

type counts struct{ n atomic.Int64 }

func (c *counts) Count(k executor.Counter, reason string, n int64) {
	if k == StateFile && reason == "write" {
		c.n.Add(n)
	}
}

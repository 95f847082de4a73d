package haproxy

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor"
	"penstock/consumers/executor/router"
	"penstock/consumers/executor/router/routertest"
	"penstock/infra/shares"
	"penstock/infra/testserver"
	"penstock/schemas/control"
)

func put(t *testing.T, target *Target, epoch uint64, split ...float64) int {
	t.Helper()
	n, err := target.Put(t.Context(), routertest.Table(epoch, split...))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestUnderLoad is what issue 5 asks of HAProxy, with wrk at it: weights in force
// within a second, exact to their resolution, foreign servers untouched, a drain and
// a reload that lose no request, and a state that outlives the reload.
func TestUnderLoad(t *testing.T) {
	w := newWorld(t)
	put(t, w.target, 1, 1./3, 1./3, 1./3)
	foreign := w.foreign()
	var load testserver.Loaded
	var loading sync.WaitGroup
	var enough atomic.Bool
	loading.Go(func() {
		for !enough.Load() {
			l := testserver.Wrk(t, testserver.Load{URL: "http://" + w.proxy.Address + "/slow", Threads: 1, Connections: 8, Duration: time.Second})
			load = testserver.Loaded{Requests: load.Requests + l.Requests, Failed: load.Failed + l.Failed, P99: max(load.P99, l.P99)}
		}
	})
	served := func() map[string]int64 {
		n := map[string]int64{}
		for site, c := range w.served {
			n[site] = c.Load()
		}
		return n
	}
	// since waits for some requests and returns each site's part of them.
	since := func(before map[string]int64) map[string]float64 {
		late := time.Now().Add(30 * time.Second)
		for {
			sum, parts := 0.0, map[string]float64{}
			for site, n := range served() {
				parts[site] = float64(n - before[site])
				sum += parts[site]
			}
			if sum >= 400 || time.Now().After(late) {
				for site := range parts {
					parts[site] /= sum
				}
				return parts
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	for served()["west"] == 0 {
		time.Sleep(time.Millisecond)
	}
	for epoch, split := range [][]float64{{0.62, 0, 0.38}, {0.1, 0.8, 0.1}, {0.2, 0.3, 0.5}} {
		began := time.Now()
		put(t, w.target, uint64(epoch+2), split...)
		inForce := time.Since(began)
		rows, err := w.target.Observe(t.Context(), routertest.Frontend)
		if err != nil || inForce > time.Second {
			t.Errorf("in force after %v, %v", inForce, err)
		}
		before := served()
		parts := since(before)
		t.Logf("epoch %d in force after %v; requests %v", epoch+2, inForce.Round(100*time.Microsecond), parts)
		for i, site := range routertest.Sites {
			if off := math.Abs(share(rows, site) - split[i]); off > 1./256 {
				t.Errorf("epoch %d: %s has %v, not %v", epoch+2, site, share(rows, site), split[i])
			}
			// 8 requests were on their way, and rounding.
			if off := math.Abs(parts[site] - split[i]); off > 0.035 {
				t.Errorf("epoch %d: %s got %v of the requests, not %v", epoch+2, site, parts[site], split[i])
			}
		}
	}
	if after := w.foreign(); after != foreign {
		t.Errorf("foreign servers: before\n%s\nafter\n%s", foreign, after)
	}
	if n, err := w.target.Drain(t.Context(), shares.Replica{Component: routertest.Search, Site: "north"}); n != 0 || err != nil {
		t.Errorf("drain: %d remaining, %v", n, err)
	}
	drained := served()
	if parts := since(drained); parts["north"] != 0 {
		t.Errorf("a drained site got %v of the requests", parts["north"])
	}
	reload(t, w)
	reloaded := served()
	parts := since(reloaded)
	if parts["north"] != 0 || math.Abs(parts["west"]-5./7) > 0.05 {
		t.Errorf("after a reload: %v", parts)
	}
	enough.Store(true)
	loading.Wait()
	if load.Failed > 0 || load.Requests < 500 {
		t.Errorf("load: %+v", load)
	}
	t.Logf("%d requests, %d failed, p99 %v", load.Requests, load.Failed, load.P99)
	if n := put(t, w.target, 4, 0.2, 0.3, 0.5); n != 0 {
		t.Errorf("a reload changed %d weights", n)
	}
}

func share(rows []shares.Row, site string) float64 {
	for _, row := range rows {
		for _, ratio := range row.Ratios {
			if row.To == routertest.Search && ratio.Site == site {
				return ratio.Share
			}
		}
	}
	return math.NaN()
}

// reload has HAProxy read its configuration anew, in a new process, and returns
// when that one answers.
func reload(t *testing.T, w *world) {
	t.Helper()
	before := w.process()
	pid, err := w.proxy.PID()
	if err != nil {
		t.Fatal(err)
	}
	// A signal that comes while HAProxy is still at its last reload is lost.
	var sent time.Time
	w.await(func(map[string]map[string]*server) bool {
		if now := w.process(); now != before && now != "" {
			return true
		}
		if time.Since(sent) > 700*time.Millisecond {
			sent = time.Now()
			if err := syscall.Kill(pid, syscall.SIGUSR2); err != nil {
				t.Fatal(err)
			}
		}
		return false
	})
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

// TestReload keeps weights with a state file; without one the keeper sets them
// again.
func TestReload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put(t, w.target, 1, 0.62, 0, 0.38)
	reload(t, w)
	if n := put(t, w.target, 1, 0.62, 0, 0.38); n != 0 {
		t.Errorf("a reload with a state file changed %d weights", n)
	}
	if err := os.Remove(w.stateFile); err != nil {
		t.Fatal(err)
	}
	w.target.o.StateFile = ""
	reload(t, w)
	k, err := router.NewKeeper(router.KeeperOptions{
		Target: w.target, Every: 20 * time.Millisecond, Logger: zerolog.New(zerolog.NewTestWriter(t)),
		History:  func(context.Context, func(*control.Command, time.Time) error) error { return nil },
		Defaults: []shares.Table{routertest.Table(0, 0.62, 0, 0.38)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Resume(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- k.Run(ctx) }()
	reload(t, w)
	w.await(func(all map[string]map[string]*server) bool {
		s := all["search"]
		return s["north-1"].weight == 0 && s["east-1"].weight > s["west-1"].weight*3/4
	})
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
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

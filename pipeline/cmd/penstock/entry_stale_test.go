package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
	"penstock/pipeline/demo/ledger"
	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/notes"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// allStaleClients moves a hundred owners under readers and writers who call the
// site that they knew: the first one for ever, the one of some answer long ago, or
// what the redirector last said. Each answer takes at most one hop, or one 307
// where entry points redirect, during the moves and after them; and what was
// acknowledged is at the live site once.
func allStaleClients(t *testing.T) {
	for _, answer := range []string{"forward", "redirect"} {
		t.Run(answer, func(t *testing.T) { staleClients(t, answer) })
	}
}

func staleClients(t *testing.T, answer string) {
	owners, callers, rate, pause := 100, 24, 300.0, 10*time.Millisecond
	if whole {
		callers, rate, pause = 48, 2000, 200*time.Millisecond
	}
	e := newFront(t, frontOptions{entry: "  answer: " + answer + "\n"})
	for _, s := range frontSites {
		start(t, "demo", "notes", "--site", s, "--store", e.store(s), "--listen", e.services[s])
		e.healthy("http://" + e.services[s] + "/health")
	}
	w := newWanderers(e, owners)
	e.serve()
	must(t, "locations", "import", "--from-stores", "--config", e.config, "--nats", e.nats())
	e.enter(frontSites...)
	e.part("redirector", "--config", e.config, "--nats", e.nats(), "--name", "redirector", "--state", e.dir+"/redirector").awaitReady(true)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var calling sync.WaitGroup
	for n := range callers {
		c := newWanderer(w, n, time.Duration(float64(callers)/rate*float64(time.Second)))
		calling.Go(func() { c.run(ctx) })
	}
	moves := w.move(connect(t, e.nats(), ""), pause)
	time.Sleep(time.Second) // of calls after the last move
	stop()
	calling.Wait()
	w.judge(moves, answer)
	w.inStores()
	for _, s := range frontSites {
		e.entries[s].stop()
	}
	e.server.stop()
}

// healthy waits until somebody answers 200 at an address.
func (e *front) healthy(url string) {
	e.t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	eventually(e.t, url+" to answer", func() bool {
		resp, err := client.Get(url)
		if err != nil {
			return false
		}
		return errors.Join(resp.Body.Close()) == nil && resp.StatusCode == http.StatusOK
	})
}

// wanderers are owners whose data moves about, and what is known of it.
type wanderers struct {
	e      *front
	owners []string
	homes  []string // where each one's data is at the beginning
	books  *ledger.Ledger
	ids    atomic.Uint64

	mu      sync.Mutex
	moving  map[string][][2]int64 // when moves of an owner were under way, µs; 0 for one that is
	answers []journey
	faults  []string
}

// journey is one answered request.
type journey struct {
	owner     string
	from, to  int64 // µs
	write     bool
	hops      int
	redirects int    // 307 of entry points
	behind    uint64 // versions by which the caller's knowledge was old
}

func newWanderers(e *front, n int) *wanderers {
	w := &wanderers{e: e, books: ledger.New(), moving: map[string][][2]int64{}}
	for i := range n {
		owner, home := fmt.Sprintf("wanderer-%d", i), frontSites[i%len(frontSites)]
		w.owners, w.homes = append(w.owners, owner), append(w.homes, home)
		w.books.Owner(owner)
		st, err := dir.Open(e.store(home), dir.Options{NoSync: true})
		if err == nil {
			err = notes.Create(e.t.Context(), st, owner)
		}
		if err != nil {
			e.t.Fatal(err)
		}
	}
	return w
}

func (w *wanderers) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// move has each owner's data moved, some to and fro, a few at a time, and returns
// how many moves there were when all are done.
func (w *wanderers) move(c *bus.Client, pause time.Duration) (total int) {
	t := w.e.t
	t.Helper()
	kv, err := locations.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var epoch atomic.Uint64
	next := make(chan int)
	var movers sync.WaitGroup
	for range 3 {
		movers.Go(func() {
			for i := range next {
				w.wander(c, kv, i, &epoch, pause)
			}
		})
	}
	for i := range w.owners {
		total += journeys(i)
		next <- i
	}
	close(next)
	movers.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return total
}

// journeys is how often an owner moves.
func journeys(i int) int {
	if i%10 == 0 {
		return 5 // to and fro: who knows the first place is many versions behind
	}
	return 1
}

// wander moves one owner, each time when the move before is done.
func (w *wanderers) wander(c *bus.Client, kv *locations.KV, i int, epoch *atomic.Uint64, pause time.Duration) {
	t, owner, at := w.e.t, w.owners[i], slices.Index(frontSites, w.homes[i])
	l, _, err := kv.Get(t.Context(), owner)
	if err != nil {
		t.Errorf("location of %s: %v", owner, err)
		return
	}
	version := l.Version
	for j := range journeys(i) {
		to := (at + 1 + j%2) % len(frontSites)
		if i%20 == 0 {
			to = (at + 1) % 2 // between two sites only
		}
		from, dest := frontSites[at], frontSites[to]
		version++
		now := time.Now().UTC()
		body, err := control.Encode(&control.Command{
			Version: 1, Kind: control.Placement, Scope: dest, Epoch: epoch.Add(1), Mode: control.Act, TTL: "10m",
			Window: control.Window{Start: now.Truncate(time.Hour), End: now.Truncate(time.Hour).Add(time.Hour)}, Reason: control.Reason{Code: "Test"},
			Placement: &control.Moves{Moves: []control.Move{{Owner: owner, From: from, To: dest, Version: version}}},
		})
		if err != nil {
			t.Error(err)
			return
		}
		w.begins(owner)
		if _, err := c.Publish(t.Context(), bus.Msg{Subject: subject.Commands("placement", dest), Data: body}); err != nil {
			t.Error(err)
			return
		}
		for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
			if l, _, err = kv.Get(t.Context(), owner); err == nil && l.Version == version && l.Site == dest {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("move %d of %s from %s to %s: is %+v, %v", version, owner, from, dest, l, err)
				return
			}
		}
		w.ends(owner)
		at = to
		time.Sleep(pause)
	}
}

func (w *wanderers) begins(owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moving[owner] = append(w.moving[owner], [2]int64{time.Now().UnixMicro(), 0})
}

func (w *wanderers) ends(owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moving[owner][len(w.moving[owner])-1][1] = time.Now().UnixMicro()
}

// news is how long a word may take from the bus to an entry point.
const news = time.Second

// moved reports whether the data of a request was on its way meanwhile, or a
// moment before.
func (w *wanderers) moved(a *journey) bool {
	return slices.ContainsFunc(w.moving[a.owner], func(m [2]int64) bool {
		return a.to >= m[0] && (m[1] == 0 || a.from <= m[1]+news.Microseconds())
	})
}

// judge looks at all answers.
func (w *wanderers) judge(moves int, answer string) {
	t := w.e.t
	t.Helper()
	for i, f := range w.faults {
		if i == 5 {
			t.Errorf("and %d more", len(w.faults)-i)
			break
		}
		t.Error(f)
	}
	var all, direct, extra load.Latencies
	behind, twice, during := uint64(0), 0, 0
	for i := range w.answers {
		a := &w.answers[i]
		took := time.Duration(a.to-a.from) * time.Microsecond
		all = append(all, took)
		if a.hops+a.redirects == 0 {
			direct = append(direct, took)
		} else {
			extra = append(extra, took)
		}
		moving := w.moved(a)
		if moving {
			during++
		}
		behind = max(behind, a.behind)
		if a.hops > 1 || answer == "forward" && a.redirects > 0 {
			t.Errorf("%s: %d hops, %d redirects", a.owner, a.hops, a.redirects)
		}
		// Who is sent on to data that moves away before the request is there is sent
		// on once more.
		if a.hops+a.redirects > 1 {
			if twice++; !moving {
				t.Errorf("%s, which did not move: %d hops, %d redirects", a.owner, a.hops, a.redirects)
			}
		}
	}
	for _, l := range []load.Latencies{all, direct, extra} {
		slices.Sort(l)
	}
	t.Logf("%d answers over %d moves, %d of them while their data moved; %d with a hop or a 307, %d with two; up to %d versions behind; p99 direct %v, with one more hop %v, longest %v",
		len(all), moves, during, len(extra), twice, behind, direct.Quantile(0.99), extra.Quantile(0.99), all.Quantile(1))
	if behind < 4 || during == 0 || len(extra) == 0 {
		t.Errorf("of %d answers %d were given while data moved, %d took another hop, and the oldest knowledge was %d versions old: too few to show anything", len(all), during, len(extra), behind)
	}
}

// inStores compares the books with what the stores hold.
func (w *wanderers) inStores() {
	t := w.e.t
	t.Helper()
	table, err := locations.Open(t.Context(), connect(t, w.e.nats(), ""))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]ledger.Copy{}
	for _, site := range frontSites {
		st, err := dir.Open(w.e.store(site), dir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Owners(t.Context(), func(owner string, m objectstore.Mark) error {
			c := ledger.Copy{Site: site, Live: m.Writable()}
			all, err := notes.All(t.Context(), st, owner)
			for _, n := range all {
				c.Notes = append(c.Notes, n.ID)
			}
			found[owner] = append(found[owner], c)
			l, _, getErr := table.Get(t.Context(), owner)
			if c.Live && l.Site != site {
				t.Errorf("%s is live at %s, its location is %+v", owner, site, l)
			}
			return cmp.Or(err, getErr)
		}); err != nil {
			t.Fatal(err)
		}
	}
	v := w.books.Check(found)
	for _, f := range v.Faults {
		t.Error(f)
	}
	t.Logf("%d writes acknowledged of %d, %d found", v.Acknowledged, v.Sent, v.Found)
	if v.Acknowledged == 0 || v.Unknown > 0 {
		t.Errorf("%d writes were acknowledged, %d never answered", v.Acknowledged, v.Unknown)
	}
}

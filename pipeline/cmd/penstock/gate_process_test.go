package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// TestServicesThatKnowNothingOfMoves moves owners whose service writes plainly into
// its folders, whatever marks and locks are there, under writes that never cease:
// with entry.barrier: always no write that was acknowledged is lost. While an entry
// point is dead no move from its site is made, by name, until it is back or an
// operator has it forgotten.
func TestServicesThatKnowNothingOfMoves(t *testing.T) {
	moves := 4 // of each owner
	if whole {
		moves = 40
	}
	p := &plain{t: t, roots: map[string]string{}, acknowledged: map[string][]string{}}
	e := newFront(t, frontOptions{services: p.serve(), entry: "  barrier: always\n  unknown: site:east\n"})
	for _, s := range frontSites {
		p.roots[s] = e.store(s)
	}
	owners := []string{"ann", "ben", "cem", "dee", "eva", "fay"}
	for _, owner := range owners {
		if err := p.write("east", owner, "begun"); err != nil {
			t.Fatal(err)
		}
	}
	e.serve()
	must(t, "locations", "import", "--from-stores", "--config", e.config, "--nats", e.nats())
	e.enter(frontSites...)
	o := newOrders(e)

	stop := p.begin(e, owners)
	var moving sync.WaitGroup
	for _, owner := range owners {
		moving.Go(func() {
			for j := range moves {
				o.move(owner, frontSites[(j+1)%len(frontSites)])
			}
		})
	}
	moving.Wait()
	stop()
	if n := p.failed.Load(); n > 0 {
		t.Errorf("%d writes failed, the first: %v", n, p.fault)
	}
	total := p.judge(o)
	waited := 0
	for _, s := range frontSites {
		waited += e.entries[s].count("penstock_store_events_total", `what="waited"`)
	}
	t.Logf("%d moves, %d writes acknowledged, %d of them waited for a move", o.made.Load(), total, waited)
	if total < 5*int(o.made.Load()) || waited == 0 {
		t.Errorf("%d writes over %d moves, %d of them waited: too few to show anything", total, o.made.Load(), waited)
	}

	// A dead entry point: who knows what it still lets in?
	stop = p.begin(e, owners)
	o.aDeadOne()
	stop()
	p.judge(o)
}

// aDeadOne kills entry points: no move from their sites is made until they are back,
// or forgotten.
func (o *orders) aDeadOne() {
	e, t := o.e, o.e.t
	site := o.at("ann")
	name := "entry-" + site
	if out := must(t, "entries", "list", "--nats", e.nats()); strings.Count(out, "answers") != 3 {
		t.Errorf("all live: %s", out)
	}
	if out, errs, code := command(t, "entries", "forget", site, name, "--nats", e.nats()); code != 2 || !strings.Contains(errs, "answers") {
		t.Errorf("forgetting one that lives: %d, %s%s", code, out, errs)
	}
	e.entries[site].kill()
	if why := o.refused("ann", other(site)); !strings.Contains(why, "entry-silent: "+name) {
		t.Errorf("a move from the site of a dead entry point: %s", why)
	}
	if out := must(t, "entries", "list", "--nats", e.nats()); strings.Count(out, "silent") != 1 {
		t.Errorf("one is dead: %s", out)
	}
	e.enter(site)
	o.move("ann", other(site))

	site = o.at("ben")
	e.entries[site].kill()
	if out := must(t, "entries", "forget", site, "entry-"+site, "--nats", e.nats()); !strings.Contains(out, "forgotten") {
		t.Errorf("forget: %s", out)
	}
	if _, errs, code := command(t, "entries", "forget", site, "entry-"+site, "--nats", e.nats()); code != 2 || !strings.Contains(errs, "no entry point") {
		t.Errorf("forgetting one that is not there: %d, %s", code, errs)
	}
	o.move("ben", other(site))
}

// other is a site that is not the given one.
func other(site string) string {
	return frontSites[(slices.Index(frontSites, site)+1)%len(frontSites)]
}

// plain is a service that knows nothing of Penstock: it appends what comes to a
// file of the owner, at whatever site it is asked.
type plain struct {
	t     testing.TB
	roots map[string]string // folders, by site

	clients uint64
	failed  atomic.Int64

	mu           sync.Mutex
	acknowledged map[string][]string // ids, by owner
	fault        error
}

// serve starts it at each site, and returns the addresses.
func (p *plain) serve() map[string]string {
	at := map[string]string{}
	for _, site := range frontSites {
		mux := http.NewServeMux()
		mux.HandleFunc("POST /u/{owner}/notes", func(w http.ResponseWriter, r *http.Request) {
			id, err := io.ReadAll(r.Body)
			if err == nil {
				time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond) // A write takes its time.
				err = p.write(site, r.PathValue("owner"), string(id))
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
		server := httptest.NewServer(mux)
		p.t.Cleanup(server.Close)
		at[site] = server.Listener.Addr().String()
	}
	return at
}

func (p *plain) file(site, owner string) string {
	return filepath.Join(p.roots[site], owner, "notes")
}

func (p *plain) write(site, owner, id string) error {
	name := p.file(site, owner)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(id + "\n")
	return errors.Join(err, f.Close())
}

func (p *plain) read(site, owner string) string {
	b, err := os.ReadFile(p.file(site, owner))
	if err != nil {
		p.t.Error(err)
	}
	return string(b)
}

// begin has each owner written to through whatever entry point, by two clients,
// until stop.
func (p *plain) begin(e *front, owners []string) (stop func()) {
	ctx, cancel := context.WithCancel(p.t.Context())
	var writing sync.WaitGroup
	for _, owner := range owners {
		for range 2 {
			p.clients++
			seed := p.clients
			writing.Go(func() { p.keepWriting(ctx, e, owner, seed) })
		}
	}
	return func() {
		cancel()
		writing.Wait()
	}
}

func (p *plain) keepWriting(ctx context.Context, e *front, owner string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	client := &http.Client{Timeout: callTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	for n := 0; ctx.Err() == nil; n++ {
		id := fmt.Sprintf("%d-%d", seed, n)
		err := p.post(client, e.urls[frontSites[rng.IntN(len(frontSites))]]+"/u/"+owner+"/notes", id)
		pause := time.Duration(rng.IntN(5)) * time.Millisecond
		p.mu.Lock()
		if err == nil {
			p.acknowledged[owner] = append(p.acknowledged[owner], id)
		} else {
			p.failed.Add(1)
			p.fault = cmp.Or(p.fault, err)
			pause += 50 * time.Millisecond
		}
		p.mu.Unlock()
		time.Sleep(pause)
	}
}

// judge looks for all that was acknowledged where it must be now, and counts it.
func (p *plain) judge(o *orders) (total int) {
	p.t.Helper()
	for owner, ids := range p.acknowledged {
		site := o.at(owner)
		have := map[string]bool{}
		for id := range strings.SplitSeq(p.read(site, owner), "\n") {
			have[id] = true
		}
		total += len(ids)
		for _, id := range ids {
			if !have[id] {
				p.t.Errorf("%s: write %s was acknowledged and is not at %s", owner, id, site)
			}
		}
	}
	return total
}

func (p *plain) post(client *http.Client, url, id string) error {
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, url, strings.NewReader(id))
	if err != nil {
		return err
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	b, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d %.200s", url, resp.StatusCode, b)
	}
	return err
}

// orders are moves that the test commands, as the decider would.
type orders struct {
	e     *front
	c     *bus.Client
	kv    *locations.KV
	epoch atomic.Uint64
	made  atomic.Int64

	mu      sync.Mutex
	version map[string]uint64 // last that was commanded, by owner
}

func newOrders(e *front) *orders {
	c := connect(e.t, e.nats(), "")
	kv, err := locations.Open(e.t.Context(), c)
	if err != nil {
		e.t.Fatal(err)
	}
	return &orders{e: e, c: c, kv: kv, version: map[string]uint64{}}
}

// at is where an owner is.
func (o *orders) at(owner string) string {
	l, _, err := o.kv.Get(o.e.t.Context(), owner)
	if err != nil {
		o.e.t.Errorf("location of %s: %v", owner, err)
	}
	return l.Site
}

// command orders a move, and returns its version.
func (o *orders) command(owner, to string) uint64 {
	t := o.e.t
	o.mu.Lock()
	o.version[owner]++
	version := o.version[owner]
	o.mu.Unlock()
	end := time.Now().UTC().Truncate(time.Hour).Add(time.Hour)
	body, err := control.Encode(&control.Command{
		Version: 1, Kind: control.Placement, Scope: to, Epoch: o.epoch.Add(1), Mode: control.Act, TTL: "10m",
		Window: control.Window{Start: end.Add(-time.Hour), End: end}, Reason: control.Reason{Code: "Test"},
		Placement: &control.Moves{Moves: []control.Move{{Owner: owner, From: o.at(owner), To: to, Version: version}}},
	})
	if err == nil {
		_, err = o.c.Publish(t.Context(), bus.Msg{Subject: subject.Commands(string(control.Placement), to), Data: body})
	}
	if err != nil {
		t.Error(err)
	}
	return version
}

// move has an owner moved.
func (o *orders) move(owner, to string) {
	from, version := o.at(owner), o.command(owner, to)
	var l control.Location
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var err error
		if l, _, err = o.kv.Get(o.e.t.Context(), owner); err == nil && l.Version == version && l.Site == to {
			o.made.Add(1)
			return
		}
	}
	o.e.t.Errorf("move %d of %s from %s to %s: is %+v", version, owner, from, to, l)
}

// refused orders a move that must not be made, and returns the mover's answer.
func (o *orders) refused(owner, to string) (why string) {
	from, version := o.at(owner), o.command(owner, to)
	eventually(o.e.t, "the move to be answered", func() bool {
		each(o.e.t, o.c, subject.OutcomesStream, func(m bus.Msg) {
			if a, err := control.DecodeOutcome(m.Data); err == nil && a.Owner == owner && a.Move == version {
				why = fmt.Sprintf("%s: %s", a.Status, m.Data)
			}
		})
		return why != ""
	})
	if at := o.at(owner); at != from {
		o.e.t.Errorf("%s is at %s, it was at %s", owner, at, from)
	}
	return why
}

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"penstock/consumers/executor/locations"
	"penstock/consumers/executor/mover/movertest"
	"penstock/infra/bus"
	"penstock/infra/objectstore"
	"penstock/infra/testserver"
	"penstock/pipeline/config"
	"penstock/pipeline/topology"
	"penstock/schemas/event"
)

// backends are the kinds of stores.
var backends = []string{"dir", "jetstream", "postgres", "s3"}

// estate is a number of sites on real stores of all kinds.
type estate struct {
	t       testing.TB
	config  string // file
	sites   []string
	backend map[string]string // by site
	places  map[string][2]float32
	sql     map[string]*pgxpool.Pool // of sites on postgres
	stores  map[string]objectstore.Store
	writers map[string]movertest.Writer
	table   locations.Table // of where owners are
}

// credentialsName is that of the environment's variables with the keys of the S3
// server, which is one for the whole test binary.
const credentialsName = "STORES_TEST"

// build makes so many sites on each kind of store, called dir-1, dir-2 and so on,
// and writes their configuration.
func build(t testing.TB, dir string, each int, deleteAfter time.Duration) *estate {
	t.Helper()
	e := &estate{
		t: t, config: filepath.Join(dir, "penstock.yaml"), backend: map[string]string{}, places: map[string][2]float32{},
		sql: map[string]*pgxpool.Pool{}, writers: map[string]movertest.Writer{},
	}
	gateway := testserver.VersityGW(t)
	for name, value := range map[string]string{"_ACCESS_KEY_ID": gateway.AccessKey, "_SECRET_ACCESS_KEY": gateway.SecretKey} {
		if err := os.Setenv(credentialsName+name, value); err != nil { // The processes have it too.
			t.Fatal(err)
		}
	}
	bucket := gateway.Bucket(t)
	address := map[string]func(site string) string{
		"dir":       func(site string) string { return "dir:" + filepath.Join(dir, "stores", site) },
		"jetstream": func(site string) string { return "jetstream:of-" + site },
		"postgres":  func(site string) string { return e.database(site) },
		"s3": func(site string) string {
			return fmt.Sprintf("s3://%s/%s?endpoint=%s&region=%s&credentials=%s", bucket, site, url.QueryEscape(gateway.Endpoint), gateway.Region, credentialsName)
		},
	}
	var text strings.Builder
	text.WriteString("sites:\n")
	for i := range each {
		for k, b := range backends {
			site := fmt.Sprintf("%s-%d", b, i+1)
			e.sites = append(e.sites, site)
			e.backend[site], e.places[site] = b, [2]float32{float32(30 + 5*i), float32(-120 + 30*k)}
			fmt.Fprintf(&text, "  - {name: %s, lat: %v, lon: %v, capacity: 100MB/h, store: %q}\n", site, e.places[site][0], e.places[site][1], address[b](site))
		}
	}
	fmt.Fprintf(&text, `
placement: {policy: tmatch, alpha: 0.3, beta: 0.7, delete_after: %s}
stores: {postgres: {tables: [{name: posts, owner: owner}, {name: threads, owner: owner}]}}
bus: {partitions: 2, sync: interval, flush: 100ms}
privacy: {user_key: "only for this test"}
telemetry: {listen: "127.0.0.1:0"}
`, deleteAfter)
	writeFile(t, e.config, text.String())
	return e
}

// database makes a site's database with an application's tables and returns its
// address.
func (e *estate) database(site string) string {
	e.t.Helper()
	address := testserver.Postgres(e.t)
	pool, err := pgxpool.New(e.t.Context(), address)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(pool.Close)
	if _, err := pool.Exec(e.t.Context(), tables); err != nil {
		e.t.Fatal(err)
	}
	e.sql[site] = pool
	return address
}

// open opens the stores as the configuration names them, those on the bus by the
// client, and makes an application's client of each.
func (e *estate) open(c *bus.Client) {
	e.t.Helper()
	cfg, err := config.Load(e.config)
	if err != nil {
		e.t.Fatal(err)
	}
	s, err := topology.ConfiguredStores(e.t.Context(), cfg, c, zerolog.Nop())
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			e.t.Errorf("close the stores: %v", err)
		}
	})
	if e.table, err = locations.Open(e.t.Context(), c); err != nil {
		e.t.Fatal(err)
	}
	e.stores = s
	for site, store := range s {
		if pool := e.sql[site]; pool != nil {
			e.writers[site] = sqlPosts{pool}
		} else {
			e.writers[site] = objectPosts{store}
		}
	}
}

// letters are objects of an owner that never change: a small one, an empty one
// and one of several reads.
func letters(owner string) map[string][]byte {
	return map[string][]byte{
		"letters/1": content(owner), "letters/empty": {}, "letters/of/last year": bytes.Repeat(content(owner), 120),
	}
}

// filled is how many posts an owner has to begin with.
const filled = 3

// fill puts an owner's data at a site, rows and other objects, through the store.
func (e *estate) fill(site, owner string) {
	e.t.Helper()
	objects := letters(owner)
	objects[threadsObject], objects[postsObject] = []byte(threadsOf(owner)), []byte(postsHeader)
	for n := range uint64(filled) {
		objects[postsObject] = append(objects[postsObject], postLine(owner, n+1)...)
	}
	// Rows that others refer to first: their names are so that order does it.
	for _, name := range []string{threadsObject, postsObject, "letters/1", "letters/empty", "letters/of/last year"} {
		e.put(site, owner, name, objects[name])
	}
}

func (e *estate) put(site, owner, name string, body []byte) {
	e.t.Helper()
	if _, err := e.stores[site].Put(e.t.Context(), owner, name, bytes.NewReader(body), objectstore.Mark{}); err != nil {
		e.t.Fatalf("%s of %s at %s: %v", name, owner, site, err)
	}
}

// whole sees that a site has all of an owner's data: what never changed, by
// digest, and all posts from the first to at least the last one that was
// acknowledged, in order.
func (e *estate) whole(site, owner string, acknowledged uint64) {
	e.t.Helper()
	m, err := e.stores[site].Stat(e.t.Context(), owner)
	if err != nil || !m.Writable() {
		e.t.Errorf("%s at %s: the copy is %s, %v", owner, site, m, err)
	}
	for name, want := range letters(owner) {
		got, err := e.stores[site].Digest(e.t.Context(), owner, name)
		if want := fmt.Sprintf("%x", sha256.Sum256(want)); err != nil || got != want {
			e.t.Errorf("%s at %s: %s has digest %s, not %s: %v", owner, site, name, got, want, err)
		}
	}
	got, err := e.writers[site].Read(e.t.Context(), owner)
	if err != nil {
		e.t.Errorf("read %s at %s: %v", owner, site, err)
	}
	for i, n := range got {
		if n != uint64(i+1) {
			e.t.Errorf("%s at %s: post %d is number %d", owner, site, i+1, n)
			break
		}
	}
	// One more may be there: a write that ended with its writer.
	if n := uint64(len(got)); n != acknowledged && n != acknowledged+1 {
		e.t.Errorf("%s at %s: %d posts, %d were acknowledged", owner, site, n, acknowledged)
	}
}

// copies returns where an owner has copies.
func (e *estate) copies(owner string) map[string]objectstore.Mark {
	e.t.Helper()
	out := map[string]objectstore.Mark{}
	for site, s := range e.stores {
		m, err := s.Stat(e.t.Context(), owner)
		if err != nil {
			e.t.Fatalf("%s at %s: %v", owner, site, err)
		}
		if m.State != objectstore.Absent {
			out[site] = m
		}
	}
	return out
}

// sendTo sends the requests of one window, in which each owner and all who ask
// for its data are at the place of a site, and waits until the bus has them.
func (w *crowd) sendTo(e *estate, to map[string]string) time.Time {
	w.t.Helper()
	end, acked := w.offerTo(e, to)
	if err := <-acked; err != nil {
		w.t.Fatal(err)
	}
	return end
}

// offerTo is sendTo for who does not wait: a bus that dies with what it was told has
// the requests once it is back, and then acked answers.
func (w *crowd) offerTo(e *estate, to map[string]string) (end time.Time, acked <-chan error) {
	w.t.Helper()
	start := epoch + int64(w.window)*hour
	for i := range w.owners {
		owner := ownerName(i)
		place := e.places[to[owner]]
		for j := range 3 {
			r := event.NewRequest(start + int64(3*i+j)*1000)
			r.Owner, r.User = owner, owner
			if j > 0 {
				r.User = fmt.Sprintf("reader %d of %s", j, owner)
			}
			r.ToSite, r.Lat, r.Lon, r.Bytes, r.Status = w.at[owner], place[0], place[1], 1000, 200
			if err := w.p.Send(w.t.Context(), &r); err != nil {
				w.t.Fatal(err)
			}
			w.rows++
		}
	}
	w.window++
	upto := start + hour
	w.p.Horizon(upto)
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(w.t.Context(), 3*patience)
		defer cancel()
		done <- w.p.Barrier(ctx, upto)
	}()
	return time.UnixMicro(upto).UTC(), done
}

// follow writes posts of an owner one after the other, at a rate, wherever the
// owner is, until ctx ends, and returns the number of the last one that was
// acknowledged. Whatever goes wrong is tried again: stores and processes come
// back.
func (e *estate) follow(ctx context.Context, owner, at string) (last uint64, err error) {
	last = filled
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return last, nil
		case <-pace.C:
		}
		if at, err = e.post(owner, at, last+1); err != nil {
			return last, fmt.Errorf("post %d of %s at %s: %w", last+1, owner, at, err)
		}
		last++
	}
}

// post writes one post wherever the owner is, and returns where that was: it goes
// where the store sends it, and asks the table of locations if there is nothing
// to tell it. The end of the test doesn't end it: its outcome would be unknown.
func (e *estate) post(owner, at string, n uint64) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for {
		once, done := context.WithTimeout(ctx, patience/4)
		err := e.writers[at].Write(once, owner, n)
		done()
		var moved *movertest.MovedError
		switch {
		case err == nil:
			return at, nil
		case errors.As(err, &moved) && moved.Site != "":
			if e.stores[moved.Site] == nil {
				return at, fmt.Errorf("sent on to %q, which is no site", moved.Site)
			}
			at = moved.Site
			continue
		case !errors.As(err, &moved):
			if l, revision, err := e.table.Get(ctx, owner); err == nil && revision > 0 {
				at = l.Site
			}
		}
		select {
		case <-ctx.Done():
			return at, err
		case <-pause.C:
		}
		if e.t.Failed() {
			return at, fmt.Errorf("given up, with the test: %w", err)
		}
	}
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
)

// TestKillCoder kills a coder again and again, at points that are drawn, while several
// clients put, overwrite and delete objects, upload them in parts and read them back, with
// all codes, and with the bus away for part of it. After each start every write that was
// acknowledged is whole and every one that was not is there whole or not at all. In the
// end, once the journal has run, each blob in the stores is named by a version, and none
// lacks.
func TestKillCoder(t *testing.T) {
	t.Parallel()
	courses, kills := 2, 3
	if whole {
		courses, kills = 10, 20
	}
	var mu sync.Mutex
	var all killCounts
	t.Run("on", func(t *testing.T) {
		for n := range courses {
			t.Run(fmt.Sprintf("%s %d", []string{"shared", "spread"}[n%2], n), func(t *testing.T) {
				t.Parallel()
				c := newKillCourse(t, n)
				c.run(kills)
				mu.Lock()
				defer mu.Unlock()
				all.add(&c.counts)
			})
		}
	})
	t.Logf("%+v", all)
	if all.Kills < courses*kills {
		t.Errorf("%d kills, expected at least %d", all.Kills, courses*kills)
	}
	// What a kill must have met for any of this to mean something.
	for what, n := range map[string]int{
		"puts": all.Puts, "deletes": all.Deletes, "uploads": all.Uploads, "reads": all.Reads, "broken off": all.BrokenOff,
		"staged blobs": all.Staged, "kills without the bus": all.WithoutBus, "kills at the start": all.AtStart,
	} {
		if n == 0 {
			t.Errorf("no %s", what)
		}
	}
}

// killCounts says what happened in courses of kills.
type killCounts struct {
	Kills, AtStart, WithoutBus int
	// Puts, Deletes, Uploads were acknowledged, Reads compared; BrokenOff were under way
	// at a kill, of which Done had been done.
	Puts, Deletes, Uploads, Reads, BrokenOff, Done int
	// Staged counts blobs of versions in a coding of their own that lay in stores after a
	// kill, Unfinished files that were being written.
	Staged, Unfinished int
}

func (k *killCounts) add(o *killCounts) {
	k.Kills, k.AtStart, k.WithoutBus = k.Kills+o.Kills, k.AtStart+o.AtStart, k.WithoutBus+o.WithoutBus
	k.Puts, k.Deletes, k.Uploads = k.Puts+o.Puts, k.Deletes+o.Deletes, k.Uploads+o.Uploads
	k.Reads, k.BrokenOff, k.Done = k.Reads+o.Reads, k.BrokenOff+o.BrokenOff, k.Done+o.Done
	k.Staged, k.Unfinished = k.Staged+o.Staged, k.Unfinished+o.Unfinished
}

// act is a write of a key, or a deletion, which is one of no seed. It has a content that
// no other has.
type act struct {
	seed     uint64
	sizes    []int // of its parts
	told     bool  // that it was done
	from, to int64 // between them it was, if anybody was told
}

func (a *act) parts() (list [][]byte) {
	for i, n := range a.sizes {
		list = append(list, noise(a.seed+uint64(i), n))
	}
	return list
}

// makes tells whether a key that a read gave this of, nil if there was nothing, is as the
// act has left it.
func (a *act) makes(got []byte) bool {
	if a.seed == 0 || got == nil {
		return a.seed == 0 && got == nil
	}
	return bytes.Equal(got, slices.Concat(a.parts()...))
}

// history is what was done to a key since it was last read while nobody wrote.
type history struct {
	mu   sync.Mutex
	acts []*act
}

// nothing is the history of a key that was never written.
func nothing() *history { return &history{acts: []*act{{told: true}}} }

// fits finds an act that has left what was read and was not undone: no other that was
// acknowledged began after it was. Nil: there is none.
func (h *history) fits(got []byte) *act {
	for _, a := range h.acts {
		undone := a.told && slices.ContainsFunc(h.acts, func(b *act) bool { return b.told && b.from > a.to })
		if !undone && a.makes(got) {
			return a
		}
	}
	return nil
}

// killCourse is one course of kills of one coder.
type killCourse struct {
	t       *testing.T
	r       *rand.Rand
	w       *coderWorld
	b       *bus.Bus
	away    bool // the bus
	clients []s3Client
	shared  []string // keys that all clients write
	keys    map[string]*history
	now     atomic.Int64 // counts acts
	acked   chan struct{}
	dying   atomic.Bool

	mu     sync.Mutex
	counts killCounts
}

const (
	killClients = 5
	keysEach    = 5
)

func newKillCourse(t *testing.T, n int) *killCourse {
	c := &killCourse{
		t: t, r: rand.New(rand.NewPCG(6, uint64(n))), keys: map[string]*history{}, acked: make(chan struct{}, 1000),
		b: bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Listen = 1, "127.0.0.1:0" }),
	}
	c.w = newCoder(t, c.b.URL(), coderSettings{spread: n%2 == 1})
	for i := range killClients {
		c.clients = append(c.clients, c.w.client(i))
		for j := range keysEach {
			c.keys[fmt.Sprintf("%d/%d", i, j)] = nothing()
		}
	}
	for i := range 3 {
		key := fmt.Sprintf("of all/%d", i)
		c.shared, c.keys[key] = append(c.shared, key), nothing()
	}
	return c
}

// configure draws how the next process codes, and when it answers.
func (c *killCourse) configure() {
	policies := []string{
		"policy: static, code: {n: 1, k: 1}", "policy: static, code: {n: 3, k: 2}", "policy: static, code: {n: 6, k: 3}",
		"policy: static, code: {n: 12, k: 6}", "policy: tofec", "policy: greedy",
	}
	more := []string{"", "durability: n, ", "durability: k+1, ", "catalog_sync: true, "}
	c.w.configure(coderSettings{policy: policies[c.r.IntN(len(policies))], more: more[c.r.IntN(len(more))]})
}

func (c *killCourse) run(kills int) {
	c.w.begin()
	c.w.makeBucket()
	c.w.proc.stop()
	for c.counts.Kills < kills && !c.t.Failed() {
		c.configure()
		if c.r.IntN(3) == 0 {
			c.toggle()
		}
		if c.r.IntN(4) == 0 {
			c.killAtStart()
		}
		c.w.begin()
		c.verify()
		c.load()
		c.lookAround()
	}
	if c.away {
		c.toggle()
	}
	c.configure()
	c.w.begin()
	c.verify()
	want := 0
	for _, h := range c.keys {
		if h.acts[0].seed != 0 {
			want++
		}
	}
	if have := c.w.keys(); len(have) != want {
		c.t.Errorf("%d objects are listed, expected %d: %v", len(have), want, have)
	}
	c.w.abortUploads()
	c.w.clean()
}

// toggle takes the bus away, or brings it back.
func (c *killCourse) toggle() {
	if c.away = !c.away; c.away {
		c.b.Suspend()
	} else if err := c.b.Resume(); err != nil {
		c.t.Fatal(err)
	}
}

// killAtStart kills a process that is about to take up what the one before has left.
func (c *killCourse) killAtStart() {
	c.w.launch()
	select {
	case <-c.w.proc.ended:
		c.t.Fatalf("it has ended: %s", c.w.proc.errs.String())
	case <-time.After(time.Duration(c.r.IntN(400)) * time.Millisecond):
	}
	c.killed()
	c.counts.AtStart++
}

// killed kills the process.
func (c *killCourse) killed() {
	c.dying.Store(true)
	c.w.proc.kill()
	c.counts.Kills++
	if c.away {
		c.counts.WithoutBus++
	}
}

// load has all clients at work until the process is killed: so many acknowledgements
// and a moment later.
func (c *killCourse) load() {
	c.dying.Store(false)
	for len(c.acked) > 0 {
		<-c.acked
	}
	var work sync.WaitGroup
	for i := range c.clients {
		r := rand.New(rand.NewPCG(c.r.Uint64(), uint64(i)))
		work.Go(func() { c.client(i, r) })
	}
	limit := time.After(patience)
	for range c.r.IntN(40) {
		select {
		case <-c.acked:
		case <-limit:
			c.t.Error("the clients are at a standstill")
		}
	}
	<-time.After(time.Duration(c.r.IntN(40_000)) * time.Microsecond) // where in the next acts it dies
	c.killed()
	work.Wait()
}

// client acts until the process is killed.
func (c *killCourse) client(i int, r *rand.Rand) {
	for !c.dying.Load() {
		key := fmt.Sprintf("%d/%d", i, r.IntN(keysEach))
		if r.IntN(5) == 0 {
			key = c.shared[r.IntN(len(c.shared))]
		} else if r.IntN(5) == 0 {
			c.read(i, key, c.keys[key])
			continue
		}
		a := &act{}
		if r.IntN(5) > 0 {
			a.seed = 1 + r.Uint64()>>1
			a.sizes = []int{[]int{0, 1, 5000, 60_000, 131_072, 300_000, 700_000}[r.IntN(7)]}
		}
		upload := a.seed != 0 && r.IntN(7) == 0
		if upload && r.IntN(3) == 0 {
			a.sizes = []int{5<<20 + r.IntN(1000), a.sizes[0]}
		}
		c.act(i, key, a, upload)
	}
}

// act does one and notes whether it was acknowledged.
func (c *killCourse) act(i int, key string, a *act, upload bool) {
	h := c.keys[key]
	a.from = c.now.Add(1)
	h.mu.Lock()
	h.acts = append(h.acts, a)
	h.mu.Unlock()
	var err error
	n := &c.counts.Puts
	switch ctx := context.Background(); {
	case a.seed == 0:
		n, err = &c.counts.Deletes, c.clients[i].remove(ctx, key)
	case upload:
		n, err = &c.counts.Uploads, c.clients[i].upload(ctx, key, a.parts())
	default:
		err = c.clients[i].put(ctx, key, a.parts()[0])
	}
	if err != nil {
		if !c.dying.Load() {
			c.t.Errorf("%s: %v", key, err)
			c.dying.Store(true)
		}
		n = &c.counts.BrokenOff
	} else {
		h.mu.Lock()
		a.told, a.to = true, c.now.Add(1)
		h.mu.Unlock()
		c.acked <- struct{}{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
}

// read compares a key with what the one client that writes it has left there.
func (c *killCourse) read(i int, key string, h *history) {
	got, err := c.clients[i].get(context.Background(), key)
	switch {
	case err != nil && c.dying.Load():
		return
	case err != nil:
		c.t.Errorf("read %s: %v", key, err)
	case h.fits(got) == nil:
		c.t.Errorf("read %s: %d bytes that nobody has left there", key, len(got))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Reads++
}

// verify reads all keys, and forgets what might have been.
func (c *killCourse) verify() {
	names := make(chan string, len(c.keys))
	for key := range c.keys {
		names <- key
	}
	close(names)
	var work sync.WaitGroup
	for _, client := range c.clients {
		work.Go(func() {
			for key := range names {
				c.verifyOne(client, key, c.keys[key])
			}
		})
	}
	work.Wait()
}

func (c *killCourse) verifyOne(client s3Client, key string, h *history) {
	got, err := client.get(context.Background(), key)
	a := h.fits(got)
	if err != nil || a == nil {
		var known []string
		for _, a := range h.acts {
			known = append(known, fmt.Sprintf("%v bytes, seed %d, told %v, %d…%d", a.sizes, a.seed, a.told, a.from, a.to))
		}
		c.t.Errorf("%s after %d kills: %d bytes, nil %v, %v; it was\n%s", key, c.counts.Kills, len(got), got == nil, err, strings.Join(known, "\n"))
		return
	}
	c.mu.Lock()
	if !a.told {
		c.counts.Done++
	}
	c.mu.Unlock()
	h.acts = []*act{a}
	a.told, a.from, a.to = true, 0, 0
}

// lookAround counts what a killed process has left in the stores.
func (c *killCourse) lookAround() {
	for i := range c.w.stores() {
		err := filepath.WalkDir(c.w.store(i), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			if !strings.HasSuffix(path, "~") {
				c.counts.Unfinished++
			}
			if m := stagedBlob.FindStringSubmatch(path); m != nil && !c.w.spread && m[1] != "0" && m[1] != "1" {
				c.counts.Staged++
			}
			return nil
		})
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

// stagedBlob is a blob that a write has put, with its number.
var stagedBlob = regexp.MustCompile(`/b/../[0-9a-z]+\.([0-9]+)~$`)

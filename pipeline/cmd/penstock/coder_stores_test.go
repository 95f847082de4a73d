package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"penstock/consumers/executor/coder"
	"penstock/infra/testserver"
)

// TestStoresOfCoderComeBack takes two of four stores from a coder that serves: the folder
// of one is deleted, the files of another are damaged in all ways. No request fails and
// none is told a wrong byte. When the folder is back, empty, all is repaired, so that the
// other two may go and come back, and at last the first two again, with the state of the
// coder: what repairs and the log have written since then is enough to adopt the rest.
func TestStoresOfCoderComeBack(t *testing.T) {
	t.Parallel()
	w := newCoder(t, "nats://"+testserver.FreeAddress(t), coderSettings{spread: true})
	w.begin()
	w.makeBucket()
	c := w.client(0)
	fixed := map[string][]byte{}
	for i, size := range []int{0, 1, 100, 5000, 70_000, 131_072, 131_073, 400_000} {
		key := fmt.Sprintf("fixed/%d", size)
		fixed[key] = noise(uint64(i), size)
		if err := c.put(t.Context(), key, fixed[key]); err != nil {
			t.Fatal(err)
		}
	}
	w.journalRan()

	w.damage(1)
	_, errs, code := command(t, "coder", "scrub", "-c", w.config)
	// A bit that is flipped in the words by which a strip says whose it is makes it
	// another's.
	for _, kinds := range []string{"damaged|foreign|misplaced", "truncated", "missing"} {
		if code != 1 || !regexp.MustCompile(` strips (`+kinds+`)`).MatchString(errs) {
			t.Errorf("a scrub of a damaged store: exit code %d, %q is missing in %s", code, kinds, errs)
		}
	}
	l := w.steady(fixed)
	w.remove(0)
	l.goOn()
	w.comeBack(0)
	w.repair() // what is left of it: the store is filled anew without a scrub too
	l.end()
	w.journalRan()
	if r := w.repair(); r.Repaired+r.Failed+r.Orphans+r.Lacking != 0 {
		t.Errorf("scrub after a repair: %+v", r)
	}

	l = w.steady(fixed)
	l.goOn()
	w.remove(2)
	w.remove(3)
	l.goOn()
	w.comeBack(2)
	w.comeBack(3)
	l.goOn()
	w.repair()
	l.end()
	w.journalRan()
	w.logged()

	w.proc.stop()
	for _, gone := range []string{w.store(0), w.store(1), w.state} {
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
	}
	w.more = []string{"--adopt"}
	w.begin()
	for key, want := range fixed {
		if got, err := c.get(t.Context(), key); err != nil || got == nil || !bytes.Equal(got, want) {
			t.Errorf("%s when everything was lost once: %d bytes of %d, %v", key, len(got), len(want), err)
		}
	}
	w.isNew(0)
	w.isNew(1)
	w.repair()
	w.clean()
}

// TestADiskOfCoderIsNotMounted: a coder is started while one of its stores shows the folder
// under its disk. It says so, serves from the others and writes nothing there; when the disk
// is there it is used again.
func TestADiskOfCoderIsNotMounted(t *testing.T) {
	t.Parallel()
	w := newCoder(t, "nats://"+testserver.FreeAddress(t), coderSettings{spread: true})
	w.begin()
	w.makeBucket()
	c := w.client(0)
	all := map[string][]byte{}
	put := func(what string) {
		for i, size := range []int{1, 5000, 300_000} {
			key := fmt.Sprintf("%s/%d", what, size)
			all[key] = noise(uint64(i), size)
			if err := c.put(t.Context(), key, all[key]); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func() {
		for key, want := range all {
			if got, err := c.get(t.Context(), key); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes of %d, %v", key, len(got), len(want), err)
			}
		}
	}
	put("before")
	w.journalRan()
	w.proc.stop()
	disk := w.store(2) + ".disk"
	if err := os.Rename(w.store(2), disk); err != nil {
		t.Fatal(err)
	}
	w.begin() // makes the folder
	if n := w.proc.count("penstock_coder_store_absent"); n != 1 {
		t.Errorf("metrics: %d stores are absent", n)
	}
	out, _, _ := command(t, "coder", "status", "-c", w.config)
	if !strings.Contains(out, "store store-2: ABSENT") || !strings.Contains(out, "penstock coder store-is-new store-2") {
		t.Errorf("status:\n%s", out)
	}
	_, errs, code := command(t, "coder", "store-is-new", "-c", w.config, "store-1")
	if code == 0 || !strings.Contains(errs, "store is not absent") {
		t.Errorf("another store is new: %d %s", code, errs)
	}
	put("while")
	check()
	if _, err := os.Stat(filepath.Join(w.store(2), coderName)); !os.IsNotExist(err) {
		t.Errorf("something is written to the folder under the disk: %v", err)
	}
	if err := os.RemoveAll(w.store(2)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(disk, w.store(2)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the disk to be seen", func() bool { return w.proc.count("penstock_coder_store_absent") == 0 })
	check()
	w.clean()
}

// logged waits until three stores have the same snapshot of the catalog, or all changes
// since it was made.
func (w *coderWorld) logged() {
	w.t.Helper()
	eventually(w.t, "the catalog to be in enough stores", func() bool {
		in := map[string]int{}
		for i := range w.stores() {
			for _, what := range []string{"*.snap~", "00000001-0000000000000001-*.log~"} {
				found, err := filepath.Glob(filepath.Join(w.store(i), coderName, "log", what))
				if err != nil {
					w.t.Fatal(err)
				}
				for _, name := range found {
					if in[filepath.Base(name)]++; in[filepath.Base(name)] == 3 {
						return true
					}
				}
			}
		}
		return false
	})
}

// remove deletes the folder of a store.
func (w *coderWorld) remove(i int) {
	w.t.Helper()
	// The coder puts files there meanwhile.
	eventually(w.t, "the folder to be gone", func() bool { return os.RemoveAll(w.store(i)) == nil })
}

// comeBack gives a store an empty folder again.
func (w *coderWorld) comeBack(i int) {
	w.t.Helper()
	if err := os.Mkdir(w.store(i), 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.isNew(i)
}

// isNew says, as the operator does, that what a store held is lost.
func (w *coderWorld) isNew(i int) {
	w.t.Helper()
	name := fmt.Sprintf("store-%d", i)
	eventually(w.t, name+" to be taken in", func() bool {
		out, _, code := command(w.t, "coder", "store-is-new", "-c", w.config, name)
		return code == 0 && strings.Contains(out, name+" is taken for a new one")
	})
}

// damage damages each blob of objects in a store, by turns in each way that there is: a
// bit is another, the end is cut off, it is another object's, it is empty.
func (w *coderWorld) damage(i int) {
	w.t.Helper()
	r, n := rand.New(rand.NewPCG(4, 2)), 0
	var before []byte
	err := filepath.WalkDir(filepath.Join(w.store(i), coderName, "b"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		was := bytes.Clone(b)
		n++
		switch n % 4 {
		case 0:
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		case 1:
			b = b[:r.IntN(len(b))]
		case 2:
			b = before
		default:
			b = nil
		}
		before = was
		return os.WriteFile(path, b, 0o644)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if n < 6 {
		w.t.Fatalf("%d blobs were damaged", n)
	}
}

// repair has the coder scrubbed, by its operator's verb, until a scrub that repairs
// leaves nothing; it adds up what they found. A store that has just come back may not be
// known to be there yet.
func (w *coderWorld) repair() (sum coder.Report) {
	w.t.Helper()
	sum.Faults = map[string]int64{}
	var out string
	defer func() {
		if w.t.Failed() {
			w.t.Logf("last scrub: %s", out)
		}
	}()
	eventually(w.t, "a scrub that leaves nothing", func() bool {
		var code int
		out, _, code = command(w.t, "--json", "coder", "scrub", "-c", w.config, "--repair", "--orphans")
		var r coder.Report
		if err := json.NewDecoder(strings.NewReader(out)).Decode(&r); err != nil {
			w.t.Fatalf("%v in %s", err, out)
		}
		for kind, n := range r.Faults {
			sum.Faults[kind] += n
		}
		sum.Lacking, sum.Repaired, sum.Failed = sum.Lacking+r.Lacking, sum.Repaired+r.Repaired, sum.Failed+r.Failed
		sum.Orphans, sum.Unreadable = sum.Orphans+r.Orphans, sum.Unreadable+r.Unreadable
		return code == 0
	})
	if sum.Unreadable > 0 {
		w.t.Errorf("scrub: %+v", sum)
	}
	return sum
}

// steadyLoad is clients of whom no request may fail.
type steadyLoad struct {
	w      *coderWorld
	work   sync.WaitGroup
	cancel context.CancelFunc
	rounds [steadyClients]atomic.Int64
}

const steadyClients = 4

// steady starts them: two read what is fixed, two write, read, and delete.
func (w *coderWorld) steady(fixed map[string][]byte) *steadyLoad {
	ctx, cancel := context.WithCancel(context.Background())
	l := &steadyLoad{w: w, cancel: cancel}
	w.t.Cleanup(l.end)
	for i := range steadyClients {
		c, r := w.client(i), rand.New(rand.NewPCG(5, uint64(i)))
		l.work.Go(func() {
			for n := 0; ctx.Err() == nil && !w.t.Failed(); n++ {
				if i < 2 {
					for key, want := range fixed {
						l.reads(c, key, want)
					}
				} else {
					l.writes(c, r, fmt.Sprintf("live/%d/%d", i, n%7))
				}
				l.rounds[i].Add(1)
			}
		})
	}
	return l
}

func (l *steadyLoad) reads(c s3Client, key string, want []byte) {
	got, err := c.get(context.Background(), key)
	if bad := err != nil || (got == nil) != (want == nil) || !bytes.Equal(got, want); bad && !l.w.t.Failed() {
		l.w.t.Errorf("read %s: %d bytes of %d, %v", key, len(got), len(want), err)
	}
}

func (l *steadyLoad) writes(c s3Client, r *rand.Rand, key string) {
	data := noise(r.Uint64(), []int{0, 10, 5000, 131_072, 300_000}[r.IntN(5)])
	if err := c.put(context.Background(), key, data); err != nil {
		l.w.t.Errorf("put %s of %d bytes: %v", key, len(data), err)
	}
	l.reads(c, key, data)
	if r.IntN(3) == 0 {
		if err := c.remove(context.Background(), key); err != nil {
			l.w.t.Errorf("delete %s: %v", key, err)
		}
		l.reads(c, key, nil)
	}
}

// goOn waits until each client has done some more.
func (l *steadyLoad) goOn() {
	l.w.t.Helper()
	for i := range l.rounds {
		want := l.rounds[i].Load() + 1 + []int64{1, 1, 8, 8}[i]
		eventually(l.w.t, fmt.Sprintf("client %d to have done more", i), func() bool {
			return l.w.t.Failed() || l.rounds[i].Load() >= want
		})
	}
}

// end ends them. It may be called twice.
func (l *steadyLoad) end() {
	l.cancel()
	l.work.Wait()
}

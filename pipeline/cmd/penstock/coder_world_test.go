package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"penstock/consumers/executor/coder"
	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/chunks/dir"
	"penstock/consumers/executor/coder/object"
	"penstock/consumers/executor/coder/queue"
	"penstock/infra/testserver"
)

// The names in the worlds of coders.
const (
	coderName   = "objects"
	coderBucket = "bucket"
	coderAccess = "writer"
	coderSecret = "a secret of this test"
)

// coderSettings are what tests change in the configuration of a coder.
type coderSettings struct {
	spread bool   // (4,2) over four folders instead of one folder
	policy string // of the section coding
	more   string // of the coder, "key: value" each after a comma
}

// coderWorld is a coder as a process of its own: where it answers, its stores and state,
// and the bus that it is told of, which need not be there.
type coderWorld struct {
	t            testing.TB
	dir, config  string
	state        string
	listen, nats string
	admin        string
	spread       bool
	more         []string // arguments
	proc         *server  // if it runs
}

// newCoder writes the configuration; nothing runs yet.
func newCoder(t testing.TB, nats string, s coderSettings) *coderWorld {
	t.Helper()
	d := t.TempDir()
	w := &coderWorld{
		t: t, dir: d, config: filepath.Join(d, "penstock.yaml"), state: filepath.Join(d, "state"),
		listen: testserver.FreeAddress(t), admin: testserver.FreeAddress(t), nats: nats, spread: s.spread,
	}
	writeFile(t, filepath.Join(d, "keys"), coderAccess+" "+strings.ReplaceAll(coderSecret, " ", "-"))
	w.configure(s)
	return w
}

// configure writes the configuration, for the next start.
func (w *coderWorld) configure(s coderSettings) {
	w.t.Helper()
	stores := make([]string, w.stores())
	for i := range stores {
		stores[i] = fmt.Sprintf(`{name: store-%d, url: "dir:%s"}`, i, w.store(i))
	}
	layout := ""
	if w.spread {
		layout = "layout: spread, n: 4, k: 2, "
	}
	writeFile(w.t, w.config, fmt.Sprintf(`
sites:
  - {name: east, lat: 37.4, lon: -79.8, capacity: 100MB/h}
coding: {%s}
coders:
  - {name: %s, site: east, listen: %q, admin: %q, region: us-east-1, keys_file: %q, segment: 131072, %s%sstores: [%s]}
bus: {partitions: 1, sync: interval, flush: 100ms}
privacy: {user_key: "only for this test"}
telemetry: {listen: "127.0.0.1:0"}
`, cmp.Or(s.policy, "policy: tofec"), coderName, w.listen, w.admin, filepath.Join(w.dir, "keys"), layout, s.more, strings.Join(stores, ", ")))
}

// stores is how many there are.
func (w *coderWorld) stores() int {
	if w.spread {
		return 4
	}
	return 1
}

func (w *coderWorld) store(i int) string { return filepath.Join(w.dir, "stores", fmt.Sprint(i)) }

// launch starts the process and waits for nothing.
func (w *coderWorld) launch() {
	w.t.Helper()
	args := []string{"coder", "-c", w.config, "--nats", w.nats, "--name", "one", "--state", w.state}
	w.proc = start(w.t, append(args, w.more...)...)
}

var coderListens = regexp.MustCompile(`(?m)^coder at (\S+?)(?:, status at \S+)?; metrics and health at (\S+)\n`)

// await waits until the process says where it answers.
func (w *coderWorld) await() {
	w.t.Helper()
	eventually(w.t, "the coder to listen", func() bool {
		if w.proc.gone() {
			w.t.Fatalf("it has ended: %s", w.proc.errs.String())
		}
		m := coderListens.FindStringSubmatch(w.proc.out.String())
		if m != nil {
			w.proc.telemetry = m[2]
		}
		return m != nil
	})
}

// begin starts the process, and returns when it serves.
func (w *coderWorld) begin() {
	w.t.Helper()
	w.launch()
	w.await()
}

// journalRan waits until nothing is left to do: each version is in its intended coding,
// and all blobs are deleted that were to be.
func (w *coderWorld) journalRan() {
	w.t.Helper()
	var left [2]int
	defer func() {
		if w.t.Failed() {
			w.t.Logf("%d versions not in their intended coding, %d blobs to delete", left[0], left[1])
		}
	}()
	eventually(w.t, "the journal to have run", func() bool {
		left = [2]int{w.proc.count("penstock_coder_unintended_versions"), w.proc.count("penstock_coder_blobs_to_delete")}
		return left == [2]int{}
	})
}

// blobs lists the blobs of objects in all stores, by what the file system says. Files
// that are no blob of the coder's fail the test.
func (w *coderWorld) blobs() (list []object.Place) {
	w.t.Helper()
	for i := range w.stores() {
		err := filepath.WalkDir(w.store(i), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			name, err := filepath.Rel(w.store(i), path)
			key, whole := strings.CutSuffix(filepath.ToSlash(name), "~")
			switch {
			case err != nil:
				return err
			case whole && strings.HasPrefix(key, coderName+"/b/"):
				list = append(list, object.Place{Store: fmt.Sprintf("store-%d", i), Key: key})
			case !whole || key != coderName+"/owner" && !strings.HasPrefix(key, coderName+"/log/"):
				w.t.Errorf("store %d has a file %s that nobody wants", i, name)
			}
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	slices.SortFunc(list, comparePlaces)
	return list
}

func comparePlaces(a, b object.Place) int {
	return cmp.Or(strings.Compare(a.Store, b.Store), strings.Compare(a.Key, b.Key))
}

// clean stops the process and sees that all is in order: the catalog with itself, blobs
// in the stores with versions in the catalog, one for one, each strip of each of them,
// and no file is left over anywhere.
func (w *coderWorld) clean() {
	w.t.Helper()
	w.journalRan()
	w.proc.stop()
	named := w.named()
	if have := w.blobs(); !slices.Equal(have, named) {
		w.t.Errorf("%d blobs in the stores, %d named by versions", len(have), len(named))
		for _, p := range have {
			if _, is := slices.BinarySearchFunc(named, p, comparePlaces); !is {
				w.t.Errorf("nothing names %s in %s", p.Key, p.Store)
			}
		}
		for _, p := range named {
			if _, is := slices.BinarySearchFunc(have, p, comparePlaces); !is {
				w.t.Errorf("%s is not in %s", p.Key, p.Store)
			}
		}
	}
	r := w.scrub(coder.ScrubOptions{Orphans: true})
	faults := int64(0)
	for _, n := range r.Faults {
		faults += n
	}
	if bad := faults + r.Lacking + r.Unreachable + r.Unreadable + r.Staged + r.Orphans; bad != 0 {
		w.t.Errorf("scrub: %+v", r)
	}
	files, err := os.ReadDir(filepath.Join(w.state, "catalog"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range files {
		if name := f.Name(); name != "catalog.db" && name != "catalog.db.replaced" && name != "coding.json" {
			w.t.Errorf("%s is left in the folder of the catalog", name)
		}
	}
}

// named lists the places of all blobs that versions have, by the catalog of a process
// that has ended, which must be whole.
func (w *coderWorld) named() (list []object.Place) {
	w.t.Helper()
	c, err := catalog.Open(filepath.Join(w.state, "catalog", "catalog.db"), catalog.Options{Coder: coderName})
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	check, err := c.Check(w.t.Context())
	if err != nil || check.Found > 0 || check.Stored.Intents != 0 || check.Stored.Deletes != 0 {
		w.t.Errorf("catalog: %+v, %v", check, err)
	}
	ids, err := c.Versions("", 1<<20)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, id := range ids {
		v, rest, err := c.Version(id)
		if err != nil || !rest.None() {
			w.t.Fatalf("version %s: %+v, %v", id, rest, err)
		}
		for _, p := range v.Places {
			if p != (object.Place{}) {
				list = append(list, p)
			}
		}
	}
	slices.SortFunc(list, comparePlaces)
	return list
}

// onePlain is a chooser that asks for the least.
type onePlain struct{}

func (onePlain) Arrived(int) {}

func (onePlain) Choose(queue.Op, int) queue.Code { return queue.Code{N: 1, K: 1} }

// scrub opens the state in this process, while no other has it, and reads everything.
func (w *coderWorld) scrub(o coder.ScrubOptions) coder.Report {
	w.t.Helper()
	options := coder.Options{Name: coderName, State: filepath.Join(w.state, "catalog"), Chooser: onePlain{}, Segment: 131072}
	if w.spread {
		options.Layout, options.N, options.K = object.Spread, 4, 2
	}
	for i := range w.stores() {
		s, err := dir.Open(fmt.Sprintf("store-%d", i), w.store(i))
		if err != nil {
			w.t.Fatal(err)
		}
		defer s.Close()
		options.Stores = append(options.Stores, chunks.Store(s))
	}
	c, err := coder.Open(w.t.Context(), options)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ran := make(chan error, 1)
	go func() { ran <- c.Run(ctx) }()
	r, err := c.Scrub(ctx, o, nil)
	cancel()
	if err = errors.Join(err, <-ran, c.Close()); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// noise is content that a seed makes.
func noise(seed uint64, size int) []byte {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	b := make([]byte, size)
	_, _ = rand.NewChaCha8(key).Read(b) // never fails
	return b
}

package catalog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/catalog/catalogtest"
	"penstock/consumers/executor/coder/object"
)

// bucket makes a bucket and gives how to put an object of an id under a key.
func bucket(t testing.TB, c *catalog.Catalog) (put func(key, id string, change ...func(*catalog.PutInput)) error) {
	t.Helper()
	must(t, c.CreateBucket(t.Context(), catalog.Bucket{Name: "b", Created: catalogtest.Epoch}))
	return func(key, id string, change ...func(*catalog.PutInput)) error {
		v := catalogtest.Version(id, 10, 2, "")
		if err := c.Begin(t.Context(), catalog.Intent{ID: id, Since: catalogtest.Epoch, Places: v.Places}); err != nil {
			return err
		}
		in := catalog.PutInput{
			Bucket: "b", Version: v, Intents: []string{id},
			Record: catalog.Record{Key: key, Size: 10, ETag: id, Modified: catalogtest.Epoch},
		}
		for _, f := range change {
			f(&in)
		}
		return c.Put(t.Context(), in)
	}
}

func wants(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// absent is If-None-Match: *.
func absent(now *catalog.Record) error {
	if now != nil {
		return fmt.Errorf("%w: there is %s", catalog.ErrPrecondition, now.ETag)
	}
	return nil
}

// TestOneOfManyWins: of writers of one key that must not exist one wins whole, and of
// writers that replace what they have seen none is lost.
func TestOneOfManyWins(t *testing.T) {
	t.Parallel()
	c := open(t)
	put := bucket(t, c)
	const writers = 32
	var won atomic.Int32
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			err := put("key", fmt.Sprint("first-", i), func(in *catalog.PutInput) { in.If = absent })
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, catalog.ErrPrecondition) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d writers won", won.Load())
	}
	var replaced atomic.Int32
	for i := range writers {
		group.Go(func() {
			for try := 0; ; try++ {
				seen, err := c.Get("b", "key")
				if err != nil {
					t.Error(err)
					return
				}
				err = put("key", fmt.Sprint("next-", i, "-", try), func(in *catalog.PutInput) {
					in.If = func(now *catalog.Record) error {
						if now.ETag != seen.ETag {
							return catalog.ErrPrecondition
						}
						return nil
					}
				})
				if err == nil {
					replaced.Add(1)
					return
				}
			}
		})
	}
	group.Wait()
	report, err := c.Check(t.Context())
	must(t, err)
	if replaced.Load() != writers || report.Found > 0 || report.Counted.Objects != 1 || report.Counted.Versions != 1 {
		t.Errorf("%d replaced, %+v", replaced.Load(), report)
	}
	// What was overwritten is queued, and what lost is still the losers' to abandon.
	if got, want := report.Counted.Deletes, int64(2*writers); got != want {
		t.Errorf("%d blobs to delete, want %d", got, want)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "catalog")
	c, err := catalog.Open(path, catalog.Options{Coder: "objects", Instance: "i", NoSync: true})
	must(t, err)
	if got, want := c.Identity(), (catalog.Identity{Coder: "objects", Instance: "i", Term: 1}); got != want {
		t.Errorf("identity %+v, want %+v", got, want)
	}
	_, err = catalog.Open(path, catalog.Options{Coder: "objects"})
	wants(t, err, catalog.ErrLocked)
	if !strings.Contains(err.Error(), path) {
		t.Errorf("error doesn't name the file: %v", err)
	}
	must(t, c.Close())
	must(t, c.Close())
	wants(t, c.CreateBucket(t.Context(), catalog.Bucket{Name: "b"}), catalog.ErrClosed)
	_, err = c.Get("b", "key")
	wants(t, err, catalog.ErrClosed)
	_, err = catalog.Open(path, catalog.Options{Coder: "others"})
	wants(t, err, catalog.ErrForeign)
	_, err = catalog.Open(path, catalog.Options{})
	wants(t, err, catalog.ErrInput)

	edit := func(f func(meta *bbolt.Bucket) error) {
		db, err := bbolt.Open(path, 0o600, nil)
		must(t, err)
		must(t, db.Update(func(tx *bbolt.Tx) error { return f(tx.Bucket([]byte("meta"))) }))
		must(t, db.Close())
	}
	edit(func(meta *bbolt.Bucket) error {
		identity := slices.Clone(meta.Get([]byte("identity")))
		identity[0]++
		return meta.Put([]byte("identity"), identity)
	})
	_, err = catalog.Open(path, catalog.Options{Coder: "objects"})
	wants(t, err, catalog.ErrFormat)
	edit(func(meta *bbolt.Bucket) error { return meta.Put([]byte("identity"), []byte{1, 200}) })
	_, err = catalog.Open(path, catalog.Options{Coder: "objects"})
	wants(t, err, catalog.ErrDamaged)

	must(t, os.WriteFile(path, []byte(strings.Repeat("no database ", 2000)), 0o600))
	_, err = catalog.Open(path, catalog.Options{Coder: "objects"})
	wants(t, err, catalog.ErrFormat)
}

// TestDamagedFiles: a file that was cut off, or written over behind its first pages, is
// refused by its name, or can be used; it ends no process.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	sound := filepath.Join(t.TempDir(), "catalog")
	c, err := catalog.Open(sound, catalog.Options{Coder: "objects", NoSync: true})
	must(t, err)
	for i := range 200 {
		must(t, c.CreateBucket(t.Context(), catalog.Bucket{Name: fmt.Sprintf("bucket-%d", i)}))
	}
	must(t, c.Close())
	whole, err := os.ReadFile(sound)
	must(t, err)
	try := func(what string, data []byte, must ...error) {
		path := filepath.Join(t.TempDir(), "catalog")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := catalog.Open(path, catalog.Options{Coder: "objects", NoSync: true})
		if err == nil {
			err = c.Close()
			if len(must) > 0 {
				t.Errorf("%s: opened", what)
			}
		} else if !strings.Contains(err.Error(), path) || !errors.Is(err, catalog.ErrDamaged) && !errors.Is(err, catalog.ErrFormat) {
			t.Errorf("%s: %v", what, err)
		}
		for _, want := range must {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
	}
	for _, size := range []int{10_000, len(whole) / 2, len(whole) - 4096} {
		try(fmt.Sprint("cut to ", size), whole[:size], catalog.ErrDamaged)
	}
	try("cut in its first page", whole[:100], catalog.ErrFormat)
	for at := 0; at < len(whole); at += 4096 {
		data := slices.Clone(whole)
		for i := at; i < len(data); i++ {
			data[i] ^= 0x5a
		}
		try(fmt.Sprint("written over from ", at), data)
	}
}

// TestListSeeks: a common prefix costs one look-up, whatever is in it.
func TestListSeeks(t *testing.T) { // not parallel: it counts allocations
	c := open(t)
	put := bucket(t, c)
	list := func() float64 {
		return testing.AllocsPerRun(5, func() {
			page, err := c.List(catalog.ListInput{Bucket: "b", Delimiter: "/", Max: 100})
			if err != nil || len(page.Prefixes) != 3 {
				t.Errorf("%+v %v", page, err)
			}
		})
	}
	fill := func(from, n int) {
		var group sync.WaitGroup
		for w := range 16 {
			group.Go(func() {
				for i := from + w; i < from+n; i += 16 {
					if err := put(fmt.Sprintf("p%d/%06d", i%3, i), fmt.Sprint("v", i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
	}
	fill(0, 3)
	few := list()
	fill(3, 1000)
	if many := list(); many > few+20 {
		t.Errorf("%.0f allocations with three keys, %.0f with a thousand", few, many)
	}
}

func TestInputs(t *testing.T) {
	t.Parallel()
	c := open(t)
	put := bucket(t, c)
	long := strings.Repeat("x", 5000)
	for name, change := range map[string]func(*catalog.PutInput){
		"no key":            func(in *catalog.PutInput) { in.Record.Key = "" },
		"zero in key":       func(in *catalog.PutInput) { in.Record.Key = "a\x00b" },
		"long key":          func(in *catalog.PutInput) { in.Record.Key = long },
		"another size":      func(in *catalog.PutInput) { in.Record.Size++ },
		"negative size":     func(in *catalog.PutInput) { in.Record.Size = -1 },
		"no version":        func(in *catalog.PutInput) { in.Version = nil },
		"version of damage": func(in *catalog.PutInput) { v := *in.Version; v.Sums = nil; in.Version = &v },
		"year 10000":        func(in *catalog.PutInput) { in.Record.Modified = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"long header":       func(in *catalog.PutInput) { in.Record.Headers.Expires = long },
		"metadata":          func(in *catalog.PutInput) { in.Record.Metadata = map[string]string{"a": strings.Repeat(long, 4)} },
		"no text":           func(in *catalog.PutInput) { in.Record.ETag = "\xff" },
		"checksums":         func(in *catalog.PutInput) { in.Record.Checksums = make([]catalog.Checksum, 100) },
		"lacking":           func(in *catalog.PutInput) { in.Rest.Lacking = []int{2} },
	} {
		if err := put("key", "v-"+name, change); !errors.Is(err, catalog.ErrInput) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	wants(t, put("key", "one", func(in *catalog.PutInput) { in.Intents = nil }), catalog.ErrPlace)
	wants(t, put("key", "two", func(in *catalog.PutInput) { in.Intents = []string{"none"} }), catalog.ErrNoIntent)
	wants(t, put("key", "three", func(in *catalog.PutInput) { in.Bucket = "none" }), catalog.ErrNoBucket)
	wants(t, put("key", "four", func(in *catalog.PutInput) { in.Bucket = "b\x00" }), catalog.ErrNoBucket)
	must(t, put("key", "five"))
	wants(t, put("key", "six", func(in *catalog.PutInput) { in.Version.ID = "five" }), catalog.ErrTaken)
	twice := object.Place{Store: "s", Key: "k"}
	wants(t, c.Begin(t.Context(), catalog.Intent{ID: "i", Places: []object.Place{twice, twice}}), catalog.ErrPlace)
	five, _, err := c.Version("five")
	must(t, err)
	wants(t, c.Begin(t.Context(), catalog.Intent{ID: "five", Places: five.Places}), catalog.ErrPlace)
	report, err := c.Check(t.Context())
	must(t, err)
	if report.Found > 0 {
		t.Error(report.Problems)
	}
}

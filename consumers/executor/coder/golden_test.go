package coder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
)

// TestGolden: an object of every coding and layout that was ever written can be read by a
// coder of another one, and is coded anew by it.
func TestGolden(t *testing.T) {
	t.Parallel()
	folder := filepath.Join("object", "testdata", "golden")
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) < 15 {
		t.Fatal(len(entries), err)
	}
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			t.Parallel()
			golden(t, filepath.Join(folder, e.Name()))
		})
	}
}

// golden reads one golden object. All have one id, so that each has a coder of its own.
func golden(t *testing.T, folder string) {
	document, err := os.ReadFile(filepath.Join(folder, "document"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := object.Parse(document)
	if err != nil {
		t.Fatal(err)
	}
	stores := make(map[string]*chunks.Memory)
	b := setup(t, object.Spread, 3, 2, func(o *Options) {
		for i := range 12 {
			s := chunks.NewMemory(fmt.Sprintf("store-%d", i))
			stores[s.Name()] = s
			o.Stores = append(o.Stores, s)
		}
	})
	b.adopt(t, folder, v, stores)
	check := func() {
		t.Helper()
		r, err := b.Get(t.Context(), GetInput{Bucket: "bucket", Key: filepath.Base(folder)})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var out bytes.Buffer
		if _, err := r.WriteTo(&out); err != nil || int64(out.Len()) != r.Size { // the reader checks the SHA-256
			t.Fatal(out.Len(), err)
		}
	}
	for _, code := range [][2]int{{1, 1}, {2, 1}, {3, 2}, {12, 6}} {
		b.code.set(code[0], code[1])
		check()
	}
	b.settled(t)
	check()
	r, err := b.Scrub(t.Context(), ScrubOptions{}, nil)
	if err != nil || len(r.Faults) != 0 || r.Staged+r.Lacking != 0 || r.Versions != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, now := range b.versions(t) {
		if now.Coding != b.Coder.code || now.SHA256 != v.SHA256 || !now.Time.Equal(v.Time) || now.Lacking() > 0 {
			t.Errorf("%+v", now)
		}
	}
}

// adopt puts a golden version into stores and catalog.
func (b *bench) adopt(t *testing.T, folder string, v *object.Version, stores map[string]*chunks.Memory) {
	t.Helper()
	name := filepath.Base(folder)
	var places []object.Place
	rest := catalog.Rest{Staged: v.Shape.Staged()}
	for i, p := range v.Places {
		if !v.Landed(i) {
			if !rest.Staged {
				rest.Lacking = append(rest.Lacking, i)
			}
			continue
		}
		blob, err := os.ReadFile(filepath.Join(folder, fmt.Sprintf("blob-%d", i)))
		if errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		// Golden objects share their id, and with it their keys.
		v.Places[i] = object.Place{Store: p.Store, Key: "golden/" + name + fmt.Sprintf("/%d", i)}
		places = append(places, v.Places[i])
		if err := stores[p.Store].Put(t.Context(), v.Places[i].Key, bytes.NewReader(blob), int64(len(blob))); err != nil {
			t.Fatal(err)
		}
	}
	rest.Staged = rest.Staged || v.Coding != b.Coder.code // as the survey of a start says
	ctx := context.Background()
	if err := b.catalog.Begin(ctx, catalog.Intent{ID: name, Since: time.Now(), Places: places}); err != nil {
		t.Fatal(err)
	}
	err := b.catalog.Put(ctx, catalog.PutInput{
		Bucket: "bucket", Version: v, Intents: []string{name}, Rest: rest,
		Record: catalog.Record{Key: name, Size: v.Shape.Size, ETag: v.ETag, Modified: v.Time},
	})
	if err != nil {
		t.Fatal(name, err)
	}
}

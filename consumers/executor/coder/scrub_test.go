package coder

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
	"penstock/infra/clock"
)

// TestScrubTells: what is wrong is told by kind without being touched, then repaired, and
// then it is not there any more.
func TestScrubTells(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Spread, 4, 2, nil)
	for i := range 5 {
		b.put(t, fmt.Sprint(i), noise(uint64(i), 5000))
	}
	b.settled(t)
	lost := 0
	alter(t, b.stores[1], func(_ string, blob []byte) ([]byte, bool) {
		lost++
		blob[7] ^= 1
		return blob, lost > 2
	})
	id := newID()
	orphan := b.blobKey(id, 3, "")
	for _, key := range []string{orphan, b.prefix() + "junk"} {
		if err := b.stores[2].Store.Put(t.Context(), key, strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	var told []Progress
	for range 2 { // looking changes nothing
		told = nil
		r, err := b.Scrub(t.Context(), ScrubOptions{Orphans: true}, func(p Progress) { told = append(told, p) })
		if err != nil || r.Versions != 5 || r.Lacking != 2 || r.Faults["damaged"] != 3 || r.Faults["missing"] != 2 ||
			r.Orphans != 2 || r.Repaired+r.Deleted+r.Failed+r.Unreadable != 0 || r.Strips != 20 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	for i, p := range told {
		if p.Versions != int64(i+1) || p.VersionsTotal != 5 || p.Bytes != int64(5000*(i+1)) || p.BytesTotal != 25_000 {
			t.Errorf("%+v", p)
		}
	}
	r, err := b.Scrub(t.Context(), ScrubOptions{Orphans: true, Repair: true}, nil)
	if err != nil || r.Repaired != 5 || r.Deleted != 2 || r.Failed != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	b.clean(t)
	if n := b.blobs(t); n != 20 {
		t.Errorf("%d blobs", n)
	}
}

// TestScrubOfTheUnreadable: when more than n−k blobs are lost it is told, and nothing is
// made up.
func TestScrubOfTheUnreadable(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Spread, 4, 2, nil)
	b.put(t, "k", noise(1, 2*testSegment))
	b.settled(t)
	for _, s := range b.stores[:3] {
		alter(t, s, func(_ string, blob []byte) ([]byte, bool) { return blob[:100], true })
	}
	r, err := b.Scrub(t.Context(), ScrubOptions{Repair: true}, nil)
	if err != nil || r.Unreadable != 1 || r.Failed != 3 || r.Repaired != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := b.read(t.Context(), "k", Range{}); err == nil {
		t.Fatal("read what is lost")
	}
	if n := b.blobs(t); n != 4 {
		t.Errorf("%d blobs", n)
	}
}

// TestScrubFindsAWrongDocument: whole strips under a document of other bytes.
func TestScrubFindsAWrongDocument(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Shared, 0, 0, nil)
	b.code.set(1, 1)
	b.put(t, "k", noise(1, 3*testSegment))
	b.settled(t)
	r, err := b.catalog.Get("bucket", "k")
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := b.catalog.Version(r.Parts[0].Version)
	if err != nil {
		t.Fatal(err)
	}
	wrong := *v
	wrong.ID = newID()
	wrong.SHA256[0] ^= 1
	wrong.Places = []object.Place{{Store: "store-0", Key: b.blobKey(wrong.ID, 0, "")}, {Store: "store-0", Key: b.blobKey(wrong.ID, 1, "")}}
	for i, p := range wrong.Places {
		var blob bytes.Buffer
		if _, err := b.stores[0].Store.Get(t.Context(), v.Places[i].Key, 0, 1<<30, &blob); err != nil {
			t.Fatal(err)
		}
		if err := b.stores[0].Store.Put(t.Context(), p.Key, &blob, int64(blob.Len())); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.catalog.Begin(t.Context(), catalog.Intent{ID: "i", Places: wrong.Places}); err != nil {
		t.Fatal(err)
	}
	err = b.catalog.Put(t.Context(), catalog.PutInput{
		Bucket: "bucket", Record: catalog.Record{Key: "wrong", Size: r.Size, ETag: r.ETag, Modified: r.Modified},
		Version: &wrong, Intents: []string{"i"},
	})
	if err != nil {
		t.Fatal(err)
	}
	// Its strips name another version, so that not one of them is taken for its own only
	// if their checksums fail; these are the same. The whole's is what tells.
	got, err := b.read(t.Context(), "wrong", Range{})
	if err == nil || len(got) >= int(r.Size) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	report, err := b.Scrub(t.Context(), ScrubOptions{}, nil)
	if err != nil || report.Unreadable != 1 || report.Faults["mismatch"] != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
}

// TestScrubKeepsItsRate: on made-up time.
func TestScrubKeepsItsRate(t *testing.T) {
	t.Parallel()
	s := &scrubbing{c: &Coder{o: Options{Clock: clock.NewManual(time.Unix(0, 0))}}, o: ScrubOptions{Rate: 1000}}
	m := s.c.o.Clock.(*clock.Manual)
	done := make(chan error, 1)
	go func() { done <- s.slow(t.Context(), 500, 100*time.Millisecond) }()
	if err := m.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	m.Advance(399 * time.Millisecond)
	select {
	case <-done:
		t.Fatal("too early")
	default:
	}
	m.Advance(time.Millisecond)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestNothingStaysStaged: a write with k > 1 is settled into two blobs, from memory or
// from the store, and so is one that lacks its parity.
func TestNothingStaysStaged(t *testing.T) {
	t.Parallel()
	for _, spare := range []bool{true, false} {
		b := setup(t, object.Shared, 0, 0, func(o *Options) { o.Memory = 1 })
		if !spare { // half of it is in use for long
			l, err := b.memory.take(t.Context(), b.Coder.code, testSegment, 2)
			if err != nil {
				t.Fatal(err)
			}
			defer l.give()
		}
		for i, code := range [][2]int{{1, 1}, {2, 1}, {3, 2}, {6, 3}, {8, 4}, {10, 5}, {12, 6}} {
			b.code.set(code[0], code[1])
			b.put(t, fmt.Sprint(i), noise(uint64(i), 5000+i))
		}
		b.settled(t)
		if n := b.blobs(t); n != 2*7 {
			t.Errorf("%d blobs of 7 objects", n)
		}
		for i := range 7 {
			b.check(t, fmt.Sprint(i), noise(uint64(i), 5000+i))
		}
		if n := b.counts.get("settled/done"); n != 5 {
			t.Errorf("%d settled", n)
		}
		if n := b.counts.get("repaired/write"); (n > 0) != spare {
			t.Errorf("%d parity blobs from memory", n)
		}
		b.clean(t)
	}
}

// TestStagedSurvivesRestart: what was left to do goes on after a restart.
func TestStagedSurvivesRestart(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Shared, 0, 0, nil)
	b.code.set(12, 6)
	b.put(t, "k", noise(1, 5000))
	b.stop()
	b.start(t)
	b.check(t, "k", noise(1, 5000))
	b.clean(t)
	if n := b.blobs(t); n != 2 {
		t.Errorf("%d blobs", n)
	}
}

var _ chunks.Store = (*faulty)(nil)

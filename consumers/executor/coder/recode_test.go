package coder

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
)

// again opens the coder once more over the same stores and state, with other options.
func (b *bench) again(t *testing.T, change func(*Options)) {
	t.Helper()
	b.stop()
	change(&b.options)
	b.start(t)
}

func (b *bench) surveyDone(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(patience); b.unseen.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("versions are not looked through")
		}
	}
}

var recodeSizes = []int{0, 4, 100, 5000, testSegment, 2*testSegment + 999}

func (b *bench) putSizes(t *testing.T) {
	t.Helper()
	for i, size := range recodeSizes {
		b.put(t, fmt.Sprint(size), noise(uint64(i), size))
	}
}

func (b *bench) checkSizes(t *testing.T) {
	t.Helper()
	for i, size := range recodeSizes {
		b.check(t, fmt.Sprint(size), noise(uint64(i), size))
	}
}

// spare adds stores that hold nothing yet.
func (b *bench) spare(n int) {
	for i := range n {
		s := &faulty{Store: chunks.NewMemory(fmt.Sprintf("spare-%d", i))}
		b.stores, b.options.Stores = append(b.stores, s), append(b.options.Stores, s)
	}
}

// TestAnotherCoding: with another (n,k) in the configuration, and with another layout,
// versions of the old one are counted, read all along, and coded anew until none is left.
func TestAnotherCoding(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Spread, 4, 2, nil)
	b.putSizes(t)
	b.code.set(6, 3)
	b.settled(t)
	parts := 1
	if whole() {
		parts = 2
	}
	upload := b.upload(t, "in parts", parts)
	was := b.versions(t)
	for _, to := range []struct {
		layout object.Layout
		n, k   int
		blobs  int
	}{{object.Spread, 6, 4, 6}, {object.Spread, 3, 1, 3}, {object.Spread, 4, 2, 4}} {
		b.again(t, func(o *Options) {
			o.Layout, o.N, o.K, o.Retry = to.layout, to.n, to.k, 20*time.Millisecond
			b.spare(max(0, to.n-len(o.Stores)))
		})
		s, err := b.Stats(t.Context())
		if err != nil || s.Unintended == 0 {
			t.Errorf("%v: nothing is counted: %+v, %v", to, s, err)
		}
		for range 5 {
			b.checkSizes(t)
		}
		b.settled(t)
		b.checkSizes(t)
		b.check(t, "in parts", upload)
		if n := b.blobs(t); n != to.blobs*(len(recodeSizes)-1+parts) {
			t.Errorf("%v: %d blobs", to, n)
		}
		for id, v := range b.versions(t) {
			if !v.AsMeant(b.Coder.code) || !v.Time.Equal(was[id].Time) || v.ETag != was[id].ETag {
				t.Errorf("%v: %+v, was %+v", to, v, was[id])
			}
		}
		r, err := b.Scrub(t.Context(), ScrubOptions{Orphans: true}, nil)
		if err != nil || r.Staged+r.Orphans+r.Unreadable+r.Lacking > 0 || len(r.Faults) > 0 {
			t.Errorf("%v: %+v, %v", to, r, err)
		}
	}
	if n := b.counts.get("settled/recoded"); n != int64(3*(len(recodeSizes)+parts)) {
		t.Errorf("%d versions were coded anew", n)
	}
}

// upload makes an object of so many parts, and gives its bytes.
func (b *bench) upload(t *testing.T, key string, parts int) (data []byte) {
	t.Helper()
	u, err := b.CreateUpload(t.Context(), UploadInput{Bucket: "bucket", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	in := CompleteInput{Bucket: "bucket", Key: key, Upload: u.ID}
	for i := range parts {
		size := MinPart + i
		if i == parts-1 {
			size = testSegment + 5000
		}
		one := noise(uint64(i+50), size)
		p, err := b.PutPart(t.Context(), PartInput{
			Bucket: "bucket", Key: key, Upload: u.ID, Number: i + 1, Body: bytes.NewReader(one), Size: int64(len(one)),
		})
		if err != nil {
			t.Fatal(err)
		}
		in.Parts, data = append(in.Parts, PartRef{Number: i + 1, ETag: p.ETag}), append(data, one...)
	}
	if _, err := b.CompleteUpload(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	return data
}

// versions are all documents, by id.
func (b *bench) versions(t *testing.T) map[string]*object.Version {
	t.Helper()
	ids, err := b.catalog.Versions("", 1000)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*object.Version)
	for _, id := range ids {
		if all[id], _, err = b.catalog.Version(id); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestAnotherCodingAndBack: a version that was to be coded anew is as meant again when
// its coding comes back before that was done; nothing is written for it.
func TestAnotherCodingAndBack(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Spread, 4, 2, nil)
	b.putSizes(t)
	b.settled(t)
	b.again(t, func(o *Options) {
		b.spare(2)
		o.N, o.K, o.Retry = 6, 4, 20*time.Millisecond
		for _, s := range b.stores[4:] {
			kill(s) // so that it can't be done
		}
	})
	b.surveyDone(t)
	// Only the empty one needs no store.
	if s, err := b.Stats(t.Context()); err != nil || s.Staged < int64(len(recodeSizes))-1 {
		t.Fatalf("%+v, %v", s, err)
	}
	b.checkSizes(t)
	kept := b.versions(t)
	b.again(t, func(o *Options) {
		o.N, o.K = 4, 2
		for _, s := range b.stores[4:] {
			heal(s)
		}
	})
	b.settled(t)
	for id, v := range b.versions(t) {
		if kept[id].Shape == v.Shape && fmt.Sprint(kept[id].Places) != fmt.Sprint(v.Places) {
			t.Errorf("%s moved from %v to %v", id, kept[id].Places, v.Places)
		}
	}
	b.checkSizes(t)
}

// TestLostStoreAndAnotherCoding: blobs in a store that is not configured any more are
// done without, and what was to be deleted there is given up, counted, and doesn't stay.
func TestLostStoreAndAnotherCoding(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Spread, 4, 2, nil)
	b.putSizes(t)
	b.settled(t)
	b.again(t, func(o *Options) {
		o.Stores = o.Stores[1:]
		o.N, o.K = 3, 2
	})
	b.surveyDone(t)
	b.settled(t)
	b.checkSizes(t)
	if n := b.counts.get("stranded/store-0"); n != int64(len(recodeSizes)-1) {
		t.Errorf("%d blobs were given up", n)
	}
	// With the store back a scrub finds what remained there.
	b.again(t, func(o *Options) { o.Stores = append(o.Stores, b.stores[0]) })
	r, err := b.Scrub(t.Context(), ScrubOptions{Repair: true, Orphans: true}, nil)
	if err != nil || r.Orphans != int64(len(recodeSizes)-1) || r.Deleted != r.Orphans {
		t.Errorf("%+v, %v", r, err)
	}
	b.settled(t)
	if n := b.blobs(t); n != 3*(len(recodeSizes)-1) {
		t.Errorf("%d blobs", n)
	}
}

// TestLostStore: the blobs of a store that is not configured any more are counted, and
// written into another one.
func TestLostStore(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Spread, 3, 2, nil)
	b.putSizes(t)
	b.settled(t)
	lost := b.stores[0]
	kill(lost)
	b.again(t, func(o *Options) {
		b.spare(1)
		o.Stores = o.Stores[1:]
	})
	if s, err := b.Stats(t.Context()); err != nil || s.Unintended == 0 {
		t.Errorf("nothing is counted: %+v, %v", s, err)
	}
	b.settled(t)
	b.stores = b.stores[1:]
	if n := b.blobs(t); n != 3*(len(recodeSizes)-1) {
		t.Errorf("%d blobs", n)
	}
	kill(b.stores[0])
	b.checkSizes(t)
	b.healAll(t)
	b.clean(t)
}

// TestSurveyOnce: versions are looked through once for a coding, and again when nothing
// is known of what they were looked through for.
func TestSurveyOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Spread, 4, 2, nil)
	b.surveyDone(t)
	b.putSizes(t)
	b.again(t, func(*Options) {})
	if n := b.unseen.Load(); n != 0 {
		t.Errorf("%d versions are to be looked at", n)
	}
	name := filepath.Join(b.options.State, codingFile)
	for content, unseen := range map[string]bool{
		"{": true,
		`{"coding":{"Layout":2,"N":4,"K":2},"stores":["store-0"]}`: false,
		`{"coding":{"Layout":2,"N":5,"K":2},"stores":["store-0"]}`: true,
		`{"coding":{"Layout":2,"N":4,"K":2},"stores":["store-9"]}`: true,
	} {
		b.stop()
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Open(t.Context(), b.options)
		if err != nil {
			t.Fatal(err)
		}
		if n := c.unseen.Load(); unseen != (n > 0) {
			t.Errorf("%s: %d versions are to be looked at", content, n)
		}
		if _, err := os.Stat(name); unseen == (err == nil) {
			t.Errorf("%s: %v", content, err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		b.start(t)
	}
	b.checkSizes(t)
}

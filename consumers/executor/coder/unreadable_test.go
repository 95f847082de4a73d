package coder

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/coder/object"
)

// written is what was logged so far.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) count(words ...string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(w.b.String()) {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			n++
		}
	}
	return n
}

func logged(w *written) func(*Options) {
	l := zerolog.New(w)
	return func(o *Options) { o.Logger, o.Segment = &l, 1<<20 }
}

// lose takes the blobs of versions from three stores of four.
func (b *bench) lose(t *testing.T, ids ...string) {
	t.Helper()
	for _, s := range b.stores[:3] {
		alter(t, s, func(key string, blob []byte) ([]byte, bool) { return blob, !slices.Contains(ids, b.versionOf(key)) })
	}
}

func (b *bench) unreadable(t *testing.T, want int64) {
	t.Helper()
	if s, err := b.Stats(t.Context()); err != nil || s.Unreadable != want {
		t.Errorf("%d unreadable, want %d; %v", s.Unreadable, want, err)
	}
}

// gone waits until nothing is unreadable any more: what has just been dropped may still be
// held by the work in the background.
func (b *bench) gone(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		s, err := b.Stats(t.Context())
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d unreadable, want none; %v", s.Unreadable, err)
		}
		if s.Unreadable == 0 {
			return
		}
	}
}

// TestScrubNamesTheLost: by bucket and key, parts by their object or by their upload.
func TestScrubNamesTheLost(t *testing.T) {
	t.Parallel()
	var out written
	b := setup(t, object.Spread, 4, 2, logged(&out))
	if err := b.CreateBucket(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	upload := func() string {
		u, err := b.CreateUpload(t.Context(), UploadInput{Bucket: "bucket", Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		return u.ID
	}
	done, idle := upload(), upload()
	b.part(t, done, 1, noise(1, MinPart))
	piece := b.part(t, done, 4, noise(2, 5000))
	o, err := b.CompleteUpload(t.Context(), CompleteInput{Bucket: "bucket", Key: "k", Upload: done, Parts: []PartRef{{Number: 1}, {Number: 4}}})
	if err != nil || len(o.Parts) != 2 {
		t.Fatal(o, err)
	}
	longer, err := b.CreateUpload(t.Context(), UploadInput{Bucket: "bucket", Key: "k-longer"})
	if err != nil {
		t.Fatal(err)
	}
	coming := b.part(t, idle, 7, noise(3, 5000))
	same, err := b.Put(t.Context(), PutInput{Bucket: "another", Key: "k", Body: bytes.NewReader(noise(4, 5000)), Size: 5000})
	if err != nil {
		t.Fatal(err)
	}
	alone := b.put(t, "j", noise(5, 5000))
	b.put(t, "whole", noise(6, 5000))
	b.settled(t)
	b.lose(t, piece.Version, coming.Version, same.Version, alone.Version)

	r, err := b.Scrub(t.Context(), ScrubOptions{}, nil)
	want := []Name{
		{Bucket: "another", Key: "k", Version: same.Version},
		{Bucket: "bucket", Key: "j", Version: alone.Version},
		{Bucket: "bucket", Key: "k", Version: piece.Version, Part: 4},
		{Bucket: "bucket", Key: "k", Version: coming.Version, Part: 7, Upload: idle},
	}
	if err != nil || r.Versions != 6 || r.Unreadable != 4 || !reflect.DeepEqual(r.Lost, want) {
		t.Fatalf("%+v, %v, want %+v", r, err, want)
	}
	for _, n := range want {
		if c := out.count(`"warn"`, `"bucket":"`+n.Bucket, `"key":"`+n.Key, n.Version, "scrub found"); c != 1 {
			t.Errorf("%+v is logged %d times", n, c)
		}
	}
	b.unreadable(t, 4)

	// What is unreadable can be dropped, and is no more then; a scrub says so too.
	for _, u := range []struct{ key, id string }{{"k", idle}, {"k-longer", longer.ID}} {
		if err := b.AbortUpload(t.Context(), "bucket", u.key, u.id); err != nil {
			t.Fatal(err)
		}
	}
	for _, of := range [][2]string{{"another", "k"}, {"bucket", "j"}, {"bucket", "k"}} {
		if err := b.Delete(t.Context(), of[0], of[1], Conditions{}); err != nil {
			t.Fatal(err)
		}
	}
	b.gone(t)
	if r, err := b.Scrub(t.Context(), ScrubOptions{}, nil); err != nil || r.Versions != 1 || r.Unreadable != 0 || r.Lost != nil {
		t.Errorf("%+v, %v", r, err)
	}
	b.unreadable(t, 0)
}

// TestReadsFindTheUnreadable: each version counts once, as long as it is there; that stores
// don't answer is no sign of it, neither to a read nor to a scrub, nor does that scrub take
// anything back.
func TestReadsFindTheUnreadable(t *testing.T) {
	t.Parallel()
	var out written
	b := setup(t, object.Spread, 4, 2, logged(&out))
	o, other := b.put(t, "k", noise(1, 5000)), b.put(t, "other", noise(2, 5000))
	b.settled(t)
	fails := func(key string) {
		t.Helper()
		if _, err := b.read(t.Context(), key, Range{}); !errors.Is(err, ErrTooFew) {
			t.Fatalf("read of %s: %v", key, err)
		}
	}
	for _, s := range b.stores[1:] {
		kill(s)
	}
	fails("k")
	b.unreadable(t, 0)
	r, err := b.Scrub(t.Context(), ScrubOptions{}, nil)
	want := []Name{
		{Bucket: "bucket", Key: "k", Version: o.Version, Unsure: true},
		{Bucket: "bucket", Key: "other", Version: other.Version, Unsure: true},
	}
	if err != nil || r.Unreadable != 2 || !reflect.DeepEqual(r.Lost, want) {
		t.Fatalf("%+v, %v, want %+v", r, err, want)
	}
	b.unreadable(t, 0)
	for _, s := range b.stores[1:] {
		heal(s)
	}
	b.lose(t, o.Version)
	for range 3 {
		fails("k")
	}
	b.check(t, "other", noise(2, 5000))
	b.unreadable(t, 1)
	if n := out.count(`"warn"`, "a read found", o.Version); n != 1 {
		t.Errorf("logged %d times", n)
	}
	kill(b.stores[3])
	if r, err := b.Scrub(t.Context(), ScrubOptions{}, nil); err != nil || len(r.Lost) != 1 || !r.Lost[0].Unsure {
		t.Errorf("%+v, %v", r, err)
	}
	b.unreadable(t, 1)
	heal(b.stores[3])
	b.put(t, "k", noise(3, 5000))
	b.gone(t)
	if r, err := b.Scrub(t.Context(), ScrubOptions{Repair: true}, nil); err != nil || r.Lost != nil {
		t.Errorf("%+v, %v", r, err)
	}
	b.unreadable(t, 0)
}

// TestLostIsBounded: what is beyond the names is counted.
func TestLostIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Shared, 0, 0, nil)
	s := &scrubbing{c: b.Coder, number: b.Coder.unreadable.begin()}
	for i := range maxLost + 5 {
		v := &held{Version: &object.Version{Key: "k", ID: fmt.Sprintf("%04d", maxLost+5-i)}}
		if err := s.lost(v, false); err != nil {
			t.Fatal(err)
		}
	}
	s.end(true)
	if s.report.Unreadable != maxLost+5 || len(s.report.Lost) != maxLost ||
		s.report.Lost[0] != (Name{Key: "k", Version: "0006"}) || s.report.Lost[maxLost-1].Version != fmt.Sprint(maxLost+5) {
		t.Errorf("%d, %d names: %+v", s.report.Unreadable, len(s.report.Lost), s.report.Lost[:1])
	}
	if n := b.Coder.unreadable.count(); n != maxLost+5 {
		t.Errorf("%d are unreadable", n)
	}
	for range 2 { // None of them is there, and it is looked at some a time.
		b.Coder.unreadable.forget(b.isGone)
	}
	b.unreadable(t, 0)
}

// TestUnreadableIsBounded: a scrub counts what there is no room for, and one that ends
// forgets what was found before it only.
func TestUnreadableIsBounded(t *testing.T) {
	t.Parallel()
	var u unreadable
	for i := range maxUnreadable {
		if news, kept := u.note(fmt.Sprint(i)); !news || !kept {
			t.Fatal(i, news, kept)
		}
	}
	if news, kept := u.note("more"); !news || kept {
		t.Error(news, kept)
	}
	scrub := u.begin()
	if news, kept := u.note("7"); news || !kept {
		t.Error(news, kept)
	}
	u.renew("8")
	u.renew("unknown")
	u.end(scrub, 5)
	if n := u.count(); n != 2+5 {
		t.Error(n)
	}
	u.end(u.begin(), 0)
	if n := u.count(); n != 0 {
		t.Error(n)
	}
}

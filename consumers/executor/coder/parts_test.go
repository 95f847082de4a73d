package coder

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
)

// TestWindow: once shut, memory is neither read nor written, whatever a task does.
func TestWindow(t *testing.T) {
	t.Parallel()
	memory := make([]byte, 8)
	w := &window{b: memory}
	if n, err := w.Write([]byte("12345")); n != 5 || err != nil || w.done() {
		t.Fatal(n, err)
	}
	if n, err := w.Write([]byte("6789")); n != 3 || !errors.Is(err, io.ErrShortWrite) || !w.done() {
		t.Fatal(n, err)
	}
	if n := w.shut(); n != 8 || w.shut() != 8 {
		t.Fatal(n)
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, errShut) {
		t.Error(err)
	}
	if _, err := w.Read(make([]byte, 1)); !errors.Is(err, errShut) {
		t.Error(err)
	}
	if string(memory) != "12345678" {
		t.Errorf("%s", memory)
	}
	got, err := io.ReadAll(&window{b: memory})
	if err != nil || string(got) != "12345678" {
		t.Error(got, err)
	}
}

// TestStream: a blob comes about of its pieces, and one that is given up in the midst
// leaves none and no goroutine.
func TestStream(t *testing.T) {
	t.Parallel()
	m := chunks.NewMemory("m")
	var wg sync.WaitGroup
	place := object.Place{Store: "m", Key: "k"}
	s := newStream(t.Context(), wg.Go, m.Put, 0, place, 6)
	for _, piece := range []string{"ab", "cd", "ef"} {
		if err := s.feed(t.Context(), []byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	var got bytes.Buffer
	if _, err := m.Get(t.Context(), "k", 0, 10, &got); err != nil || got.String() != "abcdef" {
		t.Fatal(got.String(), err)
	}

	place.Key = "half"
	s = newStream(t.Context(), wg.Go, m.Put, 0, place, 6)
	if err := s.feed(t.Context(), []byte("ab")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errLagging)
	if err := s.feed(ctx, []byte("cd")); err != nil && !errors.Is(err, errLagging) {
		t.Fatal(err)
	}
	if err := s.close(ctx); err == nil {
		t.Fatal("half a blob")
	}
	wg.Wait()
	if _, err := m.Get(t.Context(), "half", 0, 10, io.Discard); !errors.Is(err, chunks.ErrNotFound) {
		t.Fatal(err)
	}

	place.Key = "more"
	s = newStream(t.Context(), wg.Go, m.Put, 0, place, 3)
	_ = s.feed(t.Context(), []byte("abcd"))
	if err := s.close(t.Context()); !errors.Is(err, chunks.ErrSize) {
		t.Fatal(err)
	}
	wg.Wait()
}

// TestHealth: stores are ordered by how long tasks of their size take; failures put one
// last, and an answer brings it back.
func TestHealth(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	fast, slow, bad, fresh := &store{mark: markOurs}, &store{mark: markOurs}, &store{mark: markOurs}, &store{mark: markOurs}
	for range 20 {
		fast.done(now, 25*time.Millisecond, 1e6)
		slow.done(now, 250*time.Millisecond, 1e6)
		bad.done(now, 25*time.Millisecond, 1e6)
	}
	if fast.rank() != bad.rank() || fast.rank() >= slow.rank() || fresh.rank() >= fast.rank() {
		t.Error(fast.rank(), slow.rank(), bad.rank(), fresh.rank())
	}
	small := &store{mark: markOurs}
	small.done(now, 5*time.Millisecond, 100)
	if small.rank() != fast.rank() {
		t.Error("a small task and a large one of one store differ")
	}
	for i := range deadAfter {
		if died := bad.failed(now); died != (i == deadAfter-1) {
			t.Errorf("failure %d: dead %v", i, died)
		}
	}
	if !bad.isDead() || bad.rank() <= slow.rank() || bad.failed(now) {
		t.Error("a dead store isn't last, or died twice")
	}
	if bad.doubtful(now.Add(time.Second), 2*time.Second) || !bad.doubtful(now.Add(2*time.Second), 2*time.Second) || fast.doubtful(now.Add(time.Hour), time.Second) {
		t.Error("who is looked at")
	}
	bad.probed(now, time.Millisecond)
	if bad.isDead() || bad.rank() >= slow.rank() {
		t.Error("an answer didn't bring it back")
	}
	before := slow.rank()
	slow.cancelled(time.Millisecond, 1e6) // tells nothing
	if slow.rank() != before {
		t.Error("a task that was cancelled early made it faster")
	}
	for range 30 {
		fast.cancelled(500*time.Millisecond, 1e6) // lasted at least so long
	}
	if fast.rank() <= before {
		t.Error("tasks that are always cancelled late don't count")
	}
	for range 10 {
		slow.probed(now, time.Millisecond)
	}
	if slow.rank() >= before {
		t.Error("a store that was slow is never asked again")
	}
}

// TestMemoryLine: as many wait for memory as may, others are refused.
func TestMemoryLine(t *testing.T) {
	t.Parallel()
	m := newMemory(0, 1, object.SharedCoding(), 1<<20)
	all, err := m.take(t.Context(), object.SharedCoding(), 1<<20, 4)
	if err != nil || all.held != m.most {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() { _, err := m.take(ctx, object.SharedCoding(), 1<<20, 1); waited <- err }()
	for m.waiting.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if _, err := m.take(t.Context(), object.SharedCoding(), 1<<20, 1); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	if all.more() || m.spare() {
		t.Error("there is none")
	}
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	all.give()
	all.give()
	if l, err := m.take(t.Context(), object.SharedCoding(), 1<<20, 4); err != nil || l.held != m.most {
		t.Error(err)
	}
}

func TestDurability(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Durability{"k": {}, "n": {All: true}, "k+1": {Extra: 1}, "k+12": {Extra: 12}} {
		if d, err := ParseDurability(text); err != nil || d != want || d.String() != text {
			t.Errorf("%s: %+v, %v", text, d, err)
		}
	}
	for _, text := range []string{"", "k+", "k+0", "k-1", "n+1", "k+99", "2"} {
		if _, err := ParseDurability(text); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if n := (Durability{Extra: 3}).need(6, 4); n != 6 {
		t.Error(n)
	}
}

// TestKeys: an id comes back from the keys of its blobs, and from no other key.
func TestKeys(t *testing.T) {
	t.Parallel()
	c := &Coder{o: Options{Name: "c"}}
	id := newID()
	for _, key := range []string{c.blobKey(id, 0, ""), c.blobKey(id, 11, "ab12")} {
		if c.versionOf(key) != id || chunks.CheckKey(key) != nil {
			t.Errorf("%s: %s", key, c.versionOf(key))
		}
	}
	for _, key := range []string{"c/owner", "c/log/1", "c/b/xx/short.0", "d/b/" + id[:2] + "/" + id + ".0", "c/b/" + id} {
		if got := c.versionOf(key); got != "" {
			t.Errorf("%s: %s", key, got)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	store := func(names ...string) (list []chunks.Store) {
		for _, name := range names {
			list = append(list, chunks.NewMemory(name))
		}
		return list
	}
	for name, change := range map[string]func(*Options){
		"no name":              func(o *Options) { o.Name = "" },
		"no chooser":           func(o *Options) { o.Chooser = nil },
		"two stores of shared": func(o *Options) { o.Layout, o.Stores = object.Shared, store("a", "b") },
		"too few stores":       func(o *Options) { o.Stores = store("a") },
		"one name twice":       func(o *Options) { o.Stores = store("a", "a") },
		"no coding":            func(o *Options) { o.K = 3 },
		"too durable":          func(o *Options) { o.Durability.Extra = 2 },
	} {
		o := options(t, object.Spread, 2, 1)
		o.Chooser, o.Stores = &switched{}, store("a", "b")
		change(&o)
		if c, err := Open(t.Context(), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				_ = c.Close()
			}
		}
	}
}

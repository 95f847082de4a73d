package coder

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
)

// TestNothingIsDeletedBeforeItIsShipped: what a rebuilt catalog names is there, although
// the lost one had let go of it already.
func TestNothingIsDeletedBeforeItIsShipped(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Shared, 0, 0, nil)
	b.code.set(1, 1)
	old := noise(1, 5000)
	b.put(t, "overwritten", old)
	b.put(t, "deleted", old)
	b.settled(t)
	if err := b.shipper.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.stores[0].set(func(s *faulty) {
		s.put = func(_ context.Context, key string) error {
			if strings.HasPrefix(key, "test/log/") {
				return errKilled
			}
			return nil
		}
	})
	b.put(t, "overwritten", noise(2, 5000))
	if err := b.Delete(t.Context(), "bucket", "deleted", Conditions{}); err != nil {
		t.Fatal(err)
	}
	for b.counts.get("repaired") < 3 { // the background is at work
		b.kick()
		time.Sleep(time.Millisecond)
	}
	if s, err := b.Stats(t.Context()); err != nil || s.Deletes < 4 {
		t.Fatalf("%+v, %v", s, err)
	}
	o := b.options
	o.State, o.Adopt, o.Stores = t.TempDir(), true, []chunks.Store{b.stores[0].Store}
	other := &bench{options: o, stores: b.stores, counts: b.counts, code: b.code}
	other.start(t)
	defer other.stop()
	other.check(t, "overwritten", old)
	other.check(t, "deleted", old)

	b.replacedSoon(t)
	if r, err := other.Scrub(t.Context(), ScrubOptions{Repair: true, Orphans: true}, nil); err != nil || r.Failed+r.Unreadable != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	other.clean(t) // what the lost one wrote and nobody names is gone
	if n := other.blobs(t); n != 4 {
		t.Errorf("%d blobs", n)
	}
}

// TestCatalogSync: with it an answer means that the loss of the state loses nothing.
func TestCatalogSync(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Spread, 4, 2, func(o *Options) { o.CatalogSync, o.LogEvery = true, 200*time.Millisecond })
	data := noise(1, 5000)
	b.put(t, "k", data)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for _, s := range b.stores {
		s.set(func(s *faulty) {
			s.put = func(_ context.Context, key string) error {
				if strings.HasPrefix(key, "test/log/") {
					return errKilled
				}
				return nil
			}
		})
	}
	_, err := b.Put(ctx, PutInput{Bucket: "bucket", Key: "late", Body: bytes.NewReader(data), Size: 5000})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("answered without the log: %v", err)
	}
	o := b.options
	o.State, o.Adopt, o.Stores = t.TempDir(), true, nil
	for _, s := range b.stores {
		o.Stores = append(o.Stores, s.Store)
	}
	other := &bench{options: o, stores: b.stores, counts: b.counts, code: b.code}
	other.start(t)
	defer other.stop()
	other.check(t, "k", data)
	b.replacedSoon(t)
}

// replacedSoon waits until the coder has found out that another one has its stores, which
// it does when it ships, and closes it.
func (b *bench) replacedSoon(t *testing.T) {
	t.Helper()
	for _, s := range b.stores {
		heal(s)
	}
	go func() { _ = b.shipper.Sync(context.Background()) }()
	deadline := time.Now().Add(patience)
	for !b.replaced.Load() {
		if time.Now().After(deadline) {
			t.Fatal("it goes on")
		}
		time.Sleep(time.Millisecond)
	}
	b.stop = func() {}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

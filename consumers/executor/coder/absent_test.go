package coder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
)

// unmount empties a store as a disk that isn't mounted does, and gives what was in it.
func unmount(t *testing.T, s *faulty) map[string][]byte {
	t.Helper()
	list, err := s.Store.List(t.Context(), "", "", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	had := make(map[string][]byte)
	for _, e := range list {
		var b bytes.Buffer
		if _, err := s.Store.Get(t.Context(), e.Key, 0, e.Bytes, &b); err != nil {
			t.Fatal(err)
		}
		had[e.Key] = b.Bytes()
		if err := s.Store.Delete(t.Context(), e.Key); err != nil {
			t.Fatal(err)
		}
	}
	return had
}

// mount puts back what was there.
func mount(t *testing.T, s *faulty, had map[string][]byte) {
	t.Helper()
	unmount(t, s) // what lies under it is not seen any more
	for key, b := range had {
		if err := s.Store.Put(t.Context(), key, bytes.NewReader(b), int64(len(b))); err != nil {
			t.Fatal(err)
		}
	}
}

// absent names the stores that are.
func (b *bench) absent(t *testing.T) (names []string) {
	t.Helper()
	s, err := b.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range s.Stores {
		if one.Absent {
			names = append(names, one.Name)
			if !one.Dead {
				t.Errorf("%+v", one)
			}
		}
	}
	return names
}

// isAbsent waits until a store is, or isn't.
func (b *bench) isAbsent(t *testing.T, i int, want bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for b.Coder.stores[i].isMarked() == want {
		if time.Now().After(deadline) {
			t.Fatalf("store %d: never", i)
		}
		b.Coder.stores[i].suspectNow()
		time.Sleep(time.Millisecond)
	}
}

// fill puts objects of several sizes.
func (b *bench) fill(t *testing.T, what string) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	for i, size := range []int{1, 100, 5000, testSegment, 2*testSegment + 999} {
		key := fmt.Sprint(what, "/", i)
		all[key] = noise(uint64(i), size)
		b.put(t, key, all[key])
	}
	return all
}

func (b *bench) checkAll(t *testing.T, all map[string][]byte) {
	t.Helper()
	for key, want := range all {
		b.check(t, key, want)
	}
}

// empty tells whether nothing was written to a store.
func empty(t *testing.T, s *faulty) {
	t.Helper()
	list, err := s.Store.List(t.Context(), "", "", 10)
	if err != nil || len(list) > 0 {
		t.Errorf("it was written to: %v, %v", list, err)
	}
}

// TestAStoreIsEmptyAtTheStart though the catalog says that chunks are in it: reads and
// writes go around it, nothing is written to it, until the operator says that it is new.
func TestAStoreIsEmptyAtTheStart(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Spread, 4, 2, nil)
	data := b.fill(t, "before")
	b.settled(t)
	b.stop()
	unmount(t, b.stores[1])
	b.start(t)
	if got := b.absent(t); len(got) != 1 || got[0] != "store-1" {
		t.Fatal(got)
	}
	b.checkAll(t, data)
	for key, want := range b.fill(t, "while") {
		data[key] = want
	}
	b.checkAll(t, data)
	if err := b.shipper.Sync(t.Context()); err != nil {
		t.Error(err)
	}
	empty(t, b.stores[1])
	if b.counts.get("absent/store-1") != 1 {
		t.Error("it is not counted, or counted again")
	}
	b.stop()
	b.start(t) // which knows no more
	if got := b.absent(t); len(got) != 1 {
		t.Fatal(got)
	}
	empty(t, b.stores[1])
	if _, err := b.TakeIn(t.Context(), "store-9"); !errors.Is(err, ErrNoStore) {
		t.Error(err)
	}
	if _, err := b.TakeIn(t.Context(), "store-0"); !errors.Is(err, ErrNotAbsent) {
		t.Error(err)
	}
	if n, err := b.TakeIn(t.Context(), "store-1"); err != nil || n != 5 {
		t.Errorf("%d versions, %v", n, err)
	}
	if _, err := b.TakeIn(t.Context(), "store-1"); !errors.Is(err, ErrNotAbsent) {
		t.Error(err)
	}
	b.clean(t)
	b.checkAll(t, data)
	kill(b.stores[0])
	kill(b.stores[3])
	b.checkAll(t, data) // of the two others, of which it is one
}

// TestADiskIsLostAndComesBack while the coder runs: it is found out, and what was written to
// the folder under it meanwhile is written to it when it is back.
func TestADiskIsLostAndComesBack(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Spread, 4, 2, nil)
	data := b.fill(t, "before")
	b.settled(t)
	had := unmount(t, b.stores[2])
	for key, want := range b.fill(t, "unnoticed") {
		data[key] = want
	}
	b.isAbsent(t, 2, true)
	before, err := b.stores[2].Store.List(t.Context(), "", "", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range b.fill(t, "noticed") {
		data[key] = want
	}
	b.checkAll(t, data)
	if after, err := b.stores[2].Store.List(t.Context(), "", "", 1<<20); err != nil || len(after) > len(before) {
		t.Errorf("%d blobs, %d before it was noticed, %v", len(after), len(before), err)
	}
	mount(t, b.stores[2], had)
	b.isAbsent(t, 2, false)
	b.clean(t)
	b.checkAll(t, data)
}

// TestEmptyStoresThatAreNew are taken in by themselves: at a first start, when they are
// added by the configuration, and when they didn't answer at the start.
func TestEmptyStoresThatAreNew(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Spread, 4, 2, nil)
	if got := b.absent(t); got != nil {
		t.Fatal(got)
	}
	data := b.fill(t, "before")
	b.settled(t)
	b.stop()
	for i := 4; i < 6; i++ {
		s := &faulty{Store: chunks.NewMemory(fmt.Sprintf("store-%d", i))}
		b.stores, b.options.Stores = append(b.stores, s), append(b.options.Stores, s)
	}
	kill(b.stores[5])
	b.start(t)
	if got := b.absent(t); got != nil {
		t.Fatal(got)
	}
	if !b.Coder.stores[4].isMarked() || b.Coder.stores[5].isMarked() {
		t.Error("who has answered")
	}
	heal(b.stores[5])
	b.isAbsent(t, 5, false)
	for key, want := range b.fill(t, "after") {
		data[key] = want
	}
	b.clean(t)
	b.checkAll(t, data)
}

// TestTheOnlyStoreIsEmpty: the coder starts, so that its operator can be told, and
// serves nothing.
func TestTheOnlyStoreIsEmpty(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Shared, 0, 0, nil)
	data := b.fill(t, "before")
	b.settled(t)
	b.stop()
	had := unmount(t, b.stores[0])
	b.start(t)
	if got := b.absent(t); len(got) != 1 {
		t.Fatal(got)
	}
	if _, err := b.read(t.Context(), "before/1", Range{}); !errors.Is(err, ErrTooFew) {
		t.Error(err)
	}
	if _, err := b.Put(t.Context(), PutInput{Bucket: "bucket", Key: "k", Body: strings.NewReader("x"), Size: 1}); !errors.Is(err, ErrTooFew) {
		t.Error(err)
	}
	empty(t, b.stores[0])
	mount(t, b.stores[0], had)
	b.isAbsent(t, 0, false)
	b.checkAll(t, data)
	b.clean(t)
}

// TestAdoptLeavesEmptyStoresAlone: a catalog that is rebuilt says what was in them.
func TestAdoptLeavesEmptyStoresAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Spread, 4, 2, nil)
	data := b.fill(t, "before")
	b.settled(t)
	if err := b.shipper.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.stop()
	unmount(t, b.stores[3])
	b.options.State, b.options.Adopt = t.TempDir(), true
	b.start(t)
	if got := b.absent(t); len(got) != 1 || got[0] != "store-3" {
		t.Fatal(got)
	}
	b.checkAll(t, data)
	empty(t, b.stores[3])
	if _, err := b.TakeIn(t.Context(), "store-3"); err != nil {
		t.Fatal(err)
	}
	b.clean(t)
	b.checkAll(t, data)
}

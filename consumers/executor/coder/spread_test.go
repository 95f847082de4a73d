package coder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
)

// TestWritesWithLostStores: as long as durability can be had, writes are answered
// whatever the others do; what they lack is repaired when they are back.
func TestWritesWithLostStores(t *testing.T) {
	t.Parallel()
	befall := map[string]func(*faulty){
		"killed": kill,
		"hangs":  func(s *faulty) { hang(s, func() {}) },
		"breaks": func(s *faulty) { // in the midst of a blob
			s.set(func(s *faulty) { s.cut = testSegment / 8 })
		},
	}
	for name, befall := range befall {
		for _, d := range []Durability{{}, {Extra: 1}} {
			t.Run(name+"-"+d.String(), func(t *testing.T) {
				t.Parallel()
				b := setup(t, object.Spread, 6, 3, func(o *Options) {
					o.Durability, o.Patience, o.Retry, o.TaskTimeout = d, 50*time.Millisecond, time.Hour, 300*time.Millisecond
				})
				befall(b.stores[1])
				befall(b.stores[4])
				for i, size := range sizes {
					b.put(t, fmt.Sprint(size), noise(uint64(i), size))
					b.check(t, fmt.Sprint(size), noise(uint64(i), size))
				}
				if s, err := b.Stats(t.Context()); err != nil || s.Unintended == 0 {
					t.Fatalf("nothing lacks: %+v, %v", s, err)
				}
				b.healAll(t)
				b.clean(t)
				if n := b.blobs(t); n != 6*(len(sizes)-1) {
					t.Errorf("%d blobs", n)
				}
				for i, size := range sizes {
					b.check(t, fmt.Sprint(size), noise(uint64(i), size))
				}
			})
		}
	}
}

// healAll ends all troubles, and lets the coder find out.
func (b *bench) healAll(t *testing.T) {
	t.Helper()
	for _, s := range b.stores {
		heal(s)
	}
	for _, s := range b.Coder.stores {
		b.probe(t.Context(), s)
	}
	b.forgive()
}

// TestTooFewStores: a write that durability can't have is refused, and leaves nothing.
func TestTooFewStores(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Spread, 4, 2, func(o *Options) { o.Durability = Durability{Extra: 1} })
	before := noise(7, 6000)
	b.put(t, "k", before)
	b.settled(t)
	kill(b.stores[0])
	kill(b.stores[1])
	for _, size := range []int{5000, 3 * testSegment} { // of tiny ones a copy more is enough
		_, err := b.Put(t.Context(), PutInput{Bucket: "bucket", Key: "k", Body: bytes.NewReader(noise(1, size)), Size: int64(size)})
		if !errors.Is(err, ErrTooFew) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	b.check(t, "k", before)
	kill(b.stores[2])
	if _, err := b.read(t.Context(), "k", Range{}); !errors.Is(err, ErrTooFew) {
		t.Errorf("one store of four: %v", err)
	}
	b.healAll(t)
	b.clean(t)
	if n := b.blobs(t); n != 4 {
		t.Errorf("%d blobs", n)
	}
}

// TestSpareStores: with more stores than n, blobs of a store that is not configured any
// more move to another one.
func TestSpareStores(t *testing.T) {
	t.Parallel()
	b := newSpread(t, 6, 4, 2)
	for i, size := range sizes {
		b.put(t, fmt.Sprint(size), noise(uint64(i), size))
	}
	b.settled(t)
	b.stop()
	b.options.Stores = slices.Delete(slices.Clone(b.options.Stores), 2, 3)
	b.start(t)
	for i, size := range sizes {
		b.check(t, fmt.Sprint(size), noise(uint64(i), size))
	}
	if r, err := b.Scrub(t.Context(), ScrubOptions{Repair: true}, nil); err != nil || r.Failed+r.Unreadable != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	ids, err := b.catalog.Versions("", 1000)
	if err != nil || len(ids) != len(sizes) {
		t.Fatal(len(ids), err)
	}
	for _, id := range ids {
		v, rest, err := b.catalog.Version(id)
		if err != nil || !rest.None() {
			t.Fatal(rest, err)
		}
		of := make(map[string]bool)
		for _, p := range v.Places {
			if of[p.Store] || p.Store == "store-2" {
				t.Errorf("%v", v.Places)
			}
			of[p.Store] = true
		}
	}
	for i, size := range sizes {
		b.check(t, fmt.Sprint(size), noise(uint64(i), size))
	}
	if r, err := b.Scrub(t.Context(), ScrubOptions{}, nil); err != nil || len(r.Faults) != 0 || r.Lacking+r.Unreachable != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
}

// newSpread is a coder of (n,k) over more stores.
func newSpread(t *testing.T, stores, n, k int) *bench {
	t.Helper()
	var list []*faulty
	b := setup(t, object.Spread, n, k, func(o *Options) {
		for i := range stores {
			s := &faulty{Store: chunks.NewMemory(fmt.Sprintf("store-%d", i))}
			list = append(list, s)
			o.Stores = append(o.Stores, s)
		}
	})
	b.stores = list
	return b
}

// TestAStoreThatHangsIsLeft: a store that never answers soon counts as dead, and then
// writes don't ask it.
func TestAStoreThatHangsIsLeft(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Spread, 4, 2, func(o *Options) { o.Patience, o.TaskTimeout = 20*time.Millisecond, 300*time.Millisecond })
	asked := make(chan struct{}, 1000)
	b.stores[0].set(func(s *faulty) {
		s.put = func(ctx context.Context, key string) error {
			asked <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}
		s.get = func(ctx context.Context, _ string, _ []byte, _ error) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	deadline := time.Now().Add(20 * time.Second)
	for i := 0; !b.Coder.stores[0].isDead(); i++ {
		b.put(t, fmt.Sprint(i%3), noise(uint64(i), 5000))
		if time.Now().After(deadline) {
			t.Fatal("it still counts as living")
		}
	}
	for len(asked) > 0 {
		<-asked
	}
	for i := range 10 {
		b.put(t, fmt.Sprint(i%3), noise(uint64(i), 5000))
	}
	if n := len(asked); n > 2 { // its own figure may be of a write that was begun before
		t.Errorf("asked %d times although it is dead", n)
	}
	b.healAll(t)
	b.clean(t)
}

// cutting is a reader that fails after so many bytes.
type cutting struct {
	r    io.Reader
	left int
}

func (c *cutting) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errKilled
	}
	n, err := c.r.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// TestWriteAsksTheDeadAtLast: a store that is taken for dead is asked after all when one
// that was thought to live fails, so that the write has as many as durability asks for.
func TestWriteAsksTheDeadAtLast(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Spread, 4, 2, func(o *Options) { o.Durability, o.Retry = Durability{Extra: 1}, time.Hour })
	for _, size := range []int{10, 5000} {
		kill(b.stores[1])
		s := b.Coder.stores[2]
		s.mu.Lock()
		s.dead, s.failures, s.seen = true, deadAfter, time.Now()
		s.mu.Unlock()
		b.put(t, "k", noise(1, size))
		b.healAll(t)
		b.check(t, "k", noise(1, size))
		b.settled(t)
	}
	b.clean(t)
}

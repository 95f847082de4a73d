package coder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"penstock/consumers/executor/coder/object"
)

func whole() bool { return os.Getenv("PENSTOCK_WHOLE") == "1" }

var errKilled = errors.New("store is killed")

// trouble is what befalls a store; heal ends it.
type trouble struct {
	name   string
	befall func(t *testing.T, b *bench, s *faulty)
}

// alter changes every blob of objects that a store has.
func alter(t *testing.T, s *faulty, change func(key string, b []byte) ([]byte, bool)) {
	t.Helper()
	list, err := s.Store.List(t.Context(), "test/b/", "", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		var in bytes.Buffer
		if _, err := s.Store.Get(t.Context(), e.Key, 0, e.Bytes, &in); err != nil {
			t.Fatal(err)
		}
		out, keep := change(e.Key, in.Bytes())
		if !keep {
			err = s.Store.Delete(t.Context(), e.Key)
		} else {
			err = s.Store.Put(t.Context(), e.Key, bytes.NewReader(out), int64(len(out)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func kill(s *faulty) {
	s.set(func(s *faulty) {
		s.get = func(context.Context, string, []byte, error) ([]byte, error) { return nil, errKilled }
		s.put = func(context.Context, string) error { return errKilled }
		s.del = func(context.Context, string) error { return errKilled }
	})
}

func heal(s *faulty) { s.set(func(s *faulty) { s.get, s.put, s.del, s.cut = nil, nil, nil, 0 }) }

var troubles = []trouble{
	{"killed", func(_ *testing.T, _ *bench, s *faulty) { kill(s) }},
	{"wiped", func(t *testing.T, _ *bench, s *faulty) {
		alter(t, s, func(string, []byte) ([]byte, bool) { return nil, false })
		kill(s)
	}},
	{"empty", func(t *testing.T, _ *bench, s *faulty) {
		alter(t, s, func(string, []byte) ([]byte, bool) { return nil, false })
	}},
	{"flipped", func(t *testing.T, _ *bench, s *faulty) {
		r := rand.New(rand.NewPCG(1, 2))
		alter(t, s, func(_ string, b []byte) ([]byte, bool) {
			for range 1 + r.IntN(3) {
				b[r.IntN(len(b))] ^= 1 << r.IntN(8)
			}
			return b, true
		})
	}},
	{"truncated", func(t *testing.T, _ *bench, s *faulty) {
		r := rand.New(rand.NewPCG(3, 4))
		alter(t, s, func(_ string, b []byte) ([]byte, bool) { return b[:r.IntN(len(b))], true })
	}},
	{"another's", func(t *testing.T, _ *bench, s *faulty) {
		var before []byte
		for range 2 { // round, so that the first gets the last one's
			alter(t, s, func(_ string, b []byte) ([]byte, bool) {
				b, before = before, b
				return b, b != nil
			})
		}
	}},
	{"lies", func(_ *testing.T, _ *bench, s *faulty) { // about what it has, for a time
		s.set(func(s *faulty) {
			s.get = func(_ context.Context, key string, b []byte, err error) ([]byte, error) {
				if err == nil && strings.HasPrefix(key, "test/b/") {
					b = bytes.Clone(b)
					for i := range b {
						b[i] ^= byte(i)
					}
				}
				return b, err
			}
		})
	}},
	{"slow", func(_ *testing.T, _ *bench, s *faulty) {
		s.set(func(s *faulty) {
			s.get = func(ctx context.Context, _ string, b []byte, err error) ([]byte, error) {
				t := time.NewTimer(50 * time.Millisecond)
				defer t.Stop()
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-t.C:
					return b, err
				}
			}
		})
	}},
}

// combinations are the ways to choose k of n.
func combinations(n, k int) (all [][]int) {
	var choose func(from int, have []int)
	choose = func(from int, have []int) {
		if len(have) == k {
			all = append(all, slices.Clone(have))
			return
		}
		for i := from; i < n; i++ {
			choose(i+1, append(have, i))
		}
	}
	choose(0, nil)
	return all
}

// TestStoresInTrouble: whatever befalls any n−k stores, every read is right; afterwards
// everything is repaired, and a scrub finds nothing.
func TestStoresInTrouble(t *testing.T) {
	t.Parallel()
	for _, nk := range [][2]int{{4, 2}, {6, 4}} {
		n, k := nk[0], nk[1]
		for ti, trouble := range troubles {
			lost := combinations(n, n-k)
			if !whole() {
				r := rand.New(rand.NewPCG(uint64(n), uint64(ti)))
				r.Shuffle(len(lost), func(i, j int) { lost[i], lost[j] = lost[j], lost[i] })
				lost = lost[:2]
			}
			t.Run(fmt.Sprintf("%d-%d-%s", n, k, trouble.name), func(t *testing.T) {
				t.Parallel()
				b := setup(t, object.Spread, n, k, func(o *Options) { o.Retry = time.Hour })
				for i, stores := range lost {
					b.trouble(t, trouble, i, stores)
				}
			})
		}
	}
}

func (b *bench) trouble(t *testing.T, how trouble, seed int, stores []int) {
	t.Helper()
	sizes := []int{1, 100, 5000, testSegment, 2*testSegment + 999}
	key := func(i int) string { return fmt.Sprintf("%s/%v/%d", how.name, stores, i) }
	data := make([][]byte, len(sizes))
	for i, size := range sizes {
		data[i] = noise(uint64(100*seed+i), size)
		b.put(t, key(i), data[i])
	}
	b.settled(t)
	for _, s := range stores {
		how.befall(t, b, b.stores[s])
	}
	for round := range 2 {
		for i, want := range data {
			b.code.set(b.options.K+round, b.options.K)
			b.check(t, key(i), want)
			from := len(want) / 3
			got, err := b.read(t.Context(), key(i), Range{Set: true, From: int64(from), To: int64(from + 99)})
			if err != nil || !bytes.Equal(got, want[from:min(len(want), from+100)]) {
				t.Fatalf("%s: range of %d bytes: %v", key(i), len(got), err)
			}
		}
	}
	for _, s := range stores {
		heal(b.stores[s])
	}
	for _, s := range b.Coder.stores {
		b.probe(t.Context(), s)
	}
	if r, err := b.Scrub(t.Context(), ScrubOptions{Repair: true, Orphans: true}, nil); err != nil || r.Failed != 0 || r.Unreadable != 0 {
		t.Fatalf("%s %v: %+v, %v", how.name, stores, r, err)
	}
	b.clean(t)
	for i, want := range data {
		b.check(t, key(i), want)
	}
}

// clean waits until nothing is left to do and sees to it that a scrub finds nothing.
func (b *bench) clean(t *testing.T) {
	t.Helper()
	b.settled(t)
	r, err := b.Scrub(t.Context(), ScrubOptions{Orphans: true}, nil)
	if err != nil || len(r.Faults) != 0 || r.Lacking+r.Unreachable+r.Unreadable+r.Staged+r.Orphans != 0 {
		t.Fatalf("not clean: %+v, %v", r, err)
	}
	if check, err := b.catalog.Check(t.Context()); err != nil || len(check.Problems) != 0 || check.Stored != check.Counted {
		t.Fatalf("catalog: %+v, %v", check, err)
	}
}

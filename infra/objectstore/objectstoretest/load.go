package objectstoretest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/infra/clock"
	"penstock/infra/objectstore"
)

// stream is n bytes that are not kept anywhere, and a look at the heap now and
// then.
type stream struct {
	left int64
	rand *rand.ChaCha8
	sum  hash.Hash
	heap *heap
}

func (s *stream) Read(b []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), s.left))
	_, _ = s.rand.Read(b[:n]) // it never fails
	s.sum.Write(b[:n])
	s.left -= int64(n)
	s.heap.look(n)
	return n, nil
}

// heap is by how much the heap has grown at most.
type heap struct {
	start, most int64
	since       int
}

func newHeap() *heap {
	runtime.GC()
	return &heap{start: inUse()}
}

func (h *heap) look(n int) {
	if h.since += n; h.since >= 1<<20 {
		h.since = 0
		h.most = max(h.most, inUse()-h.start)
	}
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// testLarge streams an object through: it is never in memory as a whole.
func testLarge(t *testing.T, s objectstore.Store, o *Options) {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	h := newHeap()
	in := &stream{left: o.Large, rand: rand.NewChaCha8([32]byte{1}), sum: sha256.New(), heap: h}
	put, err := s.Put(t.Context(), "o", "large", in, writable)
	ok(t, err)
	want := hex.EncodeToString(in.sum.Sum(nil))
	if put.Size != o.Large || put.Digest != want {
		t.Fatalf("put %+v, sent were %d bytes of %s", put, o.Large, want)
	}
	r, err := s.Open(t.Context(), "o", "large")
	ok(t, err)
	out := sha256.New()
	buf := make([]byte, 64<<10)
	for err == nil {
		var n int
		n, err = r.Read(buf)
		out.Write(buf[:n])
		h.look(n)
	}
	is(t, err, io.EOF)
	ok(t, r.Close())
	if got := hex.EncodeToString(out.Sum(nil)); got != want {
		t.Errorf("read %s, put was %s", got, want)
	}
	if d, err := s.Digest(t.Context(), "o", "large"); err != nil || d != want {
		t.Errorf("digest %s, %v", d, err)
	}
	if o.Memory >= 0 && h.most > o.Memory {
		t.Errorf("for %d bytes the heap grew by %d, at most %d are allowed", o.Large, h.most, o.Memory)
	}
	t.Logf("%d MiB through, the heap grew by %d KiB", o.Large>>20, h.most>>10)
}

// testMany: an owner with many objects is listed whole, and changes one by one.
func testMany(t *testing.T, s objectstore.Store, o *Options) {
	name := func(i int) string { return fmt.Sprintf("folder %d/object-%05d", i%7, i) }
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := w; i < o.Many; i += 8 {
				if _, err := s.Put(t.Context(), "o", name(i), strings.NewReader(name(i)), writable); err != nil {
					t.Errorf("object %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	l := list(t, s, "o")
	if len(l.Objects) != o.Many || !slices.IsSortedFunc(l.Objects, func(a, b objectstore.Object) int { return strings.Compare(a.Name, b.Name) }) {
		t.Fatalf("%d objects are listed, sorted or not", len(l.Objects))
	}
	for i := 0; i < o.Many; i += o.Many/10 + 1 {
		if got := get(t, s, "o", name(i)); got != name(i) {
			t.Errorf("object %d holds %q", i, got)
		}
		ok(t, s.Remove(t.Context(), "o", name(i), writable))
		if next := list(t, s, "o"); len(next.Objects) != len(l.Objects)-1 || next.Version == l.Version {
			t.Fatalf("%d objects after one of %d was removed", len(next.Objects), len(l.Objects))
		} else {
			l = next
		}
	}
	ok(t, s.Delete(t.Context(), "o", writable))
	wantMark(t, s, "o", absent)
}

// testReaders: who reads an object that is replaced meanwhile sees the old one or
// the new one.
func testReaders(t *testing.T, s objectstore.Store) {
	content := func(i int) string { return strings.Repeat(string(rune('a'+i%26)), 300_000+i) }
	put(t, s, "o", "a", content(0))
	r, err := s.Open(t.Context(), "o", "a")
	ok(t, err)
	head := make([]byte, 1000)
	_, err = io.ReadFull(r, head)
	ok(t, err)
	put(t, s, "o", "a", content(1))
	rest, err := io.ReadAll(r)
	ok(t, err)
	ok(t, r.Close())
	if string(head)+string(rest) != content(0) {
		t.Error("an object changed while it was read")
	}
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				got := get(t, s, "o", "a")
				if len(got) < 300_000 || strings.Trim(got, got[:1]) != "" || content(len(got)-300_000) != got {
					t.Errorf("an object of %d bytes is a mixture", len(got))
					return
				}
			}
		})
	}
	for i := range 20 {
		put(t, s, "o", "a", content(2+i))
	}
	close(done)
	wg.Wait()
}

// write lets 8 writers write to one owner: objects of their own, and one of all.
func write(t *testing.T, stores []objectstore.Store, rounds int) {
	t.Helper()
	const writers = 8
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			s := stores[w%len(stores)]
			for i := range rounds {
				for _, name := range []string{fmt.Sprintf("own-%d-%d", w, i), "shared"} {
					if _, err := s.Put(t.Context(), "o", name, strings.NewReader(fmt.Sprint(w, " ", i)), writable); err != nil {
						t.Errorf("writer %d: %v", w, err)
						return
					}
				}
				if i%3 == 2 {
					if err := s.Remove(t.Context(), "o", fmt.Sprintf("own-%d-%d", w, i-1), writable); err != nil {
						t.Errorf("writer %d: %v", w, err)
					}
				}
			}
		})
	}
	wg.Wait()
	l := list(t, stores[0], "o")
	want := 1 + writers*(rounds-rounds/3)
	if len(l.Objects) != want {
		t.Errorf("%d objects, want %d", len(l.Objects), want)
	}
	for w := range writers {
		name := fmt.Sprintf("own-%d-%d", w, rounds-1)
		if got, want := get(t, stores[0], "o", name), fmt.Sprint(w, " ", rounds-1); got != want {
			t.Errorf("%s holds %q", name, got)
		}
	}
	if got := get(t, stores[0], "o", "shared"); !strings.HasSuffix(got, fmt.Sprint(" ", rounds-1)) && len(got) < 3 {
		t.Errorf("the shared object holds %q", got)
	}
}

// testWriters: no write of 8 writers to one owner is lost or fails.
func testWriters(t *testing.T, s objectstore.Store) { write(t, []objectstore.Store{s}, 12) }

// testWritersOfTwo is the same with writers in two processes.
func testWritersOfTwo(t *testing.T, s objectstore.Store, o *Options) {
	write(t, []objectstore.Store{s, o.Other(t, s)}, 9)
}

// usually is how long an operation takes, about.
func usually(t *testing.T, op func()) time.Duration {
	t.Helper()
	start := clock.System().Now()
	for range 5 {
		op()
	}
	return clock.System().Now().Sub(start) / 5
}

func below(r *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(d) + 1))
}

// testRepeats ends operations at any moment, so that nobody knows whether they
// were done, and does them again: the result is that of doing them once.
func testRepeats(t *testing.T, s objectstore.Store) {
	r := rand.New(rand.NewPCG(1, 2))
	usual := usually(t, func() { put(t, s, "o", "a", "1") })
	broken := 0
	// unsure calls op with a context that ends soon, and again until it is done.
	unsure := func(op func(ctx context.Context) error) error {
		for try := 0; ; try++ {
			ctx, cancel := context.WithTimeout(t.Context(), below(r, usual))
			if try == 3 {
				cancel()
				return op(t.Context())
			}
			err := op(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			broken++
		}
	}
	for i := range 25 {
		name, content := fmt.Sprintf("%d", i%4), strings.Repeat(fmt.Sprint(i), 1+i*100)
		ok(t, unsure(func(ctx context.Context) error {
			_, err := s.Put(ctx, "o", name, strings.NewReader(content), writable)
			return err
		}))
		if got := get(t, s, "o", name); got != content {
			t.Fatalf("object %s holds %.40q, want %.40q", name, got, content)
		}
		ok(t, unsure(func(ctx context.Context) error { return s.Remove(ctx, "o", name, writable) }))
		if _, err := s.Open(t.Context(), "o", name); !errors.Is(err, objectstore.ErrNoObject) {
			t.Fatalf("a removed object: %v", err)
		}
		next := objectstore.Mark{State: objectstore.Live, Version: uint64(i + 1)}
		for _, m := range []objectstore.Mark{next, writable} {
			have, err := s.Stat(t.Context(), "o")
			ok(t, err)
			err = unsure(func(ctx context.Context) error { return s.Mark(ctx, "o", have, m) })
			var marked *objectstore.MarkedError
			if errors.As(err, &marked) && marked.Have == m {
				err = nil // an earlier try did it
			}
			ok(t, err)
			wantMark(t, s, "o", m)
		}
		if i%5 == 4 {
			ok(t, unsure(func(ctx context.Context) error { return s.Delete(ctx, "o", writable) }))
			wantMark(t, s, "o", absent)
		}
	}
	t.Logf("%d operations ended before they were done", broken)
}

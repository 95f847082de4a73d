package coder

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // S3's
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
	"penstock/consumers/executor/coder/queue"
)

// counts is Metrics that a test looks at.
type counts struct {
	mu sync.Mutex
	of map[string]int64
}

func (c *counts) Count(e Event, reason string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[string]int64)
	}
	c.of[string(e)+"/"+reason] += n
	c.of[string(e)] += n
}

func (c *counts) get(name string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[name]
}

// switched is a chooser whose code a test sets.
type switched struct {
	mu   sync.Mutex
	code queue.Code
}

func (s *switched) Arrived(int) {}

func (s *switched) Choose(queue.Op, int) queue.Code {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.code
}

func (s *switched) set(n, k int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = queue.Code{N: n, K: k}
}

// bench is a coder under test, its stores and what it counts.
type bench struct {
	*Coder
	options Options
	stores  []*faulty
	counts  *counts
	code    *switched
	stop    func()
}

const testSegment = 64 << 10

// patience is how long is waited for what has to come, where nothing is measured.
const patience = time.Minute

func options(t testing.TB, layout object.Layout, n, k int) Options {
	t.Helper()
	return Options{
		Name: "test", State: t.TempDir(), Layout: layout, N: n, K: k, Segment: testSegment,
		Retry: 50 * time.Millisecond, TaskTimeout: 5 * time.Second, Grace: time.Second, LogEvery: 2 * time.Millisecond,
	}
}

// setup opens a coder over stores in memory and runs it; change may alter its options.
func setup(t testing.TB, layout object.Layout, n, k int, change func(*Options)) *bench {
	t.Helper()
	b := &bench{counts: &counts{}, code: &switched{code: queue.Code{N: 2, K: 1}}}
	o := options(t, layout, n, k)
	stores := 1
	if layout == object.Spread {
		stores = n
	}
	for i := range stores {
		b.stores = append(b.stores, &faulty{Store: chunks.NewMemory(fmt.Sprintf("store-%d", i))})
	}
	o.Chooser, o.Metrics = b.code, b.counts
	if change != nil {
		change(&o)
	}
	if o.Stores == nil {
		for _, s := range b.stores {
			o.Stores = append(o.Stores, s)
		}
	}
	b.options = o
	b.start(t)
	t.Cleanup(func() { b.stop() })
	if err := b.CreateBucket(t.Context(), "bucket"); err != nil {
		t.Fatal(err)
	}
	return b
}

// start opens and runs the coder; stop ends that, and may be called twice.
func (b *bench) start(t testing.TB) {
	t.Helper()
	c, err := Open(t.Context(), b.options)
	if err != nil {
		t.Fatal(err)
	}
	b.Coder = c
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- c.Run(ctx) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error("run:", err)
		}
		if err := c.Close(); err != nil {
			t.Error("close:", err)
		}
	})
}

func (b *bench) put(t testing.TB, key string, data []byte) Object {
	t.Helper()
	o, err := b.Put(t.Context(), PutInput{Bucket: "bucket", Key: key, Body: bytes.NewReader(data), Size: int64(len(data))})
	if err != nil {
		t.Fatalf("put %s of %d bytes: %v", key, len(data), err)
	}
	sum := md5.Sum(data) //nolint:gosec // S3's
	if o.ETag != hex.EncodeToString(sum[:]) || o.Size != int64(len(data)) {
		t.Fatalf("put %s: %+v", key, o)
	}
	return o
}

func (b *bench) read(ctx context.Context, key string, r Range) ([]byte, error) {
	in, err := b.Get(ctx, GetInput{Bucket: "bucket", Key: key, Range: r})
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var out bytes.Buffer
	_, err = io.Copy(&out, in)
	return append([]byte{}, out.Bytes()...), err
}

func (b *bench) check(t testing.TB, key string, want []byte) {
	t.Helper()
	got, err := b.read(t.Context(), key, Range{})
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("get %s: %d bytes that differ from the %d of it", key, len(got), len(want))
	}
}

// settled waits until nothing is left to do.
func (b *bench) settled(t testing.TB) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		b.forgive()
		s, err := b.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.mu.Lock()
		busy := len(b.duties.busy)
		b.mu.Unlock()
		if busy == 0 && s.Unintended == 0 && s.Deletes == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still to do: %+v", s)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// blobs counts the blobs of objects in all stores.
func (b *bench) blobs(t testing.TB) int {
	t.Helper()
	n := 0
	for _, s := range b.stores {
		list, err := s.Store.List(t.Context(), "test/b/", "", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		n += len(list)
	}
	return n
}

func noise(seed uint64, n int) []byte {
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), 7})
	b := make([]byte, n)
	_, _ = r.Read(b)
	return b
}

// faulty is a store that a test puts into trouble.
type faulty struct {
	chunks.Store
	mu  sync.Mutex
	get func(ctx context.Context, key string, b []byte, err error) ([]byte, error) // may change an answer
	put func(ctx context.Context, key string) error                                // before a blob is put
	del func(ctx context.Context, key string) error
	cut int // bytes after which a blob that is put fails; 0: never
	// late is called when all of a blob was read; then it lands, whatever ctx says.
	late func()
}

func (f *faulty) set(change func(*faulty)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *faulty) Get(ctx context.Context, key string, off, n int64, w io.Writer) (int64, error) {
	f.mu.Lock()
	get := f.get
	f.mu.Unlock()
	if get == nil {
		return f.Store.Get(ctx, key, off, n, w)
	}
	var b bytes.Buffer
	_, err := f.Store.Get(ctx, key, off, n, &b)
	out, err := get(ctx, key, b.Bytes(), err)
	m, werr := w.Write(out)
	if err == nil {
		err = werr
	}
	return int64(m), err
}

func (f *faulty) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	f.mu.Lock()
	put, cut, late := f.put, f.cut, f.late
	f.mu.Unlock()
	if late != nil {
		b, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		late()
		return f.Store.Put(context.WithoutCancel(ctx), key, bytes.NewReader(b), size)
	}
	if cut > 0 {
		r = &cutting{r, cut}
	}
	if put != nil {
		if err := put(ctx, key); err != nil {
			return err
		}
	}
	return f.Store.Put(ctx, key, r, size)
}

func (f *faulty) Delete(ctx context.Context, key string) error {
	f.mu.Lock()
	del := f.del
	f.mu.Unlock()
	if del != nil {
		if err := del(ctx, key); err != nil {
			return err
		}
	}
	return f.Store.Delete(ctx, key)
}

package coder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
)

// power is what a coder under test and its stores run on. When it goes, nothing that the
// coder does counts any more.
type power struct {
	left atomic.Int64 // calls of stores until it goes
	off  atomic.Bool
	cut  func()
	once sync.Once
}

var errDark = errors.New("no power")

// use is a call of a store; it returns errDark when there is no power, or when it goes
// with this call.
func (p *power) use() error {
	if p.left.Add(-1) < 0 {
		p.off.Store(true)
		p.once.Do(p.cut)
	}
	if p.off.Load() {
		return errDark
	}
	return nil
}

// powered is a store that needs power. A call that is under way when it goes may have
// had its effect or not.
type powered struct {
	chunks.Store
	*power
}

func (s *powered) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	before := s.use()
	if before != nil && s.left.Load()%2 == 0 {
		return before
	}
	if s.left.Load() < -1 {
		return errDark
	}
	err := s.Store.Put(ctx, key, r, size)
	if s.off.Load() {
		return errDark
	}
	return err
}

func (s *powered) Get(ctx context.Context, key string, off, n int64, w io.Writer) (int64, error) {
	if s.off.Load() {
		return 0, errDark
	}
	return s.Store.Get(ctx, key, off, n, w)
}

func (s *powered) Delete(ctx context.Context, key string) error {
	if err := s.use(); err != nil {
		return err
	}
	return s.Store.Delete(ctx, key)
}

// expected is what a key may hold after a crash.
type expected struct {
	acked   []byte // nil: nothing
	pending bool   // a write of next was begun and not answered
	next    []byte
}

// TestCrash: whatever the point at which the coder dies, each acknowledged write is
// whole, each other one is there whole or not at all, and once the journal has run there
// is no blob that nothing names.
func TestCrash(t *testing.T) {
	t.Parallel()
	rounds := 5
	if whole() {
		rounds = 100
	}
	for _, l := range []struct {
		layout object.Layout
		n, k   int
	}{{object.Shared, 0, 0}, {object.Spread, 4, 2}} {
		t.Run(l.layout.String(), func(t *testing.T) {
			t.Parallel()
			for seed := range rounds {
				crash(t, l.layout, l.n, l.k, uint64(seed))
			}
		})
	}
}

func crash(t *testing.T, layout object.Layout, n, k int, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, uint64(layout)))
	b := setup(t, layout, n, k, nil)
	keys := make([]map[string]*expected, 4)
	for w := range keys {
		key := fmt.Sprintf("%d/0", w)
		keys[w] = map[string]*expected{key: {acked: noise(uint64(w), []int{0, 10, 5000, 2*testSegment + 10}[w])}}
		b.put(t, key, keys[w][key].acked)
	}
	b.settled(t)
	b.stop()
	if layout == object.Spread && seed%2 == 0 {
		b.options.K++ // what is there is being coded anew when the power goes
	}
	plain := b.options.Stores
	p := &power{}
	p.left.Store(int64(r.IntN(300)))
	b.options.Stores = nil
	for _, s := range plain {
		b.options.Stores = append(b.options.Stores, &powered{s, p})
	}
	p.left.Add(int64(len(plain)) * 2) // the claim
	b.startDark(t, p)
	var wg sync.WaitGroup
	for w := range keys {
		seed := r.Uint64()
		wg.Go(func() { b.mix(p, w, rand.New(rand.NewPCG(seed, 1)), keys[w]) })
	}
	wg.Wait()
	b.stop()

	b.options.Stores = plain
	if seed%4 == 0 {
		b.options.K = k // and the coding of before is in force once more
	}
	b.start(t)
	b.settled(t)
	want := 0
	for _, of := range keys {
		for key, e := range of {
			got, err := b.read(t.Context(), key, Range{})
			if errors.Is(err, ErrNoKey) {
				got, err = nil, nil
			}
			old, now := same(got, e.acked), e.pending && same(got, e.next)
			if err != nil || !old && !now {
				t.Fatalf("seed %d, %s: %d bytes, %v; acknowledged %d, under way %v %d",
					seed, key, len(got), err, len(e.acked), e.pending, len(e.next))
			}
			if got != nil {
				want++
			}
		}
	}
	if s, err := b.Stats(t.Context()); err != nil || s.Objects != int64(want) {
		t.Fatalf("seed %d: %d objects, want %d, %v", seed, s.Objects, want, err)
	}
	b.clean(t)
	b.stop()
}

func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// startDark is start for a coder whose power will go.
func (b *bench) startDark(t *testing.T, p *power) {
	t.Helper()
	c, err := Open(t.Context(), b.options)
	if err != nil {
		t.Fatal(err)
	}
	b.Coder = c
	closed := make(chan struct{})
	p.cut = func() {
		go func() {
			_ = c.catalog.Close() // no transaction after this
			close(closed)
		}()
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { _ = c.Run(ctx); close(ran) }()
	b.stop = sync.OnceFunc(func() {
		p.off.Store(true)
		p.once.Do(p.cut)
		<-closed
		cancel()
		<-ran
		_ = c.Close()
	})
}

// mix puts, overwrites and deletes until there is no power.
func (b *bench) mix(p *power, worker int, r *rand.Rand, keys map[string]*expected) {
	ctx := context.Background()
	for i := 0; i < 200 && !p.off.Load(); i++ {
		key := fmt.Sprintf("%d/%d", worker, r.IntN(6))
		e := keys[key]
		if e == nil {
			e = &expected{}
			keys[key] = e
		}
		code := [][2]int{{1, 1}, {2, 1}, {4, 2}, {6, 3}}[r.IntN(4)]
		b.code.set(code[0], code[1])
		var err error
		if r.IntN(4) == 0 {
			e.pending, e.next = true, nil
			err = b.Delete(ctx, "bucket", key, Conditions{})
		} else {
			e.pending, e.next = true, noise(r.Uint64(), []int{0, 10, 5000, testSegment, 2*testSegment + 10}[r.IntN(5)])
			_, err = b.Put(ctx, PutInput{Bucket: "bucket", Key: key, Body: bytes.NewReader(e.next), Size: int64(len(e.next))})
		}
		if err != nil {
			return
		}
		e.acked, e.pending = e.next, false
	}
}

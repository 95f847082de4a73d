package coder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
	"penstock/consumers/executor/coder/queue"
)

// TestChaos: clients put, read, copy and delete while n−k stores die, hang, lie and come
// back at random; every answer is right, and in the end everything is whole.
func TestChaos(t *testing.T) {
	t.Parallel()
	rounds := 30
	if whole() {
		rounds = 400
	}
	for _, l := range []struct{ n, k int }{{4, 2}, {6, 4}} {
		t.Run(fmt.Sprintf("%d-%d", l.n, l.k), func(t *testing.T) {
			t.Parallel()
			b := setup(t, object.Spread, l.n, l.k, func(o *Options) {
				o.TaskTimeout, o.Patience, o.Retry = 500*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
			})
			stop := make(chan struct{})
			var trouble, clients sync.WaitGroup
			trouble.Go(func() { b.troubled(t, l.n-l.k, stop) })
			for w := range 3 {
				clients.Go(func() { b.client(t, w, rounds) })
			}
			clients.Wait()
			close(stop)
			trouble.Wait()
			b.healAll(t)
			if r, err := b.Scrub(t.Context(), ScrubOptions{Repair: true, Orphans: true}, nil); err != nil || r.Failed+r.Unreadable+r.Orphans != 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			b.clean(t)
		})
	}
}

// troubled changes what befalls the first stores, every few milliseconds.
func (b *bench) troubled(t *testing.T, stores int, stop <-chan struct{}) {
	r := rand.New(rand.NewPCG(9, uint64(stores)))
	for {
		for _, s := range b.stores[:stores] {
			heal(s)
			switch r.IntN(5) {
			case 0:
				kill(s)
			case 1:
				hang(s, func() {})
			case 2:
				troubles[6].befall(t, b, s) // lies
			case 3:
				s.set(func(s *faulty) { s.cut = 1000 })
			}
		}
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(r.IntN(10)) * time.Millisecond):
		}
	}
}

// client works on keys of its own, and knows what they hold.
func (b *bench) client(t *testing.T, worker, rounds int) {
	r := rand.New(rand.NewPCG(uint64(worker), 3))
	has := make(map[string][]byte)
	for range rounds {
		key := fmt.Sprintf("%d/%d", worker, r.IntN(4))
		switch r.IntN(6) {
		case 0, 1:
			data := noise(r.Uint64(), []int{0, 100, 5000, testSegment, 2*testSegment + 1}[r.IntN(5)])
			b.put(t, key, data)
			has[key] = data
		case 2:
			if err := b.Delete(context.Background(), "bucket", key, Conditions{}); err != nil {
				t.Error(err)
			}
			delete(has, key)
		case 3:
			to := fmt.Sprintf("%d/%d", worker, r.IntN(4))
			_, err := b.Copy(context.Background(), CopyInput{FromBucket: "bucket", FromKey: key, To: PutInput{Bucket: "bucket", Key: to}})
			if has[key] == nil && !errors.Is(err, ErrNoKey) || has[key] != nil && err != nil {
				t.Errorf("copy: %v", err)
			}
			if err == nil {
				has[to] = has[key]
			}
		default:
			got, err := b.read(context.Background(), key, Range{})
			if has[key] == nil && !errors.Is(err, ErrNoKey) || has[key] != nil && (err != nil || !bytes.Equal(got, has[key])) {
				t.Errorf("%s: %d bytes of %d, %v", key, len(got), len(has[key]), err)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// TestAnyCode: whatever codes a chooser gives, of any layout, each request does.
func TestAnyCode(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	for _, l := range layouts {
		b := setup(t, l.layout, l.n, l.k, nil)
		rounds := 20
		if whole() {
			rounds = 60
		}
		for i := range rounds {
			b.code.mu.Lock()
			b.code.code = queue.Code{N: r.IntN(20) - 2, K: r.IntN(12) - 2, Hedge: time.Duration(r.IntN(2)) * time.Millisecond}
			b.code.mu.Unlock()
			data := noise(uint64(i), r.IntN(9000))
			b.put(t, "k", data)
			b.check(t, "k", data)
		}
		b.clean(t)
	}
}

// FuzzVersionOf: of any key the id that is found is one that the coder makes.
func FuzzVersionOf(f *testing.F) {
	c := &Coder{o: Options{Name: "c"}}
	f.Add(c.blobKey(newID(), 3, ""))
	f.Add("c/b/../x.0")
	f.Fuzz(func(t *testing.T, key string) {
		if id := c.versionOf(key); id != "" && (!isID(id) || chunks.CheckKey(c.blobKey(id, 0, "")) != nil) {
			t.Fatalf("%q: %q", key, id)
		}
	})
}

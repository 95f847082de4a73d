package coder

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"penstock/consumers/executor/coder/object"
)

// TestReadBeforeTheRestHasLanded: an object whose answer came with the first of its
// blobs is read though that one is lost at once: its rest is waited for.
func TestReadBeforeTheRestHasLanded(t *testing.T) {
	t.Parallel()
	for _, size := range []int{4, 5000} {
		b := setup(t, object.Spread, 4, 2, func(o *Options) { o.Patience = time.Minute })
		late := make(chan struct{})
		for _, s := range b.stores[2:] {
			s.set(func(s *faulty) {
				s.put = func(ctx context.Context, _ string) error {
					select {
					case <-late:
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}
			})
		}
		data := noise(uint64(size), size)
		b.put(t, "k", data)
		troubles[6].befall(t, b, b.stores[0]) // lies
		kill(b.stores[1])
		read := make(chan error, 1)
		var got []byte
		go func() {
			var err error
			got, err = b.read(context.Background(), "k", Range{})
			read <- err
		}()
		for b.counts.get("replaced/awaited") == 0 {
			select {
			case err := <-read:
				t.Fatalf("%d bytes: read before anything could be: %v", size, err)
			case <-time.After(time.Millisecond):
			}
		}
		close(late)
		if err := <-read; err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%d bytes: %d, %v", size, len(got), err)
		}
		b.healAll(t)
		b.clean(t)
	}
}

// TestTinyObjectsSurviveAsMany: a tiny object is answered when as many stores have it
// as may be lost, and one more; with fewer it is refused.
func TestTinyObjectsSurviveAsMany(t *testing.T) {
	t.Parallel()
	for extra := range 3 {
		b := setup(t, object.Spread, 4, 2, func(o *Options) { o.Durability, o.Retry = Durability{Extra: extra}, time.Hour })
		for _, s := range b.stores[extra+1:] {
			kill(s)
		}
		b.put(t, "enough", []byte("four"))
		for _, s := range b.stores[extra+1:] {
			heal(s)
		}
		for _, s := range b.stores[:extra] {
			kill(s)
		}
		b.check(t, "enough", []byte("four"))
		b.healAll(t)
		b.clean(t)
		for _, s := range b.stores[extra:] {
			kill(s)
		}
		_, err := b.Put(t.Context(), PutInput{Bucket: "bucket", Key: "fewer", Body: bytes.NewReader([]byte("four")), Size: 4})
		if !errors.Is(err, ErrTooFew) {
			t.Errorf("k+%d with as many stores as may be lost: %v", extra, err)
		}
		b.healAll(t)
		b.clean(t)
	}
}

package coder

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"penstock/consumers/executor/coder/object"
)

// TestStoresTakenForDeadAreAsked before a write fails, of an object of one segment and of
// several: they may live, and the others not.
func TestStoresTakenForDeadAreAsked(t *testing.T) {
	t.Parallel()
	for _, size := range []int{5000, testSegment, 3*testSegment + 7} {
		b := setup(t, object.Spread, 4, 2, nil)
		take := func(stores ...int) {
			for _, i := range stores {
				for range deadAfter {
					b.Coder.stores[i].failed(time.Now())
				}
			}
			b.states.Add(1)
		}
		take(0, 3)
		kill(b.stores[1])
		data := noise(1, size)
		b.put(t, "k", data)
		heal(b.stores[1])
		for _, s := range b.Coder.stores {
			b.probe(t.Context(), s)
		}
		b.check(t, "k", data)
		b.clean(t)

		for i := range b.stores {
			kill(b.stores[i])
		}
		take(0, 3)
		if _, err := b.Put(t.Context(), PutInput{Bucket: "bucket", Key: "l", Body: bytes.NewReader(data), Size: int64(size)}); !errors.Is(err, ErrTooFew) {
			t.Errorf("%d bytes: all are dead: %v", size, err)
		}
		for i := range b.stores {
			heal(b.stores[i])
			b.probe(t.Context(), b.Coder.stores[i])
		}
		b.clean(t)
	}
}

package coder

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"penstock/consumers/executor/coder/object"
)

// TestFallsToNothingUnderOverload: though more requests wait than can ever be served,
// what is staged is settled, and what is overwritten goes.
func TestFallsToNothingUnderOverload(t *testing.T) {
	t.Parallel()
	b := setup(t, object.Shared, 0, 0, func(o *Options) { o.Connections, o.Background = 2, 1 })
	b.stores[0].set(func(s *faulty) {
		s.get = func(_ context.Context, _ string, b []byte, err error) ([]byte, error) {
			time.Sleep(200 * time.Microsecond)
			return b, err
		}
	})
	b.code.set(1, 1)
	data := noise(1, 5000)
	b.put(t, "read", data)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range 12 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if got, err := b.read(context.Background(), "read", Range{}); err != nil || !bytes.Equal(got, data) {
						t.Errorf("%d bytes, %v", len(got), err)
						return
					}
				}
			}
		})
	}
	for b.Queue().Backlog < 4 {
		time.Sleep(time.Millisecond)
	}
	b.code.set(4, 2)
	for i := range 10 {
		b.put(t, fmt.Sprint(i%5), data)
	}
	b.code.set(1, 1)
	b.settled(t)
	if n := b.Queue().Backlog; n < 4 {
		t.Errorf("%d requests wait", n)
	}
	close(stop)
	clients.Wait()
	b.clean(t)
}

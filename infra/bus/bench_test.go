package bus_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/subject"
)

// BenchmarkPublish stores messages of 100 KB from 8 goroutines, as a loaded
// publisher does.
func BenchmarkPublish(b *testing.B) {
	for name, sync := range map[string]bus.Sync{"synced": bus.SyncAlways, "unsynced": bus.SyncInterval} {
		b.Run(name, func(b *testing.B) {
			c := bustest.Client(b, bustest.Start(b, func(o *bus.Options) { o.Sync = sync }))
			body := bytes.Repeat([]byte("0123456789"), 10_000)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			publishMany(b, c, body)
		})
	}
}

func publishMany(b *testing.B, c *bus.Client, body []byte) {
	b.Helper()
	ctx, cancel := context.WithCancelCause(b.Context())
	defer cancel(nil)
	work := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range work {
				if _, err := c.Publish(ctx, bus.Msg{Subject: "events.0.web", Data: body}); err != nil {
					cancel(err)
				}
			}
		})
	}
	for b.Loop() {
		work <- struct{}{}
	}
	close(work)
	wg.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		b.Fatal(err)
	}
}

// BenchmarkRead delivers messages that are stored already.
func BenchmarkRead(b *testing.B) {
	for name, size := range map[string]int{"100KB": 100_000, "1KB": 1000} {
		b.Run(name, func(b *testing.B) {
			c := bustest.Client(b, bustest.Start(b))
			body := bytes.Repeat([]byte("x"), size)
			stored := min(2000, 200_000_000/size)
			for range stored {
				if _, err := c.Publish(b.Context(), bus.Msg{Subject: "events.0.web", Data: body}); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			var r *bus.Reader
			left := 0
			for b.Loop() {
				if left == 0 {
					if r != nil {
						r.Close()
					}
					var err error
					if r, err = c.Read(b.Context(), subject.EventsStream, nil, 1); err != nil {
						b.Fatal(err)
					}
					left = stored
				}
				if _, ok := <-r.C(); !ok {
					b.Fatal(r.Err())
				}
				left--
			}
			r.Close()
		})
	}
}

package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/subject"
)

// inFlight is how many messages a raw publisher leaves unanswered; a publisher
// of ours has at most 32 MB in flight, which is more.
const inFlight = 512

// raw publishes messages as they are and reads them with as many consumers as
// there are aggregators, which only count; work is the rows that they stand for.
func raw(t testing.TB, sync bus.Sync, msgs []bus.Msg, work int) took {
	t.Helper()
	b := openBus(t, sync)
	pub := bustest.Client(t, b)
	out := make([]*nats.Msg, len(msgs))
	for i, m := range msgs {
		out[i] = pub.Message(m)
	}
	stop := consumers(t, b, msgs)
	return measure(work, func() {
		publishRaw(t, pub, out)
		stop()
	})
}

// consumers starts plain consumers of each partition, one a group. The returned
// function waits until each has seen all of its messages.
func consumers(t testing.TB, b *bus.Bus, msgs []bus.Msg) func() {
	t.Helper()
	var all sync.WaitGroup
	var stops []func()
	for range groups() {
		c := bustest.Client(t, b)
		for p := range partitions {
			subjects := subject.EventsOf(p)
			want := int64(0)
			for _, m := range msgs {
				if m.Header["Penstock-Mark"] != nil || m.Subject == subject.Events(p, "bench") {
					want++
				}
			}
			con, err := c.JS.CreateConsumer(t.Context(), c.Stream(subject.EventsStream), jetstream.ConsumerConfig{
				FilterSubjects: subjects, AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			all.Add(1)
			var seen atomic.Int64
			cc, err := con.Consume(func(jetstream.Msg) {
				if seen.Add(1) == want {
					all.Done()
				}
			}, jetstream.PullMaxMessages(1000))
			if err != nil {
				t.Fatal(err)
			}
			stops = append(stops, func() {
				cc.Stop()
				<-cc.Closed()
			})
		}
	}
	return func() {
		done := make(chan struct{})
		go func() {
			all.Wait()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(5 * time.Minute):
			t.Fatal("consumers did not see all messages within 5 minutes")
		}
		for _, s := range stops {
			s()
		}
	}
}

// publishRaw publishes with acknowledgements that are not waited for one by one.
func publishRaw(t testing.TB, c *bus.Client, msgs []*nats.Msg) {
	t.Helper()
	var failed atomic.Pointer[error]
	js, err := jetstream.New(c.NC, jetstream.WithPublishAsyncMaxPending(inFlight),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, _ *nats.Msg, err error) { failed.Store(&err) }))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range msgs {
		m.Reply = ""
		if _, err := js.PublishMsgAsync(m, jetstream.WithStallWait(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), 5*time.Minute, errors.New("no acknowledgements within 5 minutes"))
	defer cancel()
	select {
	case <-js.PublishAsyncComplete():
	case <-ctx.Done():
		t.Fatal(context.Cause(ctx))
	}
	if err := failed.Load(); err != nil {
		t.Fatal(*err)
	}
	js.CleanupPublisher()
}

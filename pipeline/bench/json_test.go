package bench

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

// jsonEvent is a request as one would write it down without thinking long.
type jsonEvent struct {
	Time        time.Time `json:"time"`
	User        string    `json:"user"`
	Owner       string    `json:"owner"`
	Lat         float32   `json:"lat"`
	Lon         float32   `json:"lon"`
	ToComponent string    `json:"to_component"`
	ToSite      string    `json:"to_site"`
	Op          string    `json:"op"`
	Bytes       int64     `json:"bytes"`
	Status      int32     `json:"status"`
}

// jsonSum is what an event is added to.
type jsonSum struct{ requests, bytes int64 }

// jsonEvents publishes the first n rows as one JSON message each, and adds them
// up by owner and site in a map as they are read.
func jsonEvents(t testing.TB, sync bus.Sync, s *rows, n int) took {
	t.Helper()
	b := openBus(t, sync)
	pub, sub := bustest.Client(t, b), bustest.Client(t, b)
	con, err := sub.JS.CreateConsumer(t.Context(), sub.Stream(subject.EventsStream), jetstream.ConsumerConfig{
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	sums := map[[2]string]jsonSum{}
	done, seen := make(chan struct{}), 0
	cc, err := con.Consume(func(m jetstream.Msg) {
		var e jsonEvent
		if err := json.Unmarshal(m.Data(), &e); err != nil {
			t.Error(err)
		}
		v := sums[[2]string{e.Owner, e.ToSite}]
		v.requests++
		v.bytes += e.Bytes
		sums[[2]string{e.Owner, e.ToSite}] = v
		if seen++; seen == n {
			close(done)
		}
	}, jetstream.PullMaxMessages(5000))
	if err != nil {
		t.Fatal(err)
	}
	m := measure(n, func() {
		publishJSON(t, pub, s, n)
		select {
		case <-done:
		case <-time.After(5 * time.Minute):
			t.Fatal("events did not come back within 5 minutes")
		}
	})
	cc.Stop()
	<-cc.Closed()
	checkSums(t, s, n, sums)
	return m
}

func publishJSON(t testing.TB, c *bus.Client, s *rows, n int) {
	t.Helper()
	js, err := jetstream.New(c.NC, jetstream.WithPublishAsyncMaxPending(4000))
	if err != nil {
		t.Fatal(err)
	}
	to := c.Subject(subject.Events(0, "json"))
	var r event.Request
	for i := range n {
		s.fill(&r, i)
		body, err := json.Marshal(jsonEvent{
			Time: time.UnixMicro(r.Time).UTC(), User: r.User, Owner: r.Owner, Lat: r.Lat, Lon: r.Lon, ToComponent: r.ToComponent,
			ToSite: r.ToSite, Op: r.Op.String(), Bytes: r.Bytes, Status: r.Status,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.PublishMsgAsync(&nats.Msg{Subject: to, Data: body}, jetstream.WithStallWait(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	js.CleanupPublisher()
}

func checkSums(t testing.TB, s *rows, n int, sums map[[2]string]jsonSum) {
	t.Helper()
	var got, want jsonSum
	for _, v := range sums {
		got.requests += v.requests
		got.bytes += v.bytes
	}
	for i := range n {
		want.requests++
		want.bytes += int64(s.list[i].bytes)
	}
	if got != want {
		t.Errorf("added up %+v, expected %+v", got, want)
	}
}

package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/subject"
)

// TestReaderLivesThroughRestarts publishes all the time while the server is
// taken down again and again; the reader must show every message once, in
// order.
func TestReaderLivesThroughRestarts(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c, w := bustest.Client(t, b), bustest.Client(t, b)
	r, err := c.Read(t.Context(), subject.EventsStream, []string{"events.0.*", "events.all.*"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	const n, restarts, ahead = 1200, 3, 50
	const phase = n / (restarts + 1)
	ctx := testContext(t)
	allowed := make(chan struct{}, n+ahead) // keeps the writer near the reader
	allow := func(k int) {
		for range k {
			allowed <- struct{}{}
		}
	}
	allow(ahead)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			<-allowed
			// An unanswered write is sent again, under a fence: it is there once.
			for ctx.Err() == nil {
				m := bus.Msg{Subject: "events.0.web", Data: fmt.Appendf(nil, "%d", i)}
				_, err := w.PublishFenced(ctx, []bus.Msg{m}, uint64(i))
				if err == nil || errors.Is(err, bus.ErrConflict) {
					break
				}
			}
		}
	})
	for k := range restarts + 1 {
		allow(phase)
		for i, m := range bustest.Take(t, r, phase) {
			if want := k*phase + i; string(m.Data) != fmt.Sprint(want) || m.Seq != uint64(want+1) {
				t.Fatalf("message %s at %d, want %d", m.Data, m.Seq, want)
			}
		}
		if k < restarts {
			bustest.Restart(t, b)
		}
	}
	wg.Wait()
	// A message is counted when it has been handed over, a moment after it is here.
	waitFor(t, "the count", func() bool { return r.Stats().Messages == n })
	if s := r.Stats(); s.Recreated["reconnected"] == 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestReaderRefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	read := func(from uint64) error {
		t.Helper()
		r, err := c.Read(t.Context(), subject.EventsStream, nil, from)
		if err == nil {
			r.Close()
		}
		return err
	}
	var beyond *bus.ErrBeyond
	if err := read(2); !errors.As(err, &beyond) || beyond.Last != 0 || beyond.Want != 2 {
		t.Errorf("2 of an empty stream: %v", err)
	}
	publish(t, c, "events.0.web", 10)
	if err := c.Trim(testContext(t), subject.EventsStream, 5); err != nil {
		t.Fatal(err)
	}
	var trimmed *bus.ErrTrimmed
	for _, from := range []uint64{1, 4} {
		if err := read(from); !errors.As(err, &trimmed) || trimmed.First != 5 {
			t.Errorf("from %d: %v", from, err)
		}
	}
	for _, from := range []uint64{0, 5, 11} {
		if err := read(from); err != nil {
			t.Errorf("from %d: %v", from, err)
		}
	}
	if err := read(12); !errors.As(err, &beyond) || beyond.Last != 10 {
		t.Errorf("from 12: %v", err)
	}
	if _, err := c.Read(t.Context(), "NOWHERE", nil, 0); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("no stream: %v", err)
	}
	// All gone: the beginning of the future is the only place to read from.
	if err := c.Trim(testContext(t), subject.EventsStream, 1000); err != nil {
		t.Fatal(err)
	}
	if err := read(10); !errors.As(err, &trimmed) || trimmed.First != 11 {
		t.Errorf("from 10 of nothing: %v", err)
	}
	if err := read(11); err != nil {
		t.Errorf("from 11 of nothing: %v", err)
	}
}

// TestReaderEndsWhereMessagesAreGone trims what a reader has not seen while its
// connection is down.
func TestReaderEndsWhereMessagesAreGone(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	r, err := c.Read(t.Context(), subject.EventsStream, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, c, "events.0.web", 1)
	bustest.Take(t, r, 1)
	// A reader holds a few megabytes: what follows stays on the server.
	body := bytes.Repeat([]byte("x"), 300<<10)
	for range 100 {
		if _, err := c.Publish(testContext(t), bus.Msg{Subject: "events.0.web", Data: body}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Trim(testContext(t), subject.EventsStream, 100); err != nil {
		t.Fatal(err)
	}
	bustest.Restart(t, b)
	n := 0
	for range r.C() {
		n++
	}
	if n == 0 || n > 60 {
		t.Errorf("%d messages were delivered", n)
	}
	var trimmed *bus.ErrTrimmed
	if !errors.As(r.Err(), &trimmed) || trimmed.First != 100 || trimmed.Want != uint64(n)+2 {
		t.Errorf("after %d messages: %v", n, r.Err())
	}
}

// TestReaderOfQuietSubjectIsNotTrimmed trims messages of other subjects: a
// reader that had seen all of its own goes on.
func TestReaderOfQuietSubjectIsNotTrimmed(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Stall = 300 * time.Millisecond })
	c := bustest.Client(t, b)
	r, err := c.Read(t.Context(), subject.EventsStream, []string{"events.0.*"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, c, "events.0.web", 1)
	bustest.Take(t, r, 1)
	publish(t, c, "events.1.web", 50)
	// The reader looks around after a quiet time; the consumer's name changes
	// only by a restart, so wait for what it has learned.
	waitFor(t, "the reader to look around", func() bool { return bus.Passed(r) >= 51 })
	if err := c.Trim(testContext(t), subject.EventsStream, 51); err != nil {
		t.Fatal(err)
	}
	bustest.Restart(t, b)
	waitFor(t, "the connection", func() bool { return c.NC.IsConnected() })
	publish(t, c, "events.0.web", 1)
	if m := bustest.Take(t, r, 1)[0]; m.Seq != 52 {
		t.Errorf("sequence %d", m.Seq)
	}
}

// TestWatchdog pauses a reader's consumer: it looks active, messages wait, and
// none comes (P22).
func TestWatchdog(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Stall = 400 * time.Millisecond })
	c := bustest.Client(t, b)
	r, err := c.Read(t.Context(), subject.EventsStream, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, c, "events.0.web", 1)
	bustest.Take(t, r, 1)
	s, err := c.JS.Stream(testContext(t), subject.EventsStream)
	if err != nil {
		t.Fatal(err)
	}
	for name := range s.ConsumerNames(testContext(t)).Name() {
		if _, err := s.PauseConsumer(testContext(t), name, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	publish(t, c, "events.0.web", 5)
	for i, m := range bustest.Take(t, r, 5) {
		if m.Seq != uint64(i+2) {
			t.Errorf("sequence %d", m.Seq)
		}
	}
	// Where the machine stands still it may look stalled once more.
	if got := r.Stats().Recreated; got["stalled"] == 0 {
		t.Errorf("recreated %v", got)
	}
}

// TestReaderFindsLostConsumer deletes a reader's consumer under it.
func TestReaderFindsLostConsumer(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	r, err := c.Read(t.Context(), subject.EventsStream, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, c, "events.0.web", 1)
	bustest.Take(t, r, 1)
	s, err := c.JS.Stream(testContext(t), subject.EventsStream)
	if err != nil {
		t.Fatal(err)
	}
	for name := range s.ConsumerNames(testContext(t)).Name() {
		if err := s.DeleteConsumer(testContext(t), name); err != nil {
			t.Fatal(err)
		}
	}
	publish(t, c, "events.0.web", 2)
	bustest.Take(t, r, 2)
	if got := r.Stats().Recreated; got["refused"] != 1 {
		t.Errorf("recreated %v", got)
	}
}

// TestReaderIsBounded leaves a reader's messages lying: what it holds must not
// grow with the stream. Then it must go on by itself.
func TestReaderIsBounded(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	const size, n = 300 << 10, 120 // 36 MB
	body := bytes.Repeat([]byte("x"), size)
	r, err := c.Read(t.Context(), subject.EventsStream, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		if _, err := c.Publish(testContext(t), bus.Msg{Subject: "events.0.web", Data: body}); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "a full channel", func() bool { return len(r.C()) == cap(r.C()) })
	waitFor(t, "the server to have sent more", func() bool { return r.Stats().Held > 1<<20 })
	most := 0
	for i := range n {
		most = max(most, r.Stats().Held)
		if m := bustest.Take(t, r, 1)[0]; m.Seq != uint64(i+1) || len(m.Data) != size {
			t.Fatalf("message %d: sequence %d, %d bytes", i, m.Seq, len(m.Data))
		}
	}
	if most <= 1<<20 || most > 4<<20 {
		t.Errorf("the reader held %d bytes", most)
	}
	if got := r.Stats().Recreated; len(got) != 0 {
		t.Errorf("recreated %v", got)
	}
}

// TestPullAccountIsExact shows what readers rely on: the client's idea of a
// message's size is the server's, so what is asked for does not drift.
func TestPullAccountIsExact(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	for i := range 200 {
		m := bus.Msg{Subject: "events.0.web", Data: bytes.Repeat([]byte("x"), i*97)}
		if i%2 == 0 {
			m.Header = map[string][]string{"Penstock-Seq": {fmt.Sprint(i)}}
		}
		if _, err := c.Publish(testContext(t), m); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.JS.CreateConsumer(testContext(t), subject.EventsStream, jetstream.ConsumerConfig{
		Name: "x", AckPolicy: jetstream.AckNonePolicy,
	})
	if err != nil {
		t.Fatal(err)
	}
	const most = 1_000_003
	sub, err := c.NC.SubscribeSync("inbox")
	if err != nil {
		t.Fatal(err)
	}
	err = c.NC.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.EVENTS.x", "inbox", fmt.Appendf(nil, `{"batch":1000,"max_bytes":%d}`, most))
	if err != nil {
		t.Fatal(err)
	}
	for sum := 0; ; {
		m, err := sub.NextMsg(bustest.Timeout)
		if err != nil {
			t.Fatal(err)
		}
		if m.Header.Get("Status") != "409" {
			sum += m.Size()
			continue
		}
		if left := m.Header.Get("Nats-Pending-Bytes"); left != fmt.Sprint(most-sum) {
			t.Errorf("the server has %s bytes left, we %d", left, most-sum)
		}
		return
	}
}

func TestReaderEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := c.Read(ctx, subject.EventsStream, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, ok := <-r.C(); ok || r.Err() != nil {
		t.Errorf("ended with %v", r.Err())
	}
	r.Close()
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(bustest.Timeout)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

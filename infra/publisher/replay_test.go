package publisher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"testing"
	"time"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

const hour = 3_600_000_000

// replay sends n rows with a barrier every 1,000 and an end.
func replay(t testing.TB, p *Publisher, n int) {
	t.Helper()
	ctx := testContext(t)
	for i := range n {
		r := row(i)
		p.Horizon(r.Time - 1000)
		if i%100 == 7 {
			p.Malformed(1)
		}
		if err := p.Send(ctx, &r); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 999 {
			if err := p.Barrier(ctx, r.Time); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := p.End(ctx, row(n).Time+hour); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestReplayPublishesEveryRowOnce(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t, func(o *bus.Options) { o.Purpose = bus.Replay }))
	p := newReplay(t, c, func(o *Options) { o.MaxRows = 100 })
	const n = 3500
	replay(t, p, n)
	s := readAll(t, c)
	if len(s.rows) != n || s.repeats != 0 || s.lines != n/100 || len(s.dropped) != 0 {
		t.Errorf("%d rows, %d repeats, %d malformed, drops %v", len(s.rows), s.repeats, s.lines, s.dropped)
	}
	if len(s.marks) != 4 {
		t.Fatalf("marks %+v", s.marks)
	}
	for i, m := range s.marks[:3] {
		if m.Kind != event.Barrier || m.Watermark != row(i*1000+999).Time || m.Run != "run-1" {
			t.Errorf("mark %d: %+v", i, m)
		}
	}
	end := s.marks[3]
	if end.Kind != event.End || end.Watermark != row(n).Time+hour || !reflect.DeepEqual(end.Upto, p.Sequences()) {
		t.Errorf("end: %+v, sequences %v", end, p.Sequences())
	}
	for part, last := range end.Upto {
		for seq := uint64(1); seq <= last; seq++ {
			if _, ok := s.bodies[fmt.Sprintf("run-1/%d/%d", part, seq)]; !ok {
				t.Errorf("batch %d of partition %d is missing", seq, part)
			}
		}
	}
	if got := p.Stats(); got.Sent != n || got.Waiting != 0 || got.InFlight != 0 || got.HeldBytes != 0 {
		t.Errorf("stats %+v", got)
	}
	r := row(0)
	if err := p.Send(testContext(t), &r); !errors.Is(err, ErrClosed) {
		t.Errorf("send after the end: %v", err)
	}
	if err := p.Barrier(testContext(t), 0); !errors.Is(err, ErrClosed) {
		t.Errorf("barrier after the end: %v", err)
	}
}

// TestBarrierIsBehindItsBatches checks the order on the stream: a barrier comes
// after every batch that it names and before what is sent after it.
func TestBarrierIsBehindItsBatches(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	replay(t, newReplay(t, c, func(o *Options) { o.MaxRows = 10 }), 3000)
	r, err := c.Read(testContext(t), subject.EventsStream, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	seen := make([]uint64, c.Partitions())
	for marks := 0; marks < 4; {
		m := bustest.Take(t, r, 1)[0]
		if mark, err := event.ParseMark(m.Header, len(seen)); err == nil {
			marks++
			if !reflect.DeepEqual(mark.Upto, seen) {
				t.Errorf("mark %d names %v behind %v", marks, mark.Upto, seen)
			}
			continue
		}
		h, err := event.ParseHeader(m.Header)
		_, partition, err2 := subject.Entry(m.Subject)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		seen[partition] = max(seen[partition], h.Seq)
	}
}

// TestSameRowsSameBatches replays the same rows on several buses, in different
// circumstances: what stands under each (run, partition, sequence) must be
// equal byte for byte.
func TestSameRowsSameBatches(t *testing.T) {
	t.Parallel()
	const n = 2500
	var want map[string]string
	for name, f := range map[string]func(t *testing.T, b *bus.Bus, o *Options) func(){
		"plain": func(*testing.T, *bus.Bus, *Options) func() { return func() {} },
		"hardly any memory": func(_ *testing.T, _ *bus.Bus, o *Options) func() {
			o.InFlightMax = 1
			return func() {}
		},
		"restarts": func(t *testing.T, b *bus.Bus, o *Options) func() {
			o.AckTimeout = 200 * time.Millisecond
			var wg sync.WaitGroup
			wg.Go(func() {
				for range 3 {
					bustest.Restart(t, b)
				}
			})
			return wg.Wait
		},
	} {
		b := bustest.Start(t)
		c := bustest.Client(t, b)
		o := Options{Client: c, Entry: "web", Run: "run-1", MaxRows: 40, MaxSpan: time.Second}
		wait := f(t, b, &o)
		replay(t, open(t, o, nil), n)
		wait()
		waitFor(t, "the connection", c.NC.IsConnected)
		s := readAll(t, c)
		if len(s.rows) != n {
			t.Errorf("%s: %d rows", name, len(s.rows))
		}
		if want == nil {
			want = s.bodies
		}
		if !maps.Equal(s.bodies, want) {
			t.Errorf("%s: %d batches differ from %d", name, len(s.bodies), len(want))
		}
	}
}

// TestAckedIsNotSentAgain stops a replay at a barrier and runs it again with
// what was acknowledged: together the two attempts have stored what one would
// have, and nothing twice.
func TestAckedIsNotSentAgain(t *testing.T) {
	t.Parallel()
	whole := bustest.Client(t, bustest.Start(t))
	const n = 3500
	rows := func(o *Options) { o.MaxRows = 30 }
	replay(t, newReplay(t, whole, rows), n)

	c := bustest.Client(t, bustest.Start(t))
	first := newReplay(t, c, rows)
	ctx := testContext(t)
	for i := range 2000 {
		r := row(i)
		first.Horizon(r.Time - 1000)
		if i%100 == 7 {
			first.Malformed(1)
		}
		if err := first.Send(ctx, &r); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 999 {
			if err := first.Barrier(ctx, r.Time); err != nil {
				t.Fatal(err)
			}
		}
	}
	acked := first.Sequences()
	abandon(first)
	second := newReplay(t, c, rows, func(o *Options) { o.Acked = acked })
	replay(t, second, n)
	got, want := readAll(t, c), readAll(t, whole)
	if !maps.Equal(got.bodies, want.bodies) || got.repeats != 0 || len(got.marks) != len(want.marks) {
		t.Errorf("%d batches, %d repeats, %d marks; want %d batches, %d marks",
			len(got.bodies), got.repeats, len(got.marks), len(want.bodies), len(want.marks))
	}
	if s := second.Stats(); s.Skipped != 2000 || s.Sent != n-2000 {
		t.Errorf("stats %+v", s)
	}
}

// TestReplayWaitsWhileStreamIsFull fills EVENTS to its bound: nothing is lost,
// the sender waits with bounded memory, and goes on when there is room.
func TestReplayWaitsWhileStreamIsFull(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t, func(o *bus.Options) {
		o.Purpose, o.EventsMaxBytes, o.Partitions = bus.Replay, 100_000, 1
	}))
	p := newReplay(t, c, func(o *Options) { o.MaxRows, o.InFlightMax, o.queueMax = 500, 20_000, 500_000 })
	const n = 40_000
	sent := make(chan error, 1)
	go func() {
		for i := range n {
			r := row(i)
			if err := p.Send(t.Context(), &r); err != nil {
				sent <- err
				return
			}
		}
		sent <- p.End(t.Context(), row(n).Time)
	}()
	waitFor(t, "a full stream", func() bool { return p.Stats().Retries > 3 })
	stuck, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r := row(0)
	waitFor(t, "a full queue", func() bool { return p.out.queued.Load() >= p.o.queueMax })
	if err := p.Send(stuck, &r); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("send while all is full: %v", err)
	}
	if s := p.Stats(); s.HeldBytes > 2*20_000 {
		t.Errorf("%d bytes are held", s.HeldBytes)
	}
	// Read and trim, as aggregators make a replay do.
	rows := map[int64]int{}
	reader, err := c.Read(t.Context(), subject.EventsStream, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	s := &stored{bodies: map[string]string{}, rows: rows}
	for len(s.marks) == 0 {
		m := bustest.Take(t, reader, 1)[0]
		s.add(t, m, 1)
		if err := c.Trim(testContext(t), subject.EventsStream, m.Seq+1); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if len(rows) != n {
		t.Errorf("%d rows of %d", len(rows), n)
	}
}

func TestSendEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	p := newReplay(t, c, func(o *Options) { o.MaxRows, o.InFlightMax, o.queueMax = 1, 1, 100_000 })
	b.Suspend()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var err error
	for i := 0; err == nil; i++ {
		r := row(i)
		err = p.Send(ctx, &r)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("send: %v", err)
	}
	if err := p.Barrier(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("barrier: %v", err)
	}
	if err := p.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close with batches left: %v", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	c := bustest.Client(t, bustest.Start(t))
	for name, o := range map[string]Options{
		"no client":           {Entry: "web", Run: "r"},
		"no entry":            {Client: c, Run: "r"},
		"no run":              {Client: c, Entry: "web"},
		"replay with a spool": {Client: c, Entry: "web", Run: "r", SpoolDir: t.TempDir()},
		"live without spool":  {Client: c, Entry: "web", MaxAge: time.Second},
		"other partitions":    {Client: c, Entry: "web", Run: "r", Partitions: 3},
		"acked of others":     {Client: c, Entry: "web", Run: "r", Acked: []uint64{1}},
		"many rows":           {Client: c, Entry: "web", Run: "r", MaxRows: event.MaxRows + 1},
		"many bytes":          {Client: c, Entry: "web", Run: "r", MaxBytes: event.MaxBytes + 1},
	} {
		if _, err := New(t.Context(), o); !errors.Is(err, ErrNotReplay) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

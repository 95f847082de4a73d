package aggregator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"penstock/consumers/aggregator/ledger"
	"penstock/consumers/aggregator/rollup"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/event"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// counts collects happenings and flushes, and tells of each.
type counts struct {
	mu     sync.Mutex
	by     map[Happening]int64
	rows   window.Account
	told   chan struct{}
	covers uint64
}

func newCounts() *counts { return &counts{by: map[Happening]int64{}, told: make(chan struct{}, 1)} }

func (c *counts) note(f func()) {
	c.mu.Lock()
	f()
	c.mu.Unlock()
	select {
	case c.told <- struct{}{}:
	default:
	}
}

func (c *counts) Rows(_ string, _ int, a window.Account) { c.note(func() { c.rows.Add(a) }) }
func (c *counts) Progress(string, int, Progress)         {}
func (c *counts) Flushed(_ string, _ int, f Flushed)     { c.note(func() { c.covers = f.Covered }) }
func (c *counts) Count(_ string, _ int, what Happening, n int64) {
	c.note(func() { c.by[what] += n })
}

func (c *counts) of(what Happening) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[what]
}

func (c *counts) covered() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.covers
}

// await waits until done holds, which is looked at after each thing told.
func await(t testing.TB, c *counts, what string, done func() bool) {
	t.Helper()
	deadline := time.After(bustest.Timeout)
	for !done() {
		select {
		case <-c.told:
		case <-deadline:
			t.Fatalf("%s: not after %v; counted %v", what, bustest.Timeout, c.by)
		}
	}
}

// stream is a run of batches on one partition with repeats and reorderings, a
// barrier at each hour and an end; each row is of its batch's hour.
func stream(t testing.TB, rng *rand.Rand, run string, batches, rows int) []bus.Msg {
	var out, held []bus.Msg
	perHour := max(batches/3, 1)
	for k := 1; k <= batches; k++ {
		hour := int64((k-1)/perHour) * hour
		b := batch{run: run, seq: uint64(k), watermark: hour}
		for i := range rows {
			who := fmt.Sprintf("u%d", rng.IntN(20))
			b.rows = append(b.rows, rowAt(hour+int64(k*1000+i), who, fmt.Sprintf("u%d", rng.IntN(20)), []string{"east", "west"}[rng.IntN(2)]))
		}
		m := b.message(t)
		if rng.IntN(5) == 0 {
			held = append(held, m)
		} else {
			out = append(out, m)
		}
		for range rng.IntN(2) {
			out = append(out, m)
		}
		if k%perHour == 0 || k == batches {
			out = append(out, held...)
			held = nil
			out = append(out, mark(event.Barrier, run, hour+3600_000_000, uint64(k)))
		}
	}
	return append(out, mark(event.End, run, 10*hour, uint64(batches)))
}

// undisturbed reads EVENTS without a shell: what any aggregator must come to.
func undisturbed(t testing.TB, c *bus.Client, group string, n int) output {
	t.Helper()
	r, err := c.Read(t.Context(), subject.EventsStream, subject.EventsOf(0), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	book := ledger.New(ledger.ConfigOf(group, 0, 0, window.Widths{}))
	state, err := rollup.New(group, window.Widths{})
	if err != nil {
		t.Fatal(err)
	}
	var d event.Decoder
	for _, m := range bustest.Take(t, r, n) {
		at := ledger.Position{Seq: m.Seq, Time: m.Time.UnixMicro()}
		if event.IsMark(m.Header) {
			k, err := event.ParseMark(m.Header, 1)
			if err != nil {
				t.Fatal(err)
			}
			book.Mark(at, &k)
			continue
		}
		h, err := event.ParseHeader(m.Header)
		if err != nil {
			t.Fatal(err)
		}
		if book.Look(h.Run, h.Seq) != ledger.Fresh {
			book.Skip(at, &h)
			continue
		}
		var rows event.Requests
		if err := d.Decode(m.Data, h.Encoding, &rows); err != nil {
			t.Fatal(err)
		}
		state.Add(&rows, book.Take(at, &h, rows.Time, rows.Mark))
	}
	out := output{tables: map[string]*window.Table{}, counts: map[int64]window.WindowCount{}, runs: map[string]window.Account{}}
	out.apply(book.Commit(), state.Tables())
	return out
}

func same(t testing.TB, got, want output) {
	t.Helper()
	if got.commit.Total != want.commit.Total || got.deltas != want.commit.Total {
		t.Errorf("account %+v, deltas %+v, want %+v", got.commit.Total, got.deltas, want.commit.Total)
	}
	if !reflect.DeepEqual(got.counts, want.counts) {
		t.Errorf("windows %v, want %v", got.counts, want.counts)
	}
	if !reflect.DeepEqual(got.runs, want.runs) {
		t.Errorf("runs %v, want %v", got.runs, want.runs)
	}
	if !reflect.DeepEqual(sortedKeys(got.tables), sortedKeys(want.tables)) {
		t.Fatalf("rollups %v, want %v", sortedKeys(got.tables), sortedKeys(want.tables))
	}
	for name, w := range want.tables {
		g := got.tables[name]
		if fmt.Sprint(g.Start, g.Ints, g.Hists) != fmt.Sprint(w.Start, w.Ints, w.Hists) {
			t.Errorf("%s differs:\n%v %v\nwant\n%v %v", name, g.Start, g.Ints, w.Start, w.Ints)
		}
		for k := range w.Keys {
			for i := range w.Len() {
				if g.Keys[k].At(i) != w.Keys[k].At(i) {
					t.Fatalf("%s: key %q in row %d, want %q", name, g.Keys[k].At(i), i, w.Keys[k].At(i))
				}
			}
		}
	}
}

var errCut = errors.New("the answer was cut")

// TestStopsAnywhereChangeNothing stops the aggregator in 50 lives before or
// after a flush was stored, and compares with a life without a stop (P16).
func TestStopsAnywhereChangeNothing(t *testing.T) {
	for _, group := range window.Groups {
		t.Run(group, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, 7))
			b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
			c := bustest.Client(t, b)
			msgs := stream(t, rng, "R", 240, 5)
			publish(t, c, msgs...)
			lives := 0
			for done := false; !done; lives++ {
				done = life(t, c, group, 1+rng.IntN(3), rng.IntN(2) == 0, lives >= 60, []int{PaneBytes, 1}[rng.IntN(8)/7])
			}
			if lives < 50 {
				t.Fatalf("only %d lives", lives)
			}
			got := outputs(t, c, group, 0, watermarkAt(10*hour))
			same(t, got, undisturbed(t, c, group, len(msgs)))
			if total := got.commit.Total; total.Counted != 240*5 || total.Duplicate == 0 || total.Late != 0 {
				t.Fatalf("account %+v", total)
			}
		})
	}
}

// life runs an aggregator until its nth flush, which is stored or not as told
// and not answered; or, the last one, to the end of the stream. Flushes of up to
// whole bytes are one message, others a batch.
func life(t *testing.T, c *bus.Client, group string, nth int, stored, last bool, whole int) (done bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seen := newCounts()
	end := make(chan struct{})
	n := 0
	a, err := New(Options{
		Client: c, Group: group, Advice: Always{}, FlushBytes: 1, FlushEvery: time.Hour, Metrics: seen, Owner: "one", whole: whole,
		Publish: func(ctx context.Context, msgs []bus.Msg, expect uint64) (uint64, error) {
			n++
			if last || n < nth {
				return c.PublishFenced(ctx, msgs, expect)
			}
			if stored {
				if _, err := c.PublishFenced(ctx, msgs, expect); err != nil {
					t.Error(err)
				}
			}
			cancel()
			return 0, errCut
		},
		Covered: func(_ string, _ int, seq uint64) {
			if st, err := c.State(context.Background(), subject.EventsStream); err == nil && seq == st.LastSeq && !done {
				done = true
				close(end)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() { result <- a.Run(ctx) }()
	select {
	case <-end:
		cancel()
	case <-ctx.Done():
	case <-time.After(bustest.Timeout):
		t.Fatal("neither stopped nor done")
	}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if n > 0 && seen.of(Fenced) > 0 {
		t.Fatal("fenced, though alone")
	}
	return done
}

// TestLostAnswersAreNoFence cuts the answer of every third flush after it was
// stored, and loses every third before.
func TestLostAnswersAreNoFence(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	c := bustest.Client(t, b)
	seen := newCounts()
	calls := 0
	start(t, Options{
		Client: bustest.Client(t, b), Group: window.Owners, Advice: Always{}, FlushBytes: 1, Metrics: seen,
		Publish: func(ctx context.Context, msgs []bus.Msg, expect uint64) (uint64, error) {
			calls++
			switch calls % 3 {
			case 1:
				return 0, errCut
			case 2:
				if _, err := c.PublishFenced(ctx, msgs, expect); err != nil && !errors.Is(err, bus.ErrConflict) {
					t.Error(err)
				}
				return 0, errCut
			}
			return c.PublishFenced(ctx, msgs, expect)
		},
	})
	msgs := stream(t, rand.New(rand.NewPCG(1, 1)), "R", 6, 3)
	publish(t, c, msgs...)
	got := outputs(t, c, window.Owners, 0, watermarkAt(10*hour))
	same(t, got, undisturbed(t, c, window.Owners, len(msgs)))
	await(t, seen, "the last flush answered", func() bool { return seen.covered() >= got.commit.Covered })
	if seen.of(Fenced) > 0 || seen.of(Recognised) == 0 || seen.of(Resent) == 0 {
		t.Fatalf("fenced %d, recognised %d, resent %d", seen.of(Fenced), seen.of(Recognised), seen.of(Resent))
	}
}

// TestTwoOnOnePartition lets two aggregators claim one partition over and over:
// each is fenced at least 5 times, and nothing is lost or counted twice.
func TestTwoOnOnePartition(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	c := bustest.Client(t, b)
	seen := []*counts{newCounts(), newCounts()}
	for i := range seen {
		start(t, Options{
			Client: bustest.Client(t, b), Group: window.Owners, Advice: Always{}, FlushBytes: 1, Metrics: seen[i],
			Owner: fmt.Sprint("agg-", i), FenceWait: time.Millisecond,
		})
	}
	rng := rand.New(rand.NewPCG(3, 3))
	n, k := 0, uint64(0)
	for seen[0].of(Fenced) < 5 || seen[1].of(Fenced) < 5 {
		if k++; k > 2000 {
			t.Fatalf("fenced %d and %d times", seen[0].of(Fenced), seen[1].of(Fenced))
		}
		who := fmt.Sprintf("u%d", rng.IntN(9))
		publish(t, c, batch{run: "R", seq: k, watermark: 0, rows: []event.Request{rowAt(int64(k), who, who, "east")}}.message(t))
		n++
		select {
		case <-seen[0].told:
		case <-seen[1].told:
		case <-time.After(bustest.Timeout):
			t.Fatal("nobody does anything")
		}
	}
	publish(t, c, mark(event.End, "R", 10*hour, k))
	got := outputs(t, c, window.Owners, 0, watermarkAt(10*hour))
	same(t, got, undisturbed(t, c, window.Owners, n+1))
	if got.commit.Total.Counted != int64(k) {
		t.Fatalf("account %+v, want %d counted", got.commit.Total, k)
	}
}

// TestRepeatedBatchesCountOnce is P03 on a real stream: each batch 1 to 6 times,
// near and far apart.
func TestRepeatedBatchesCountOnce(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	c := bustest.Client(t, b)
	start(t, Options{Client: bustest.Client(t, b), Group: window.Owners, Advice: Always{}})
	rng := rand.New(rand.NewPCG(5, 5))
	var first, again []bus.Msg
	for k := 1; k <= 60; k++ {
		m := batch{run: "R", seq: uint64(k), rows: []event.Request{rowAt(int64(k), "ann", "bob", "east")}}.message(t)
		first = append(first, m)
		for range rng.IntN(6) {
			if rng.IntN(2) == 0 {
				first = append(first, m)
			} else {
				again = append(again, m)
			}
		}
	}
	rng.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
	publish(t, c, first...)
	publish(t, c, again[:len(again)/2]...)
	publish(t, c, mark(event.End, "R", hour, 60))
	publish(t, c, again[len(again)/2:]...)
	publish(t, c, mark(event.End, "S", 2*hour, 0))
	got := outputs(t, c, window.Owners, 0, watermarkAt(2*hour))
	if r := column(got.tables["traffic"], "requests"); r["0 bob east"] != 60 {
		t.Fatalf("traffic %v, want 60", r)
	}
	want := window.Account{Received: int64(len(first) + len(again)), Counted: 60, Duplicate: int64(len(first) + len(again) - 60)}
	if got.commit.Total != want {
		t.Fatalf("account %+v, want %+v", got.commit.Total, want)
	}
}

// TestServerRestartChangesNothing takes the server down and up in the middle.
func TestServerRestartChangesNothing(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions = 1 })
	c := bustest.Client(t, b)
	seen := newCounts()
	start(t, Options{Client: bustest.Client(t, b), Group: window.Owners, Advice: Always{}, FlushBytes: 1, Metrics: seen})
	msgs := stream(t, rand.New(rand.NewPCG(9, 9)), "R", 30, 4)
	half := len(msgs) / 2
	publish(t, c, msgs[:half]...)
	await(t, seen, "something is covered", func() bool { return seen.covered() > 0 })
	bustest.Restart(t, b)
	// The client of the test reconnects too: a publish is repeated until it is
	// answered, and a repeat is a duplicate.
	for _, m := range msgs[half:] {
		for {
			if _, err := c.Publish(t.Context(), m); err == nil {
				break
			}
			if t.Context().Err() != nil {
				t.Fatal("no answer")
			}
		}
	}
	got := outputs(t, c, window.Owners, 0, watermarkAt(10*hour))
	st, err := c.State(t.Context(), subject.EventsStream)
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, undisturbed(t, c, window.Owners, int(st.Msgs)))
	if seen.of(Fenced) > 0 {
		t.Fatalf("fenced %d times, though alone", seen.of(Fenced))
	}
}

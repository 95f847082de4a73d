package aggregator

import (
	"fmt"
	"testing"
	"time"

	"penstock/consumers/aggregator/ledger"
	"penstock/consumers/aggregator/rollup"
	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// TestShortWindowsAreFlushedAtOnce: live, a window of 5 s goes out when the
// watermark passes its end; the clock never reaches a tick.
func TestShortWindowsAreFlushedAtOnce(t *testing.T) {
	b := bustest.Start(t, func(o *bus.Options) { o.Partitions, o.Window = 1, 5*time.Second })
	c := bustest.Client(t, b)
	clk := clock.NewManual(time.UnixMicro(1e15))
	start(t, Options{Client: bustest.Client(t, b), Group: window.Owners, Advice: Always{}, Clock: clk})
	if err := clk.Await(t.Context(), 1); err != nil { // the ticker: it has claimed
		t.Fatal(err)
	}
	seq := uint64(0)
	send := func(watermark, at time.Duration) {
		seq++
		publish(t, c, batch{
			run: "R", seq: seq, watermark: watermark.Microseconds(),
			rows: []event.Request{rowAt(at.Microseconds(), "ann", fmt.Sprint("owner ", seq), "east")},
		}.message(t))
	}
	clk.Advance(passedAfter)
	send(4*time.Second, time.Second) // The first watermark at all.
	outputs(t, c, window.Owners, 0, watermarkAt(4e6))
	clk.Advance(passedAfter)
	send(6*time.Second, 5*time.Second)
	got := outputs(t, c, window.Owners, 0, watermarkAt(6e6))
	if tab := got.tables["traffic"]; tab.Len() != 2 || tab.Wide() != 5*time.Second || tab.Start[1] != 5e6 {
		t.Errorf("traffic %+v", tab)
	}
	if want := (window.WindowCount{Start: 5e6, Counted: 1}); got.counts[5e6] != want || got.counts[0].Counted != 1 {
		t.Errorf("counts %v", got.counts)
	}
}

// TestEndsThatPassAreFlushedNotTooOften asks when a flush is due as windows of 5 s
// end one after another.
func TestEndsThatPassAreFlushedNotTooOften(t *testing.T) {
	widths := window.Widths{Owners: 5 * time.Second}
	for _, purpose := range []bus.Purpose{bus.Serve, bus.Replay} {
		clk := clock.NewManual(time.UnixMicro(1e15))
		w := &worker{
			opts: &Options{Clock: clk, Purpose: purpose, FlushBytes: DefaultFlushBytes, FlushEvery: DefaultFlushOwners},
			book: ledger.New(ledger.ConfigOf(window.Owners, 0, 0, widths)), began: clk.Now(),
		}
		w.state, _ = rollup.New(window.Owners, widths)
		seq := uint64(0)
		pass := func(seconds int64) {
			seq++
			w.book.Take(ledger.Position{Seq: seq}, &event.Header{Run: "R", Seq: seq, Watermark: seconds * 1e6}, nil, nil)
		}
		flush := func() { w.book.Commit(); w.began = clk.Now() }
		pass(1)
		flush()
		live := purpose == bus.Serve
		for i, c := range []struct {
			after   time.Duration
			seconds int64
			due     bool
		}{
			{passedAfter, 4, false}, // No end has passed.
			{0, 5, live},
			{0, 11, false}, // The last flush was a moment ago.
			{passedAfter - 1, 21, false},
			{1, 22, live},
			{time.Minute, 24, false},
			{0, 25, live},
		} {
			clk.Advance(c.after)
			pass(c.seconds)
			if got := w.due(); got != c.due {
				t.Errorf("%s: step %d: due is %v", purpose, i, got)
			}
			if c.due {
				flush()
			}
		}
		pass(31)
		w.ticked = true
		if !w.due() {
			t.Errorf("%s: an end that passed waits for more than a tick", purpose)
		}
	}
}

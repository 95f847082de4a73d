package publisher

import (
	"math"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock"
	"penstock/schemas/event"
)

// hand is a live publisher whose clock and turns are the test's.
type hand struct {
	t   *testing.T
	p   *Publisher
	c   *pacer
	clk *clock.Manual
	n   int
}

func newHand(t *testing.T, c *bus.Client) *hand {
	t.Helper()
	clk := clock.NewManual(time.UnixMicro(1_700_000_000_000_000))
	// It takes no turn of its own: its clock never gets that far.
	p := newLive(t, c, func(o *Options) { o.Clock, o.MaxAge = clk, 1000*time.Hour })
	if err := clk.Await(testContext(t), 2); err != nil { // pace and pump
		t.Fatal(err)
	}
	return &hand{t: t, p: p, c: p.newPacer(), clk: clk}
}

// turn lets a turn pass, with a row in it if asked for, and waits until what can
// be sent is sent.
func (h *hand) turn(traffic bool) {
	h.t.Helper()
	h.clk.Advance(look)
	if traffic {
		r := liveRow(h.n, h.clk.Now())
		h.n++
		if h.p.Publish(&r); r.Mark != event.InTime {
			h.t.Fatalf("row %d is %v", h.n, r.Mark)
		}
	}
	h.p.turn(h.c)
	waitFor(h.t, "what was cut to be sent", func() bool {
		h.p.out.mu.Lock()
		defer h.p.out.mu.Unlock()
		waiting := 0 // to be encoded, put into the spool, or sent
		for _, e := range h.p.out.undone {
			if !e.done && !e.inFlight {
				waiting++
			}
		}
		ready := len(h.p.out.ready)
		return waiting == 0 && ready == 0 || waiting <= ready && h.clk.Now().Before(h.p.out.until)
	})
}

// turns are turns for d; after each, everything is answered if the bus answers.
func (h *hand) turns(d time.Duration, traffic, answered bool) {
	h.t.Helper()
	for range d / look {
		h.turn(traffic)
		if answered {
			h.answered()
		}
	}
}

func (h *hand) answered() {
	h.t.Helper()
	waitFor(h.t, "the answers", func() bool {
		h.p.out.mu.Lock()
		defer h.p.out.mu.Unlock()
		// The next heartbeat waits until the last one's answer was heard to the end;
		// one that waits to be sent has none.
		return len(h.p.out.flight) == 0 && (len(h.p.out.ready) > 0 || !h.p.beating.Load())
	})
}

// announced is the greatest watermark that was told, or is about to be.
func (h *hand) announced() time.Time {
	h.p.lockAll()
	defer h.p.unlockAll()
	w := int64(math.MinInt64)
	for i := range h.p.slots {
		w = max(w, h.p.slots[i].horizon)
	}
	return time.UnixMicro(w)
}

// behind is how far what was told is behind the clock.
func (h *hand) behind() time.Duration { return h.clk.Now().Sub(h.announced()) }

// TestOutage takes the bus from a publisher with and without traffic: from before
// the outage until the bus has been back for settleFor its watermark stands still.
func TestOutage(t *testing.T) {
	t.Parallel()
	for name, traffic := range map[string]bool{"traffic": true, "quiet": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bustest.Start(t)
			h := newHand(t, bustest.Client(t, b))
			h.turns(5*time.Second, traffic, true)
			if got := h.behind(); got > 2500*time.Millisecond {
				t.Fatalf("%v behind a bus that is there", got)
			}
			since := h.clk.Now().Add(-h.p.o.Disorder)
			b.Suspend()
			waitFor(t, "the loss", func() bool { return !h.p.o.Client.Connected() })
			h.turns(20*time.Second, traffic, false)
			if got := h.announced(); got.After(since) {
				t.Errorf("a watermark %v after the outage began", got.Sub(since))
			}
			if err := b.Resume(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the connection", h.p.o.Client.Connected)
			back := h.clk.Now()
			for h.clk.Now().Sub(back) < settleFor {
				h.turns(look, traffic, true)
				if got := h.announced(); got.After(since) {
					t.Fatalf("a watermark %v after the outage began, the bus is back for %v", got.Sub(since), h.clk.Now().Sub(back))
				}
			}
			h.turns(3*time.Second, traffic, true)
			if got := h.behind(); got > 2500*time.Millisecond {
				t.Errorf("%v behind, %v after the bus came back", got, h.clk.Now().Sub(back))
			}
		})
	}
}

// TestSlowBus: a bus that is slow for minutes but answers holds the watermark back
// by some answers, and no more. A row is never late.
func TestSlowBus(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		stall   time.Duration
		traffic bool
		during  time.Duration
	}{
		"1 s":            {time.Second, true, 10 * time.Second},
		"2.5 s":          {2500 * time.Millisecond, true, time.Minute},
		"2.5 s, quiet":   {2500 * time.Millisecond, false, 4 * time.Minute},
		"9 s, quiet":     {9 * time.Second, false, 4 * time.Minute},
		"beyond retries": {15 * time.Second, true, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bustest.Start(t, func(o *bus.Options) { o.Listen, o.Partitions = "127.0.0.1:0", 1 })
			proxy := bustest.NewProxy(t, b.URL())
			far, err := bus.Open(testContext(t), bus.Options{URL: proxy.URL, Logger: zerolog.Nop()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = far.Close() })
			h := newHand(t, bustest.Client(t, far))
			h.turns(5*time.Second, x.traffic, true)
			begin, behind, last := h.clk.Now(), time.Duration(0), time.Duration(0)
			for h.clk.Now().Sub(begin) < x.during {
				release := proxy.Hold()
				last = 0
				for range x.stall / look {
					h.turn(x.traffic)
					last = max(last, h.behind())
				}
				behind = max(behind, last)
				release()
				h.answered()
			}
			// Once it takes the bus for away. If that is slower than a slow one may be, it
			// does so each time, and is content with what lies between.
			most := x.stall + 3*time.Second
			if x.stall >= silence {
				most += settleFor + 2*x.stall
			}
			t.Logf("%v behind at most, %v at the end", behind, last)
			if behind > most {
				t.Errorf("%v behind, expected %v at most", behind, most)
			}
			if x.stall >= silence && behind < settleFor {
				t.Error("it did not stand still at all")
			}
			if most := x.stall + 3*time.Second; x.stall < silenceMost && last > most {
				t.Errorf("%v behind at the end, expected %v at most", last, most)
			}
		})
	}
}

// TestFrozenBus: a silence is noticed after a while, and the watermark stands
// where it began; whoever froze for less only waits.
func TestFrozenBus(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t, func(o *bus.Options) { o.Listen = "127.0.0.1:0" })
	proxy := bustest.NewProxy(t, b.URL())
	far, err := bus.Open(testContext(t), bus.Options{URL: proxy.URL, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	h := newHand(t, bustest.Client(t, far))
	h.turns(5*time.Second, true, true)
	for _, x := range []struct{ frozen, settles time.Duration }{{silence - 2*look, 0}, {5 * time.Second, settleFor}} {
		since := h.clk.Now().Add(look - h.p.o.Disorder) // the first batch without an answer is cut then
		release := proxy.Hold()
		h.turns(x.frozen, true, false)
		if got := h.announced(); got.After(since) {
			t.Errorf("frozen for %v: a watermark %v after it began", x.frozen, got.Sub(since))
		}
		release()
		h.answered()
		back := h.clk.Now()
		for h.clk.Now().Sub(back) < x.settles {
			h.turns(look, true, true)
			if got := h.announced(); got.After(since) {
				t.Fatalf("frozen for %v: a watermark %v after it began, %v after it was over", x.frozen, got.Sub(since), h.clk.Now().Sub(back))
			}
		}
		h.turns(500*time.Millisecond, true, true)
		if got := h.behind(); got > 1500*time.Millisecond {
			t.Errorf("frozen for %v: %v behind, %v after it was over", x.frozen, got, h.clk.Now().Sub(back))
		}
	}
}

// TestBeginsWithoutABus: a run that begins in an outage claims nothing about time
// before others have had time to come.
func TestBeginsWithoutABus(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	b.Suspend()
	waitFor(t, "the loss", func() bool { return !c.Connected() })
	h := newHand(t, c)
	h.turns(5*time.Second, true, false)
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the connection", c.Connected)
	h.turns(settleFor, true, true)
	if got := h.announced(); got.UnixMicro() != earliest {
		t.Errorf("it said %v", got)
	}
	h.turns(time.Second, true, true)
	if got := h.behind(); got > 1500*time.Millisecond {
		t.Errorf("%v behind", got)
	}
}

// TestPositionsStandStill: with positions the watermark is the caller's, and stands
// still like any other; it goes on without another commit.
func TestPositionsStandStill(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	c := bustest.Client(t, b)
	clk := clock.NewManual(time.UnixMicro(1_700_000_000_000_000))
	p := newGrouped(t, c, func(o *Options) { o.Clock = clk })
	if err := clk.Await(testContext(t), 2); err != nil {
		t.Fatal(err)
	}
	send(t, p, 0, 100)
	commit(t, p, 100)
	waitFor(t, "the first group", func() bool { clk.Advance(time.Millisecond); return p.Stats().Waiting == 0 })
	clk.Advance(heartbeatEvery / 4)
	b.Suspend()
	waitFor(t, "the loss", func() bool { clk.Advance(10 * time.Millisecond); return p.ceiling.Load() != math.MaxInt64 })
	send(t, p, 100, 200)
	commit(t, p, 200)
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the connection", c.Connected)
	back := clk.Now()
	last := func() (m event.Mark) {
		if marks := readAll(t, c).marks; len(marks) > 0 {
			m = marks[len(marks)-1]
		}
		return m
	}
	for beats := p.Stats().HeartbeatsConfirmed; last().Watermark != row(199).Time; {
		waitFor(t, "a heartbeat", func() bool {
			clk.Advance(20 * time.Millisecond)
			return p.Stats().HeartbeatsConfirmed > beats
		})
		beats = p.Stats().HeartbeatsConfirmed
		m, passed := last(), clk.Now().Sub(back)
		if m.Watermark > row(99).Time && passed < settleFor {
			t.Fatalf("%v after the bus came back: %+v", passed, m)
		}
		if passed > 10*time.Minute {
			t.Fatalf("it stands still: %+v", m)
		}
	}
}

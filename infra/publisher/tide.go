package publisher

import (
	"math"
	"time"
)

const (
	// settleFor is how long a watermark stands still after the bus has come back.
	// Others may need that long: a connection over which nothing came is given up
	// after 8 to 12 s, and until then TCP repeats at ever longer intervals, so that
	// two who lost the bus at the same time find it again up to 6 s apart; then they
	// look at it. An aggregator lets only known runs hold a window, and no run that
	// it has not heard for 3 s (idle_timeout): who goes on sooner makes rows late
	// that others have spooled.
	settleFor = 8 * time.Second
	// silence is after how long without an answer the bus counts as away although
	// the connection stands.
	silence = 2 * time.Second
	// silenceMost is the same of a bus that is known to be slow. By then a connection
	// over which nothing comes is given up.
	silenceMost = 12 * time.Second
	// slowFor is how long a bus counts as slow after it was.
	slowFor = time.Minute
)

// watch is what looking at the bus again and again tells.
//
//	there ──no connection, or silent──▶ away ──an answer──▶ settling ──need──▶ there
//	                                     ▲                      │
//	                                     └── again, need less ──┘
//
// The watermark stands still but in the first state. A bus that was silent and
// answers over the same connection may be slow, not away: for a minute it may be
// silent for twice as long.
type watch struct {
	away  bool
	still bool
	good  int64         // µs; how far the watermark could go at the last look while it was there
	limit int64         // µs; what it doesn't pass while it stands still
	back  time.Time     // since when the bus is there again
	need  time.Duration // for so long it must be there until it has settled
	// answers is their number when the bus was seen to be away: a connection proves
	// nothing, an answer does.
	answers uint64

	silence time.Duration // how long the bus may be silent
	gap     time.Duration // how long it was, as the last looks saw it
	seen    uint64        // answers at the last look
	slow    time.Time     // when it was last seen to be slow
}

func newWatch() *watch { return &watch{good: earliest, need: settleFor, silence: silence} }

// look takes what is seen now: whether there is a connection, until when the bus
// is known to have answered (now if nothing waits for an answer), how many answers
// there were, and how far (µs) the watermark can go if the bus is there.
func (w *watch) look(now, until time.Time, answers uint64, connected bool, good int64) {
	w.measure(now, until, answers, connected)
	there := connected && now.Sub(until) < w.silence
	switch {
	case !there:
		if !w.away {
			w.leave(now)
		}
		w.answers = answers
	case w.away && answers != w.answers:
		w.away, w.back = false, now
	}
	if w.away {
		return
	}
	w.good = good
	// In the midst of a silence nobody knows whether it is one of a slow bus.
	if w.still && now.Sub(w.back) >= w.need && now.Sub(until) < silence {
		w.still, w.need = false, settleFor
	}
}

// measure finds out whether the bus is slow.
func (w *watch) measure(now, until time.Time, answers uint64, connected bool) {
	switch {
	case !connected:
		w.gap = 0
	case answers != w.seen && w.gap >= silence:
		w.silence, w.slow = min(2*w.gap, silenceMost), now
	case now.Sub(w.slow) >= slowFor:
		w.silence = silence
	}
	if answers != w.seen {
		w.gap, w.seen = 0, answers
	}
	if connected {
		w.gap = max(w.gap, now.Sub(until))
	}
}

// leave notes that the bus is away. If it had not settled yet, what it was there
// counts by half the next time: however often it goes, the watermark moves on in the end, and who waits for
// it too; yet after an outage there is time for others.
func (w *watch) leave(now time.Time) {
	w.away = true
	if w.still {
		w.need -= now.Sub(w.back) / 2
		return
	}
	w.still, w.limit = true, w.good
}

// ceiling is what the watermark must not pass (µs).
func (w *watch) ceiling() int64 {
	if w.still {
		return w.limit
	}
	return math.MaxInt64
}

// look looks at the bus and sets how far the watermark may go.
func (p *Publisher) look(w *watch, now time.Time) {
	until, answers := p.out.evidence(now)
	good := p.horizon.Load()
	if p.live {
		good = until.Add(-p.o.Disorder).UnixMicro()
	}
	w.look(now, until, answers, p.o.Client.Connected() && p.o.Client.Usable() == nil, good)
	p.ceiling.Store(w.ceiling())
}

// tide is how far (µs) the watermark may go: live, the clock less Disorder, or
// until when the bus is known to have answered, less Disorder; with positions, what
// Horizon was told. It stands still while the bus is away and until it has settled.
func (p *Publisher) tide(now time.Time, horizon int64) int64 {
	if p.live {
		until, _ := p.out.evidence(now)
		horizon = until.Add(-p.o.Disorder).UnixMicro()
	}
	return min(horizon, p.ceiling.Load())
}

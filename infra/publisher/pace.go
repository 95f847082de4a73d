package publisher

import (
	"context"
	"math"
	"time"

	"penstock/schemas/event"
)

const (
	// settleFor is how long a live watermark stands still after the bus has come
	// back. As long as that a run that was never heard of, of a process that started
	// meanwhile, may take to say that it is there: what it has recorded in the
	// outage must not be late because others are further.
	settleFor = 3 * time.Second
	// silence is after how long without an answer the bus counts as away although
	// the connection stands.
	silence = 2 * time.Second
)

// outage is what the pacing goroutine knows of the bus.
type outage struct {
	away bool
	good time.Time // when it was there last; zero: not yet
	back time.Time // since when it is there again; zero: it was never away
}

// look finds out whether the bus is there, and sets how far the watermark may go.
func (p *Publisher) look(o *outage, now time.Time) {
	if p.o.Client.Connected() && p.o.Client.Usable() == nil && !p.out.silent(now, silence) {
		if o.away {
			o.away, o.back = false, now
		}
		o.good = now
		if now.Sub(o.back) >= settleFor {
			p.ceiling.Store(math.MaxInt64)
		}
		return
	}
	if o.away {
		return
	}
	o.away = true
	ceiling := int64(earliest) // Others may have begun before this one.
	if !o.good.IsZero() {
		ceiling = o.good.Add(-p.o.Disorder).UnixMicro()
	}
	p.ceiling.Store(min(p.ceiling.Load(), ceiling))
}

// tide is the live watermark: the clock less Disorder. While the bus is away, and
// until everybody has said that they are there, it stands still.
func (p *Publisher) tide(now time.Time) int64 {
	return min(now.Add(-p.o.Disorder).UnixMicro(), p.ceiling.Load())
}

// pace cuts what is open every MaxAge and keeps the run's watermark going, until
// ctx ends. It is the live part that the clock drives.
func (p *Publisher) pace(ctx context.Context) {
	tick := p.o.Clock.NewTicker(p.o.MaxAge)
	defer tick.Stop()
	last := p.o.Clock.Now()
	bus := outage{}
	p.look(&bus, last)
	if p.resending.Load() > 0 {
		p.announce()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
		now, quiet := p.o.Clock.Now(), false
		p.look(&bus, now)
		for i := range p.slots {
			s := &p.slots[i]
			s.mu.Lock()
			if !p.ended.Load() {
				p.cut(i, s)
			}
			quiet = quiet || now.Sub(s.lastCut) >= heartbeatEvery
			s.mu.Unlock()
		}
		switch {
		case now.Sub(last) < heartbeatEvery:
		case p.resending.Load() > 0:
			if p.announce() {
				last = now
			}
		case quiet && p.beat():
			last = now
		}
	}
}

// announce says that the run is there while what the spool holds of earlier ones
// goes before it; else it would be heard of only when those have ended and hold no
// window open any more. It names no sequence: what is named and doesn't come would
// count as lost.
func (p *Publisher) announce() bool {
	if p.ended.Load() || !p.beating.CompareAndSwap(false, true) {
		return false
	}
	e := p.heartbeat(&event.Mark{Kind: event.Heartbeat, Run: p.o.Run, Watermark: earliest, Upto: make([]uint64, len(p.slots))})
	e.first = true
	p.out.add(e)
	return true
}

// beat sends a heartbeat unless the last one has no answer yet; it reports
// whether it did. A heartbeat's watermark binds every partition, so everything
// is cut first, and what comes later and is older is late.
func (p *Publisher) beat() bool {
	p.lockAll()
	defer p.unlockAll()
	if p.ended.Load() || !p.beating.CompareAndSwap(false, true) {
		return false
	}
	watermark := p.tide(p.o.Clock.Now())
	for i := range p.slots {
		p.cut(i, &p.slots[i])
		p.slots[i].horizon = max(p.slots[i].horizon, watermark)
		watermark = p.slots[i].horizon
	}
	for i := range p.slots {
		p.slots[i].horizon = watermark
	}
	p.out.add(p.heartbeat(&event.Mark{Kind: event.Heartbeat, Run: p.o.Run, Watermark: watermark, Upto: p.sequences()}))
	return true
}

// heartbeat is the entry of a heartbeat; the next one waits for its answer.
func (p *Publisher) heartbeat(m *event.Mark) *entry {
	return &entry{
		loose: true, mark: m,
		onDone: func(err error) {
			p.beating.Store(false)
			if err == nil {
				p.count.heartbeats.Add(1)
			}
		},
	}
}

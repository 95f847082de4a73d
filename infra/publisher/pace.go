package publisher

import (
	"context"
	"time"

	"penstock/schemas/event"
)

// pacer is what the goroutine that the clock drives keeps between its turns.
type pacer struct {
	every time.Duration
	bus   *watch
	last  time.Time // when a heartbeat went out
	beat  func() bool
}

// newPacer looks at the bus for the first time: before anything is cut, for who
// begins without it claims nothing about time.
func (p *Publisher) newPacer() *pacer {
	c := &pacer{every: p.o.MaxAge, bus: newWatch(), last: p.o.Clock.Now(), beat: p.beat}
	if p.group != nil {
		c.every, c.beat = heartbeatEvery/4, p.beatCommitted
	}
	p.look(c.bus, c.last)
	return c
}

// pace takes turns until ctx ends.
func (p *Publisher) pace(ctx context.Context, c *pacer) {
	tick := p.o.Clock.NewTicker(c.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
		p.turn(c)
	}
}

// turn cuts what is open, if the publisher is live, and keeps the run's watermark
// going.
func (p *Publisher) turn(c *pacer) {
	now, quiet := p.o.Clock.Now(), false
	p.look(c.bus, now)
	for i := range p.slots {
		s := &p.slots[i]
		s.mu.Lock()
		if p.live && !p.ended.Load() {
			p.cut(i, s)
		}
		quiet = quiet || now.Sub(s.lastCut) >= heartbeatEvery
		s.mu.Unlock()
	}
	switch {
	case now.Sub(c.last) < heartbeatEvery:
	case p.resending.Load() > 0:
		if p.announce() {
			c.last = now
		}
	case quiet && c.beat():
		c.last = now
	}
}

// announce says that the run is there while what the spool holds of earlier ones
// goes before it; else it would be heard of only when those have ended and hold no
// window open any more. So nothing of them is sent before the bus has it once, and it
// is said again if it fails, of a run that is to end too. It names no sequence: what is named and doesn't come would count as
// lost.
func (p *Publisher) announce() bool {
	if !p.beating.CompareAndSwap(false, true) {
		return false
	}
	e := p.heartbeat(&event.Mark{Kind: event.Heartbeat, Run: p.o.Run, Watermark: earliest, Upto: make([]uint64, len(p.slots))})
	e.first, e.alone = true, !p.known.Load()
	done := e.onDone
	e.onDone = func(err error) {
		if err == nil {
			p.known.Store(true)
		}
		done(err)
		if err != nil && p.resending.Load() > 0 {
			p.announce()
		}
	}
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
	watermark := p.tide(p.o.Clock.Now(), 0)
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

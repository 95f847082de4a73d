package publisher

import (
	"context"

	"penstock/schemas/event"
)

// pace cuts what is open every MaxAge and keeps the run's watermark going, until
// ctx ends. It is the live part that the clock drives.
func (p *Publisher) pace(ctx context.Context) {
	tick := p.o.Clock.NewTicker(p.o.MaxAge)
	defer tick.Stop()
	last := p.o.Clock.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C():
		}
		now, quiet := p.o.Clock.Now(), false
		for i := range p.slots {
			s := &p.slots[i]
			s.mu.Lock()
			if !p.ended.Load() {
				p.cut(i, s)
			}
			quiet = quiet || now.Sub(s.lastCut) >= heartbeatEvery
			s.mu.Unlock()
		}
		if quiet && now.Sub(last) >= heartbeatEvery && p.beat() {
			last = now
		}
	}
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
	watermark := p.o.Clock.Now().Add(-p.o.Disorder).UnixMicro()
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

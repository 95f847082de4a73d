package publisher

import (
	"slices"

	"penstock/schemas/event"
)

// Gauge takes the state of a queue, of a live run, and keeps nothing of it. Like
// Publish it never waits and never fails its caller. Gauges have no owner: they go out
// on partition 0, in batches of their own, with the sequence of the run's others.
func (p *Publisher) Gauge(g *event.Gauge) {
	if err := g.Check(); err != nil {
		p.invalid()
		return
	}
	s := &p.slots[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.ended.Load() { // under the slot's lock, so that none enters behind End
		p.count.drop(DropClosed, 0, 1)
		return
	}
	if s.gauges == nil {
		s.gauges = new(event.Gauges)
	}
	s.gauges.Append(g)
	if s.gauges.Len() >= p.o.MaxRows {
		p.cutGauges(0, s)
	}
}

// cutGauges closes the open batch of gauges as cut does one of requests. The slot's
// lock is held.
func (p *Publisher) cutGauges(n int, s *slot) {
	gauges := s.gauges
	s.gauges = nil
	s.seq++
	now := p.o.Clock.Now()
	s.lastCut = now
	p.out.cut(&entry{
		partition: n, seq: s.seq, rows: gauges.Len(), from: slices.Min(gauges.Time), to: slices.Max(gauges.Time), gauges: gauges,
		header: &event.Header{
			Schema: event.GaugeSchema, Encoding: event.EncodingS2, Run: p.o.Run, Seq: s.seq,
			Rows: gauges.Len(), Watermark: p.watermark(s, now),
		},
	})
}

// invalid counts a row that no batch may hold.
func (p *Publisher) invalid() {
	p.count.invalid.Add(1)
	p.count.rows.WithLabelValues("invalid", "").Inc()
	p.malformed.Add(1)
}

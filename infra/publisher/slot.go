package publisher

import (
	"math"
	"sync"
	"time"

	"penstock/schemas/event"
)

// earliest is the watermark of a run that has not said anything yet: 1900, the
// least that a header may hold.
const earliest = -2_208_988_800_000_000

// slot is one partition: its open batch and its sequence.
type slot struct {
	mu       sync.Mutex
	open     *event.Requests
	seq      uint64
	from, to int64 // of the open batch's rows
	horizon  int64 // what the last cut or mark announced; not of a replay
	lastCut  time.Time
	rows     int           // of the last batch, which the next one makes room for
	gauges   *event.Gauges // of partition 0 of a live run, waiting for the next cut
}

// add appends a row and cuts if the batch is full. The slot's lock is held.
func (p *Publisher) add(n int, s *slot, r *event.Request) {
	if s.open == nil {
		s.open = p.takeBatch(s.rows)
		s.from, s.to = math.MaxInt64, math.MinInt64
	}
	if p.span > 0 && s.open.Len() > 0 && r.Time-s.from >= p.span {
		p.cut(n, s)
		s.open = p.takeBatch(s.rows)
		s.from, s.to = math.MaxInt64, math.MinInt64
	}
	s.open.Append(r)
	s.from, s.to = min(s.from, r.Time), max(s.to, r.Time)
	if s.open.Len() >= p.o.MaxRows || s.open.Size() >= p.o.MaxBytes {
		p.cut(n, s)
	}
}

// cut closes the open batch, gives it its sequence and passes it on. The slot's
// lock is held. An empty batch is cut only where malformed lines wait for one.
func (p *Publisher) cut(n int, s *slot) {
	if s.gauges != nil {
		p.cutGauges(n, s)
	}
	empty := s.open == nil || s.open.Len() == 0
	if empty && (n != 0 || p.malformed.Load() == 0) {
		return
	}
	raw := s.open
	if raw == nil {
		raw = p.takeBatch(s.rows)
	}
	if empty {
		s.from, s.to = 0, 0
	}
	s.open, s.rows = nil, raw.Len()
	s.seq++
	now := p.o.Clock.Now()
	s.lastCut = now
	e := &entry{
		partition: n, seq: s.seq, rows: raw.Len(), from: s.from, to: s.to, raw: raw,
		header: &event.Header{
			Schema: event.RequestSchema, Encoding: event.EncodingS2, Run: p.o.Run, Seq: s.seq,
			Rows: raw.Len(), Watermark: p.watermark(s, now),
		},
	}
	if n == 0 {
		e.header.Malformed = p.malformed.Swap(0)
	}
	if s.seq <= p.o.Acked[n] {
		p.count.skipped.Add(uint64(e.rows))
		p.count.rows.WithLabelValues("skipped", "").Add(float64(e.rows))
		p.giveBatch(raw)
		return
	}
	if p.group != nil {
		p.group.cutOne()
	}
	p.out.cut(e)
}

// watermark is the run's horizon at a cut. The slot's lock is held.
func (p *Publisher) watermark(s *slot, now time.Time) int64 {
	if !p.live && p.group == nil {
		return p.horizon.Load()
	}
	s.horizon = max(s.horizon, p.tide(now, p.horizon.Load()))
	return s.horizon
}

// takeBatch returns an empty batch with room for rows, one used before if there
// is one.
func (p *Publisher) takeBatch(rows int) *event.Requests {
	var b *event.Requests
	select {
	case b = <-p.free:
	default:
		b = new(event.Requests)
	}
	b.Grow(rows)
	return b
}

// giveBatch takes a batch back.
func (p *Publisher) giveBatch(b *event.Requests) {
	b.Reset()
	select {
	case p.free <- b:
	default: // enough are in stock
	}
}

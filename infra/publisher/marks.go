package publisher

import (
	"context"
	"slices"

	"penstock/infra/bus"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

// Barrier cuts everything, waits until it is acknowledged, sends a barrier mark
// with the watermark (µs) and waits for its acknowledgement. If ctx ends first
// the mark may still be sent.
//
// With positions all must be committed before, else it is ErrUncommitted.
//
// In a resumed run, a barrier behind which Options.Acked lies as a whole has
// been sent before: it cuts, and sends nothing.
func (p *Publisher) Barrier(ctx context.Context, watermark int64) error {
	return p.mark(ctx, event.Barrier, watermark)
}

// End is a barrier that ends the run: nothing can be published after it. In a
// replay the watermark is the last time rounded up to the longest window.
func (p *Publisher) End(ctx context.Context, watermark int64) error {
	return p.mark(ctx, event.End, watermark)
}

func (p *Publisher) mark(ctx context.Context, kind event.MarkKind, watermark int64) error {
	e, err := p.cutAndMark(kind, watermark)
	if e == nil || err != nil {
		return err
	}
	select {
	case <-e.finished:
		return e.err
	case <-ctx.Done():
		return ctx.Err()
	case <-p.failure:
		return p.err
	}
}

// cutAndMark cuts all partitions at one point of the input and puts the mark
// behind the batches. The entry is nil if the mark was sent in an earlier
// attempt.
func (p *Publisher) cutAndMark(kind event.MarkKind, watermark int64) (*entry, error) {
	p.lockAll()
	defer p.unlockAll()
	if p.ended.Load() {
		return nil, ErrClosed
	}
	if p.group != nil && !p.allCommitted() {
		return nil, ErrUncommitted
	}
	for i := range p.slots {
		p.cut(i, &p.slots[i])
	}
	if kind == event.Barrier && p.acknowledgedBefore() {
		return nil, nil
	}
	e := &entry{fence: true, finished: make(chan struct{}), mark: &event.Mark{
		Kind: kind, Run: p.o.Run, Watermark: watermark, Upto: p.sequences(),
	}}
	if kind == event.End {
		p.ended.Store(true)
		switch {
		case p.group != nil:
			e.onDone = func(error) { p.spool.conclude() }
		case p.live:
			e.onDone = func(error) { p.spool.finish(p.o.Run) }
		}
	}
	p.out.add(e)
	return e, nil
}

// acknowledgedBefore reports whether every batch that is cut so far was
// acknowledged in an earlier attempt, and there was one.
func (p *Publisher) acknowledgedBefore() bool {
	if !slices.ContainsFunc(p.o.Acked, func(u uint64) bool { return u > 0 }) {
		return false
	}
	for i := range p.slots {
		if p.slots[i].seq > p.o.Acked[i] {
			return false
		}
	}
	return true
}

// markMsg is the message of a mark as it is sent now: what was dropped until
// this moment is in it, and told once it is acknowledged.
func (p *Publisher) markMsg(m *event.Mark) bus.Msg {
	if m.Run == p.o.Run {
		m.Dropped = p.out.peekDrops()
	}
	return bus.Msg{Subject: subject.Marks(p.o.Entry), Header: m.Fields()}
}

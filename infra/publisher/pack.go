package publisher

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"penstock/infra/bus"
	"penstock/schemas/event"
	"penstock/schemas/subject"
)

// pack encodes batches in the order in which they were cut until ctx ends. One
// with a spool goes on while the bus is away, into the spool; a replay's waits.
func (p *Publisher) pack(ctx context.Context) {
	var enc packer
	var body []byte
	for {
		for e := p.out.nextRaw(); e != nil; e = p.out.nextRaw() {
			if p.spool == nil && !p.waitForMemory(ctx) {
				return
			}
			var err error
			if body, err = enc.encode(body[:0], e); err != nil {
				p.cannotEncode(e, err)
				continue
			}
			p.strip(e)
			p.encoded(e, body)
		}
		if p.spool != nil {
			p.noteDrops()
		}
		select {
		case <-ctx.Done():
			return
		case <-p.out.packWake:
		}
	}
}

// packer encodes batches of both kinds.
type packer struct {
	requests event.Encoder
	gauges   event.GaugeEncoder
}

func (k *packer) encode(dst []byte, e *entry) ([]byte, error) {
	if e.gauges != nil {
		return k.gauges.Encode(dst, e.gauges)
	}
	return k.requests.Encode(dst, e.raw)
}

// strip takes the columns from a batch that needs them no more.
func (p *Publisher) strip(e *entry) {
	if e.raw != nil {
		p.giveBatch(e.raw)
	}
	e.raw, e.gauges = nil, nil
}

// waitForMemory waits until encoded bodies are within their bound.
func (p *Publisher) waitForMemory(ctx context.Context) bool {
	for {
		p.out.mu.Lock()
		room, full := p.out.room, p.out.held >= p.out.max
		p.out.mu.Unlock()
		if !full {
			return true
		}
		select {
		case <-room:
		case <-ctx.Done():
			return false
		}
	}
}

// encoded puts a body into the spool, if there is one, and in line to be sent.
func (p *Publisher) encoded(e *entry, body []byte) {
	if p.spool != nil {
		e.header.Dropped = p.out.takeDrops(e.partition)
	}
	e.size = len(body)
	e.msg = bus.Msg{Subject: subject.Events(e.partition, p.o.Entry), Header: e.header.Fields()}
	if p.spool == nil {
		e.msg.Data = bytes.Clone(body)
		p.out.push(e)
		return
	}
	if p.group != nil {
		e.msg.Data = bytes.Clone(body)
		p.group.add(e)
		return
	}
	var err error
	if e.place, err = p.spool.append(e, body); err != nil {
		reason := DropSpoolIO
		if errors.Is(err, errFull) {
			reason = DropSpool
		} else {
			p.o.Logger.Error().Err(err).Msg("spool cannot be written; events are dropped")
		}
		p.out.dropNow(e, reason)
		return
	}
	if len(e.header.Dropped) == 0 {
		e.header = nil // many may wait while the bus is away
	}
	e.msg.Data = bytes.Clone(body)
	p.out.push(e)
}

// cannotEncode ends all but a live run, which must not lose a row; a live run drops the
// batch. Neither happens with rows that pass Request.Check.
func (p *Publisher) cannotEncode(e *entry, err error) {
	if !p.live {
		p.fail(fmt.Errorf("partition %d, batch %d: %w", e.partition, e.seq, err))
		return
	}
	p.o.Logger.Error().Err(err).Int("partition", e.partition).Uint64("seq", e.seq).Msg("batch cannot be encoded")
	p.strip(e)
	p.out.dropNow(e, DropEncode)
}

// noteDrops tells the spool what was dropped, so that the next start can
// announce what this one no longer could.
func (p *Publisher) noteDrops() {
	if ds := p.out.unnoted(); len(ds) > 0 {
		if err := p.spool.note(ds); err != nil {
			p.o.Logger.Error().Err(err).Msg("spool cannot note what was dropped")
		}
	}
}

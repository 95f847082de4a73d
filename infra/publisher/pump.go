package publisher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"penstock/infra/bus"
)

// lookEvery is how often the pump looks for answers that are overdue.
const lookEvery = 50 * time.Millisecond

var (
	errNoAnswer     = errors.New("no acknowledgement in time")
	errDisconnected = errors.New("the connection was lost under way")
)

// link sends entries and takes their answers. Each entry's answer comes to a
// subject of its own, so that a late one still counts.
type link struct {
	client *bus.Client
	prefix string // of the subjects of answers
	sub    *nats.Subscription
	answer func(number uint64, err error)
}

func newLink(c *bus.Client, answer func(uint64, error)) (*link, error) {
	l := &link{client: c, prefix: c.NC.NewInbox() + ".", answer: answer}
	var err error
	if l.sub, err = c.NC.Subscribe(l.prefix+"*", l.take); err != nil {
		return nil, fmt.Errorf("publisher: %w", err)
	}
	if err = l.sub.SetPendingLimits(-1, -1); err != nil { // bounded by what is in flight
		return nil, fmt.Errorf("publisher: %w", err)
	}
	return l, nil
}

// send hands a message to the connection. A patient bus that is away, or is not
// the one that the batches were cut for, gets nothing.
func (l *link) send(number uint64, msg bus.Msg) error {
	if err := l.client.Usable(); err != nil {
		return err
	}
	m := l.client.Message(msg)
	m.Reply = l.prefix + strconv.FormatUint(number, 36)
	return l.client.NC.PublishMsg(m)
}

// take reads an answer of JetStream.
func (l *link) take(m *nats.Msg) {
	number, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, l.prefix), 36, 64)
	if err != nil {
		return // not to one of ours
	}
	if m.Header.Get("Status") == "503" {
		l.answer(number, nats.ErrNoResponders)
		return
	}
	var ack struct {
		Stream string `json:"stream"`
		Error  *struct {
			Code        int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	switch err := json.Unmarshal(m.Data, &ack); {
	case err != nil:
		l.answer(number, fmt.Errorf("acknowledgement %.100q: %w", m.Data, err))
	case ack.Error != nil:
		l.answer(number, &refusal{ack.Error.Code, ack.Error.Description})
	default:
		l.answer(number, nil)
	}
}

func (l *link) close() { _ = l.sub.Unsubscribe() } // fails only if the connection is closed

// refusal is the stream's own answer that it did not store a message.
type refusal struct {
	code        int
	description string
}

func (r *refusal) Error() string { return fmt.Sprintf("%s (%d)", r.description, r.code) }

// reasonOf names a failure for the counter.
func reasonOf(err error) string {
	var r *refusal
	switch {
	case errors.Is(err, errNoAnswer):
		return "timeout"
	case errors.Is(err, errDisconnected):
		return "reconnect"
	case errors.Is(err, nats.ErrNoResponders):
		return "no-stream"
	case errors.Is(err, bus.ErrAway):
		return "away"
	case errors.As(err, &r):
		return "refused"
	default:
		return "send"
	}
}

// pump sends what is ready until ctx ends.
func (p *Publisher) pump(ctx context.Context) {
	tick := p.o.Clock.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		for {
			e, m := p.out.nextReady(p.o.Clock.Now(), p.o.Client.NC.Stats().Reconnects)
			if e == nil {
				break
			}
			p.send(e, m)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.out.sendWake:
		case <-tick.C():
			p.overdue()
		}
	}
}

// send sends one entry, read back from the spool if it is there only.
func (p *Publisher) send(e *entry, m bus.Msg) {
	if e.mark != nil {
		p.settle(e.mark)
		m = p.markMsg(e.mark)
	} else if m.Header == nil {
		var err error
		if m, err = p.spool.read(e.place); err != nil {
			p.o.Logger.Error().Err(err).Int("partition", e.partition).Uint64("seq", e.seq).Msg("spool cannot be read")
			p.out.dropNow(e, DropSpoolIO)
			p.spool.done(e.place)
			return
		}
	}
	err := p.link.send(e.number, m)
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		p.tooLarge(e, err)
	case err != nil:
		p.failed(e, err)
	}
}

// tooLarge deals with a message that this bus will never take.
func (p *Publisher) tooLarge(e *entry, err error) {
	if e.place == nil {
		p.fail(fmt.Errorf("partition %d, batch %d of %d rows: %w", e.partition, e.seq, e.rows, err))
		return
	}
	p.out.dropNow(e, DropEncode)
	p.spool.done(e.place)
}

// overdue makes what is without an answer for too long ready again, and at once
// what was sent on a connection that is gone.
func (p *Publisher) overdue() {
	now, generation := p.o.Clock.Now(), p.o.Client.NC.Stats().Reconnects
	p.scratch = p.out.inFlight(p.scratch[:0])
	for _, e := range p.scratch {
		switch {
		case e.generation != generation:
			p.failed(e, errDisconnected)
		case now.Sub(e.sent) >= p.o.AckTimeout:
			p.failed(e, errNoAnswer)
		}
	}
	clear(p.scratch)
}

func (p *Publisher) failed(e *entry, err error) {
	now := p.o.Clock.Now()
	p.out.failed(e, reasonOf(err), err, now)()
	if last := p.complained.Load(); now.UnixMilli()-last >= 10_000 && p.complained.CompareAndSwap(last, now.UnixMilli()) {
		p.o.Logger.Warn().Err(err).Str("run", p.o.Run).Msg("events cannot be published; trying again")
	}
}

// answered takes an answer from the link's goroutine.
func (p *Publisher) answered(number uint64, err error) {
	if err != nil {
		p.out.mu.Lock()
		e := p.out.flight[number]
		p.out.mu.Unlock()
		if e != nil {
			p.failed(e, err)
		}
		return
	}
	e, after := p.out.acked(number, p.o.Clock.Now())
	if e == nil {
		return
	}
	if e.seq > 0 {
		p.count.sent.Add(uint64(e.rows))
		p.count.sentBatches.Add(1)
		p.count.sentBytes.Add(uint64(e.size))
		p.count.rows.WithLabelValues("sent", "").Add(float64(e.rows))
		p.count.batches.WithLabelValues("sent", "").Inc()
		p.count.bytes.Add(float64(e.size))
	}
	if e.place != nil {
		p.spool.done(e.place)
	}
	if e.mark != nil && e.mark.Run == p.o.Run {
		p.out.told(e.mark.Dropped)
		if p.spool != nil {
			p.spool.told(e.mark.Dropped)
		}
	}
	after()
	if p.group != nil {
		p.out.stir() // the spool may have room now
	}
}

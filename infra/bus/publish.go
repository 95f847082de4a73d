package bus

import (
	"context"
	"fmt"
	"maps"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

// PublishOption refines Publish.
type PublishOption func(*[]jetstream.PublishOpt)

// MsgID lets the server drop a repeat of the message within the stream's
// duplicate window. It has no place in an atomic batch.
func MsgID(id string) PublishOption {
	return func(o *[]jetstream.PublishOpt) { *o = append(*o, jetstream.WithMsgID(id)) }
}

// ExpectLast makes the write depend on the last sequence of its subject, 0 for
// none; else Publish returns ErrConflict.
func ExpectLast(seq uint64) PublishOption {
	return func(o *[]jetstream.PublishOpt) { *o = append(*o, jetstream.WithExpectLastSequencePerSubject(seq)) }
}

// Message is the message as the connection sends it: with the prefix. The body
// is shared, the headers are copied.
func (c *Client) Message(m Msg) *nats.Msg {
	return &nats.Msg{Subject: c.bus.subject(m.Subject), Header: maps.Clone(nats.Header(m.Header)), Data: m.Data}
}

// Publish stores one message and returns its sequence once it is acknowledged.
// ErrConflict means that it was not stored; after any other error its state is
// unknown.
func (c *Client) Publish(ctx context.Context, m Msg, opts ...PublishOption) (uint64, error) {
	var po []jetstream.PublishOpt
	for _, o := range opts {
		o(&po)
	}
	if err := c.Usable(); err != nil {
		return 0, fmt.Errorf("publish to %s: %w", m.Subject, err)
	}
	ctx, release := c.life.within(ctx)
	defer release()
	ack, err := c.JS.PublishMsg(ctx, c.Message(m), po...)
	if err != nil {
		return 0, publishError("publish to "+m.Subject, cause(ctx, err))
	}
	return ack.Sequence, nil
}

// PublishFenced stores messages of one stream, all or none, if the last
// sequence on the first one's subject is still expect (0: none). It returns
// the sequence of the last message. One message is a plain write, several are
// an atomic batch.
//
// ErrConflict means that nothing was stored by this call. After any other error
// the state is unknown: send everything again under the same expectation. Then
// a conflict may be with the first attempt, whose acknowledgement was lost.
func (c *Client) PublishFenced(ctx context.Context, msgs []Msg, expect uint64) (uint64, error) {
	if len(msgs) == 0 {
		return 0, fmt.Errorf("publish fenced: no messages")
	}
	if len(msgs) > MaxBatch {
		return 0, fmt.Errorf("publish fenced: %d messages, at most %d: %w", len(msgs), MaxBatch, ErrTooLarge)
	}
	if len(msgs) == 1 {
		return c.Publish(ctx, msgs[0], ExpectLast(expect))
	}
	if err := c.Usable(); err != nil {
		return 0, fmt.Errorf("publish fenced to %s: %w", msgs[0].Subject, err)
	}
	batch := make([]*nats.Msg, len(msgs))
	for i, m := range msgs {
		b := c.Message(m)
		if b.Header == nil {
			b.Header = nats.Header{}
		}
		if i == 0 {
			// On a later message the same expectation would be refused with
			// 10164, for the batch itself is then under way on the subject.
			b.Header.Set(jetstream.ExpectedLastSubjSeqHeader, fmt.Sprint(expect))
		}
		if int64(b.Size()) > c.NC.MaxPayload() {
			return 0, fmt.Errorf("publish fenced: message %d has %d bytes, at most %d: %w",
				i, b.Size(), c.NC.MaxPayload(), ErrTooLarge)
		}
		batch[i] = b
	}
	// The server drops what overflows its queue of 128 MB; asking for an answer
	// every 32 MB at most keeps well below.
	flow := jetstreamext.BatchFlowControl{AckFirst: true, AckEvery: 32, AckTimeout: c.JS.Options().DefaultTimeout}
	ctx, release := c.life.within(ctx)
	defer release()
	ack, err := jetstreamext.PublishMsgBatch(ctx, c.JS, batch, flow)
	if err != nil {
		return 0, publishError("publish fenced to "+msgs[0].Subject, cause(ctx, err))
	}
	return ack.Sequence, nil
}

package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

// The server's answers to a batch that it does not take for a reason that
// sending the messages one by one does not have.
const (
	batchDuplicate  = 10201 // a message id is known already
	batchNotAllowed = 10174 // the stream takes no batches
)

// PublishTogether stores messages of one stream as an atomic batch, all or none,
// with one sync, and returns the sequence of the last; the others' are those
// before it. The messages are sent as they are: headers may hold an expectation
// and a message id each. They cannot be sent in any other way afterwards, for
// their headers hold the batch's then. It is for many independent writes; what must follow a
// record is PublishFenced's.
//
// ErrConflict means that an expectation did not hold and nothing was stored by
// this call. ErrOneByOne means that this batch can only be sent as single
// messages; nothing was stored. After any other error the state is unknown.
func (c *Client) PublishTogether(ctx context.Context, msgs []*nats.Msg) (uint64, error) {
	if len(msgs) < 2 {
		return 0, fmt.Errorf("publish together: %d messages: %w", len(msgs), ErrOneByOne)
	}
	if len(msgs) > MaxBatch {
		return 0, fmt.Errorf("publish together: %d messages, at most %d: %w", len(msgs), MaxBatch, ErrTooLarge)
	}
	if err := c.Usable(); err != nil {
		return 0, fmt.Errorf("publish together, from %s: %w", msgs[0].Subject, err)
	}
	for _, m := range msgs {
		if m.Header == nil {
			m.Header = nats.Header{} // The library writes into it.
		}
	}
	flow := jetstreamext.BatchFlowControl{AckFirst: true, AckEvery: 32, AckTimeout: c.JS.Options().DefaultTimeout}
	ctx, release := c.life.within(ctx)
	defer release()
	ack, err := jetstreamext.PublishMsgBatch(ctx, c.JS, msgs, flow)
	if err == nil {
		return ack.Sequence, nil
	}
	what := "publish together, from " + msgs[0].Subject
	var api *jetstream.APIError
	if errors.As(err, &api) && (api.ErrorCode == batchDuplicate || api.ErrorCode == batchNotAllowed) {
		return 0, fmt.Errorf("%s: %w (%w)", what, ErrOneByOne, err)
	}
	return 0, publishError(what, cause(ctx, err))
}

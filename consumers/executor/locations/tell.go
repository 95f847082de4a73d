package locations

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// importID begins the message ids of imported locations.
const importID = "imported/"

// IsImport reports, without a look at its body, whether a message of OUTCOMES is
// an imported location.
func IsImport(m bus.Msg) bool {
	id := m.Header[jetstream.MsgIDHeader]
	return len(id) > 0 && strings.HasPrefix(id[0], importID)
}

// ackWithin bounds the wait for what was sent without waiting.
const ackWithin = 30 * time.Second

// Teller tells deciders of placement where owners' data is by the operator's
// word, on OUTCOMES, so that it enters their recorded state in its turn.
type Teller struct {
	client *bus.Client
	by     string
	now    time.Time
}

// NewTeller returns a teller that signs with a name and a time.
func NewTeller(c *bus.Client, by string, now time.Time) *Teller {
	return &Teller{client: c, by: by, now: now.UTC()}
}

// Tell publishes one outcome an entry, in their order, and returns when all are
// stored. An entry's revision is part of the message id: telling of it again is
// telling of it once, for as long as the stream remembers ids, and changes
// nothing later either. So are the bytes that are stored, if they are said. After an error it is unknown which were stored.
func (x *Teller) Tell(ctx context.Context, entries []Entry) error {
	for len(entries) > 0 {
		n := min(len(entries), bus.MaxBatch)
		if err := x.tell(ctx, entries[:n]); err != nil {
			return fmt.Errorf("tell of imported locations: %w", err)
		}
		entries = entries[n:]
	}
	return nil
}

func (x *Teller) tell(ctx context.Context, entries []Entry) error {
	msgs, err := x.messages(entries)
	if err != nil {
		return err
	}
	if _, err = x.client.PublishTogether(ctx, msgs); !errors.Is(err, bus.ErrOneByOne) {
		return err
	}
	// One entry, a repeat, or a stream of before.
	if msgs, err = x.messages(entries); err != nil {
		return err
	}
	futures := make([]jetstream.PubAckFuture, len(msgs))
	for i, m := range msgs {
		if futures[i], err = x.client.JS.PublishMsgAsync(m, jetstream.WithStallWait(ackWithin)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, ackWithin)
	defer cancel()
	for _, f := range futures {
		select {
		case <-f.Ok():
		case err := <-f.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (x *Teller) messages(entries []Entry) ([]*nats.Msg, error) {
	msgs := make([]*nats.Msg, len(entries))
	for i, e := range entries {
		id := importID + subject.Encode(e.Owner) + "/" + strconv.FormatUint(e.Revision, 10)
		if e.Bytes > 0 {
			id += "/" + strconv.FormatInt(e.Bytes, 10)
		}
		body, err := control.Encode(control.Outcome{
			Version: 1, Kind: control.Placement, Scope: e.Site, Owner: e.Owner, Move: e.Version,
			Status: control.Imported, Pinned: e.Pinned, Bytes: e.Bytes, By: x.by, At: x.now,
		})
		if err != nil {
			return nil, err
		}
		msgs[i] = x.client.Message(bus.Msg{
			Subject: subject.Outcomes(string(control.Placement), e.Site), Data: body,
			Header: map[string][]string{
				control.HeaderSchema:  {control.OutcomeSchema},
				jetstream.MsgIDHeader: {id},
			},
		})
	}
	return msgs, nil
}

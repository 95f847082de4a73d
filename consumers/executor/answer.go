package executor

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

const (
	retryFirst = 20 * time.Millisecond
	retryMost  = time.Second
	// askTimeout bounds one request to the bus.
	askTimeout = 5 * time.Second
)

// retry calls f until it succeeds or ctx ends, with growing pauses.
func (x *Executor) retry(ctx context.Context, what string, f func(context.Context) error) error {
	wait := retryFirst
	for {
		ask, cancel := context.WithTimeout(ctx, askTimeout)
		err := f(ask)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w (%w)", what, ctx.Err(), err)
		}
		x.o.Metrics.Count(Retried, what, 1)
		x.o.Logger.Debug().Err(err).Str("what", what).Msg("the bus is in trouble, trying again")
		if x.o.Clock.Sleep(ctx, wait) != nil {
			return fmt.Errorf("%s: %w (%w)", what, ctx.Err(), err)
		}
		wait = min(2*wait, retryMost)
	}
}

// answerTo publishes an outcome of a command, unless it would take back the answer that
// its table has had.
func (x *Executor) answerTo(ctx context.Context, c *command, o control.Outcome) error {
	if before, err := x.answeredBefore(ctx, c, &o); before || err != nil {
		return err
	}
	err := x.answer(ctx, o, c.Epoch)
	if err == nil && c.Placement == nil {
		x.answered.add(c)
	}
	return err
}

// answer publishes an outcome. epoch is its command's.
func (x *Executor) answer(ctx context.Context, o control.Outcome, epoch uint64) error {
	if o.Status == control.AlreadyApplied && o.Owner != "" {
		x.o.Metrics.Count(AlreadyApplied, o.Reason, 1)
		return nil
	}
	o.Version, o.Kind, o.By = 1, x.o.Target.Kind(), x.o.Name
	o.At = x.o.Clock.Now().UTC().Truncate(time.Microsecond)
	body, err := control.Encode(&o)
	if err != nil {
		return err
	}
	m := x.o.Client.Message(bus.Msg{
		Subject: subject.Outcomes(string(o.Kind), o.Scope),
		Header:  map[string][]string{control.HeaderSchema: {control.OutcomeSchema}},
		Data:    body,
	})
	id := messageID(&o, epoch)
	if x.o.Own {
		id += "/" + subject.Encode(x.role)
	}
	var ack *jetstream.PubAck
	err = x.retry(ctx, "outcome", func(ctx context.Context) (err error) {
		ack, err = x.o.Client.JS.PublishMsg(ctx, m, jetstream.WithMsgID(id))
		return err
	})
	switch {
	case err != nil:
		return err
	case ack.Duplicate:
		x.o.Metrics.Count(AlreadyApplied, "bus", 1)
	default:
		x.o.Metrics.Count(Outcomes, string(o.Status), 1)
	}
	return nil
}

// messageID is what makes an outcome the same one: kind, owner and version of a
// move; kind, scope, epoch and status of a table. What was only advised may be
// asked for again under the same version, and in earnest: its id is its
// command's.
func messageID(o *control.Outcome, epoch uint64) string {
	if o.Owner == "" {
		return fmt.Sprintf("%s/%s/%d/%s", o.Kind, subject.Encode(o.Scope), o.Epoch, o.Status)
	}
	id := moveID(o.Kind, o.Owner, o.Move)
	if o.Status == control.Advised {
		id += "/advised/" + subject.Encode(o.Scope) + "/" + strconv.FormatUint(epoch, 10)
	}
	return id
}

func moveID(kind control.Kind, owner string, version uint64) string {
	return string(kind) + "/" + subject.Encode(owner) + "/" + strconv.FormatUint(version, 10)
}

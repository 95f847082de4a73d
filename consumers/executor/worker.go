package executor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/reject"
	"penstock/schemas/subject"
)

const (
	// pullRetry is the pause after a pull that failed.
	pullRetry = 100 * time.Millisecond
	// returnFirst and returnMost bound the delay of a command that is given back.
	returnFirst = 250 * time.Millisecond
	returnMost  = 30 * time.Second
	// longAgo is from what age on a command may have been answered so long ago
	// that the bus no longer drops a second answer (after 1 h): its consumer may
	// have been made again.
	longAgo = 30 * time.Minute
)

// command is a delivered command with what the server says of it.
type command struct {
	*control.Command
	msg  message
	meta *jetstream.MsgMetadata
}

// worker takes one command after the other until ctx ends. work goes on for the
// grace after that.
func (x *Executor) worker(ctx, work context.Context) error {
	for ctx.Err() == nil {
		msg, err := x.src.next()
		if err != nil {
			x.o.Metrics.Count(Retried, "pull", 1)
			x.o.Logger.Debug().Err(err).Msg("no command could be pulled")
			_ = x.o.Clock.Sleep(ctx, pullRetry)
			continue
		}
		if msg == nil {
			continue
		}
		x.deliveries.Add(1)
		x.busy.Add(1)
		err = x.handle(ctx, work, msg)
		x.busy.Add(-1)
		if err != nil {
			return err
		}
	}
	return nil
}

// handle sees one delivered command through: carried out, answered and
// acknowledged, or given back. Only a cut grace is an error.
func (x *Executor) handle(run, work context.Context, msg message) error {
	stop := x.keepAlive(work, msg)
	err := x.carryOut(work, msg)
	stop()
	switch {
	case err == nil:
		return nil
	case work.Err() != nil:
		return context.Cause(work)
	case run.Err() != nil:
		// Given back now it would come to this process again, or to one that
		// stops as well. AckWait brings it to whoever is there then.
		x.o.Logger.Warn().Err(err).Msg("a command is left for another")
		return nil //nolint:nilerr // It was logged, and comes again.
	}
	return x.giveBack(msg, err)
}

func (x *Executor) giveBack(msg message, err error) error {
	delay := returnFirst
	if meta, e := msg.Metadata(); e == nil {
		delay = min(returnMost, returnFirst<<min(meta.NumDelivered-1, 7))
	}
	x.o.Metrics.Count(Returned, "error", 1)
	x.o.Logger.Warn().Err(err).Dur("delay", delay).Msg("a command is given back")
	if e := msg.NakWithDelay(delay); e != nil {
		x.o.Logger.Debug().Err(e).Msg("it will come again by itself")
	}
	return nil
}

// keepAlive says every quarter of AckWait that the command is in work.
func (x *Executor) keepAlive(ctx context.Context, msg message) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	t := x.o.Clock.NewTicker(x.o.AckWait / 4)
	go func() {
		defer close(ended)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C():
				if err := msg.InProgress(); err != nil {
					x.o.Metrics.Count(Retried, "in-progress", 1)
				}
			}
		}
	}()
	return func() { cancel(); <-ended }
}

func (x *Executor) carryOut(ctx context.Context, msg message) error {
	meta, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("command without metadata: %w", err)
	}
	if meta.NumDelivered > 1 {
		x.o.Metrics.Count(Redelivered, "", 1)
	}
	decoded, err := x.decode(msg.Data())
	if err != nil {
		return x.park(ctx, msg, meta, err)
	}
	c := &command{Command: decoded, msg: msg, meta: meta}
	if err := x.apply(ctx, c); err != nil {
		return fmt.Errorf("command %s/%s epoch %d: %w", c.Kind, c.Scope, c.Epoch, err)
	}
	return x.acknowledge(ctx, msg)
}

// decode reads a command and checks that this executor can do anything with it.
func (x *Executor) decode(body []byte) (*control.Command, error) {
	c, err := control.DecodeCommand(body)
	if err != nil {
		return nil, err
	}
	if c.Kind != x.o.Target.Kind() {
		return nil, fmt.Errorf("command: field kind: got %q, expected %q: %w", c.Kind, x.o.Target.Kind(), control.ErrUndecodable)
	}
	if c.Mode != control.Act && c.Mode != control.Advise {
		return nil, fmt.Errorf("command: field mode: got %.40q, expected act or advise: %w", c.Mode, control.ErrUndecodable)
	}
	return c, nil
}

func (x *Executor) apply(ctx context.Context, c *command) error {
	answer := func(ctx context.Context, o control.Outcome) error { return x.answerTo(ctx, c, o) }
	if c.Mode == control.Advise {
		return x.o.Target.Decline(ctx, c.Command, control.Advised, answer)
	}
	age := x.o.Clock.Now().Sub(c.meta.Timestamp)
	if x.cameAgain(c) {
		if err := x.leaveKnown(ctx, c); err != nil {
			return err
		}
	}
	// DecodeCommand has checked the ttl.
	if ttl, err := time.ParseDuration(c.TTL); err == nil && age > ttl {
		return x.o.Target.Decline(ctx, c.Command, control.Expired, answer)
	}
	return x.o.Target.Apply(WithSent(ctx, c.meta.Timestamp), c.Command, answer)
}

// acknowledge tells the server and waits for its word, through troubles of the
// bus: all is answered, and a second delivery would only be counted.
func (x *Executor) acknowledge(ctx context.Context, msg message) error {
	return x.retry(ctx, "ack", func(ctx context.Context) error {
		err := msg.DoubleAck(ctx)
		if errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			return nil
		}
		return err
	})
}

// park sends a command that can't be used to REJECTS, once, and ends it.
func (x *Executor) park(ctx context.Context, msg message, meta *jetstream.MsgMetadata, cause error) error {
	seq := strconv.FormatUint(meta.Sequence.Stream, 10)
	const reason = "undecodable"
	field, expected := reject.Explain(cause, "a command that can be decoded")
	m := bus.Msg{
		Subject: subject.Rejects(reason, string(x.o.Target.Kind())+"-"+x.role),
		Header: map[string][]string{
			reject.HeaderReason: {reason}, reject.HeaderField: {field}, reject.HeaderExpected: {expected},
			reject.HeaderError:   {reject.Text(cause.Error())},
			reject.HeaderSubject: {reject.Text(x.o.Client.Bare(msg.Subject()))}, reject.HeaderCommandsSeq: {seq},
		},
		Data: msg.Data(),
	}
	id := "COMMANDS/" + seq
	err := x.retry(ctx, "reject", func(ctx context.Context) error {
		_, err := x.o.Client.Publish(ctx, m, bus.MsgID(id))
		return err
	})
	if err != nil {
		return err
	}
	x.o.Metrics.Count(Rejected, reason, 1)
	x.o.Logger.Warn().Err(cause).Str("seq", seq).Msg("a command is undecodable and parked on REJECTS")
	return x.retry(ctx, "term", func(context.Context) error {
		err := msg.TermWithReason(reason)
		if errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			return nil
		}
		return err
	})
}

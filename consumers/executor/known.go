package executor

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// leaveKnown takes out of a redelivered command the moves whose outcome is on the
// bus already. Another executor may have answered one and died before it could
// acknowledge; a move that it answered failed must not be done after all, and none
// is to have two outcomes.
func (x *Executor) leaveKnown(ctx context.Context, c *command) error {
	if c.Placement == nil {
		return nil // tables have Epochs, and answeredBefore
	}
	known, err := x.movesSince(ctx, c)
	if err != nil {
		return err
	}
	left := make([]control.Move, 0, len(c.Placement.Moves))
	for _, m := range c.Placement.Moves {
		if !known[moveID(c.Kind, m.Owner, m.Version)] {
			left = append(left, m)
		}
	}
	if n := len(c.Placement.Moves) - len(left); n > 0 {
		x.o.Metrics.Count(AlreadyApplied, "outcomes", int64(n))
		c.Placement = &control.Moves{Moves: left}
	}
	return nil
}

// answeredBefore says of an outcome that takes an answer back whether its table had one:
// refused as older than the one in force, or expired, may only be what nobody has
// answered yet. The server may deliver a table again after a later one, behind an
// acknowledgement that it has lost, and then not even know that it did before.
func (x *Executor) answeredBefore(ctx context.Context, c *command, o *control.Outcome) (bool, error) {
	if c.Placement != nil || o.Status != control.Refused && o.Status != control.Expired {
		return false, nil
	}
	if x.answered.has(c) {
		x.o.Metrics.Count(AlreadyApplied, "memory", 1)
		return true, nil
	}
	if !x.cameAgain(c) {
		return false, nil
	}
	found := false
	err := x.outcomesSince(ctx, c, func(p *control.Outcome) {
		found = found || p.Epoch == c.Epoch && p.Target == o.Target && (!x.o.Own || p.By == x.o.Name)
	})
	if found && err == nil {
		x.o.Metrics.Count(AlreadyApplied, "outcomes", 1)
	}
	return found, err
}

// cameAgain says whether somebody may have had the command before.
func (x *Executor) cameAgain(c *command) bool {
	return c.meta.NumDelivered > 1 || x.o.Clock.Now().Sub(c.meta.Timestamp) > longAgo
}

// movesSince returns the moves that were answered on a command's scope since it was
// stored.
func (x *Executor) movesSince(ctx context.Context, c *command) (map[string]bool, error) {
	known := map[string]bool{}
	err := x.outcomesSince(ctx, c, func(o *control.Outcome) {
		// The operator's word is nobody's answer to a move.
		if o.Status != control.Advised && o.Status != control.Imported {
			known[moveID(o.Kind, o.Owner, o.Move)] = true
		}
	})
	return known, err
}

// outcomesSince calls fn for the outcomes on a command's scope since it was stored; for
// some of them twice if the bus is in trouble. What can't be read is left out.
func (x *Executor) outcomesSince(ctx context.Context, c *command, fn func(o *control.Outcome)) error {
	since := c.meta.Timestamp.Add(-time.Second)
	return x.retry(ctx, "outcomes", func(ctx context.Context) error {
		s, err := x.o.Client.JS.OrderedConsumer(ctx, x.o.Client.Stream(subject.OutcomesStream), jetstream.OrderedConsumerConfig{
			FilterSubjects: []string{x.o.Client.Subject(subject.Outcomes(string(c.Kind), c.Scope))},
			DeliverPolicy:  jetstream.DeliverByStartTimePolicy, OptStartTime: &since,
		})
		if err != nil {
			return fmt.Errorf("read outcomes: %w", err)
		}
		left := s.CachedInfo().NumPending
		for left > 0 {
			batch, err := s.Fetch(int(min(left, 1000)), jetstream.FetchMaxWait(askTimeout))
			if err != nil {
				return fmt.Errorf("read outcomes: %w", err)
			}
			n := uint64(0)
			for m := range batch.Messages() {
				n++
				if o, err := control.DecodeOutcome(m.Data()); err == nil {
					fn(o)
				}
			}
			if n == 0 {
				return fmt.Errorf("read outcomes: %d pending and none came (%w)", left, context.DeadlineExceeded)
			}
			left -= min(n, left)
		}
		return nil
	})
}

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
		return nil // tables have Epochs
	}
	known, err := x.known(ctx, c)
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

// outcomesSince returns the moves that were answered on a command's scope since
// it was stored.
func (x *Executor) outcomesSince(ctx context.Context, c *command) (map[string]bool, error) {
	since := c.meta.Timestamp.Add(-time.Second)
	known := map[string]bool{}
	err := x.retry(ctx, "outcomes", func(ctx context.Context) error {
		clear(known)
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
				// What can't be read is nobody's answer to a move, and neither is the
				// operator's word.
				if o, err := control.DecodeOutcome(m.Data()); err == nil && o.Status != control.Advised && o.Status != control.Imported {
					known[moveID(o.Kind, o.Owner, o.Move)] = true
				}
			}
			if n == 0 {
				return fmt.Errorf("read outcomes: %d pending and none came (%w)", left, context.DeadlineExceeded)
			}
			left -= min(n, left)
		}
		return nil
	})
	return known, err
}

package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"penstock/consumers/executor"
	"penstock/infra/shares"
)

// Held is a table that a keeper holds in force.
type Held struct {
	Table shares.Table
	// Until is when its ttl is over.
	Until time.Time
}

// Held returns the tables that commands brought into force, in the order of their
// components. Who hands them to Restore after a restart has them in force before
// the bus is there.
func (k *Keeper) Held() []Held {
	var all []Held
	for _, from := range k.known() {
		if s, has := k.State(from); has && !s.Until.IsZero() && s.Lost == nil {
			all = append(all, Held{Table: s.Table, Until: s.Until})
		}
	}
	return all
}

// Restore brings tables into force that were before, if their time isn't over; what
// the bus holds takes their place as soon as Resume has read it. Those that the target
// does not take now are counted and left out; if it can't be reached, Run goes on
// trying. It is called once, before anything else. The error is ctx's.
func (k *Keeper) Restore(ctx context.Context, held []Held) error {
	now := k.o.Clock.Now()
	for _, h := range held {
		if !h.Until.After(now) {
			k.o.Metrics.Count(executor.Rejected, "held-ttl-over", 1)
			continue
		}
		err := k.bring(ctx, h.Table, h.Until, false)
		switch {
		case errors.Is(err, executor.ErrAgain):
			k.owe(h.Table.From, h.Table, h.Until, err)
		case ctx.Err() != nil:
			return fmt.Errorf("table of %.80q: %w", h.Table.From, ctx.Err())
		case err != nil:
			k.o.Metrics.Count(executor.Rejected, "held", 1)
			k.o.Logger.Warn().Err(err).Str("component", h.Table.From).Msg("a table of before the restart is not taken")
		}
	}
	return nil
}

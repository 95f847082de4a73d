package executor

import (
	"context"
)

// hardAfter is after how many vain attempts to subscribe anew the consumer is
// made again.
const hardAfter = 3

// watch looks every Stall whether commands are pending that are not delivered
// although a worker is free, and subscribes anew (PROBLEMS P22).
func (x *Executor) watch(ctx context.Context) {
	t := x.o.Clock.NewTicker(x.o.Stall)
	defer t.Stop()
	last, times := x.deliveries.Load(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C():
		}
		waiting := x.waiting(ctx) // which also notes what was acknowledged
		now := x.deliveries.Load()
		if now != last || int(x.busy.Load()) >= x.o.Workers || !waiting {
			last, times = now, 0
			x.stalled.Store(false)
			continue
		}
		times++
		x.stalled.Store(true)
		hard := times >= hardAfter
		what := "rebound"
		if hard {
			what, times = "recreated", 0
		}
		x.o.Metrics.Count(Stalled, what, 1)
		x.o.Logger.Warn().Str("what", what).Msg("commands are pending and none is delivered")
		if err := x.src.rebind(ctx, hard); err != nil && ctx.Err() == nil {
			x.o.Logger.Warn().Err(err).Msg("could not subscribe anew")
		}
	}
}

// waiting reports whether commands wait. A server that can't be asked counts
// as one that delivers nothing.
func (x *Executor) waiting(ctx context.Context) bool {
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	n, err := x.src.pending(ask)
	if err != nil {
		x.o.Logger.Debug().Err(err).Msg("the consumer can't be looked at")
		return ctx.Err() == nil
	}
	return n > 0
}

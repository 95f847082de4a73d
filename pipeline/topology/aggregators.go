package topology

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/aggregator"
	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/schemas/window"
)

// aggregatorOptions are what the aggregators of both groups share.
type aggregatorOptions struct {
	Flush       time.Duration // of the fast group; 0 is the default
	IdleTimeout time.Duration // 0 is never
	Purpose     bus.Purpose
	Metrics     aggregator.Metrics
	Owner       string
	// Alone says that no other process aggregates on this bus.
	Alone bool
	// Each, if set, is told of each one before it starts.
	Each   func(group string, a *aggregator.Aggregator)
	Logger zerolog.Logger
	Hook   func(point string)
}

// startAggregators starts one aggregator a group of rollups and, in a replay,
// the trimmer of EVENTS behind them.
func startAggregators(ctx context.Context, parts *Parts, b *bus.Bus, o aggregatorOptions) error {
	var covered func(string, int, uint64)
	if o.Purpose == bus.Replay {
		client, err := b.Client(ctx, "trimmer")
		if err != nil {
			return err
		}
		t := aggregator.NewTrimmer(client, window.Groups, clock.System(), o.Logger)
		covered = t.Covered
		defer parts.Start("trimmer", t.Run)
	}
	for _, g := range window.Groups {
		client, err := b.Client(ctx, "aggregator-"+g)
		if err != nil {
			return err
		}
		ao := aggregator.Options{
			Client: client, Group: g, Covered: covered, IdleTimeout: o.IdleTimeout, Metrics: o.Metrics, Owner: o.Owner,
			Purpose: o.Purpose, Logger: o.Logger.With().Str("part", "aggregator").Logger(),
		}
		if g == window.Fast {
			ao.FlushEvery = o.Flush
		}
		if o.Alone {
			ao.Advice = aggregator.Always{}
		}
		if o.Hook != nil {
			ao.Publish = func(ctx context.Context, msgs []bus.Msg, expect uint64) (uint64, error) {
				o.Hook("flush")
				seq, err := client.PublishFenced(ctx, msgs, expect)
				o.Hook("flushed")
				return seq, err
			}
		}
		a, err := aggregator.New(ao)
		if err != nil {
			return err
		}
		if o.Each != nil {
			o.Each(g, a)
		}
		parts.Start("aggregator of "+g, a.Run)
	}
	return nil
}

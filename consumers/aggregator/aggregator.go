package aggregator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"penstock/infra/clock"
	"penstock/schemas/window"
)

// Aggregator adds up one group of rollups on the partitions that it claims.
type Aggregator struct {
	opts     Options
	standing []standing // by place in Options.Partitions
}

// New checks the options; it does not touch the bus.
func New(o Options) (*Aggregator, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return &Aggregator{opts: o, standing: make([]standing, len(o.Partitions))}, nil
}

// Run claims partitions and adds up their events until the context ends (nil) or
// a partition cannot go on. It drops what is not flushed: whoever is next reads
// it again.
func (a *Aggregator) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	advice := a.opts.Advice
	if advice == nil {
		m := NewMembers(a.opts)
		advice = m
		g.Go(func() error { return m.Run(ctx) })
	}
	for i, p := range a.opts.Partitions {
		g.Go(func() error {
			w := &worker{opts: &a.opts, partition: p, advice: advice, standing: &a.standing[i]}
			w.log = a.opts.Logger.With().Str("group", a.opts.Group).Int("partition", p).Logger()
			if err := w.run(ctx); err != nil {
				return fmt.Errorf("aggregator of %s on partition %d: %w", a.opts.Group, p, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// run goes through sessions: wait for the advice, claim, add up.
func (w *worker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if !w.advice.Mine(w.opts.Group, w.partition) {
			w.standBy()
			pause(ctx, w.opts.Clock, adviceEvery)
			continue
		}
		err := w.session(ctx)
		switch {
		case errors.Is(err, errReleased):
			w.log.Info().Msg("released the partition")
		case errors.Is(err, errFenced):
			w.count(Fenced, 1)
			w.does("waits after a fence")
			w.log.Warn().Dur("wait", w.opts.FenceWait).Msg("fenced: another claimed the partition")
			pause(ctx, w.opts.Clock, w.opts.FenceWait)
		case ctx.Err() == nil:
			return err
		}
	}
	return nil
}

// pause waits and reports whether the context goes on.
func pause(ctx context.Context, c clock.Clock, d time.Duration) bool {
	return c.Sleep(ctx, d) == nil
}

// adviceEvery is how often the advice is looked at while waiting.
const adviceEvery = 100 * time.Millisecond

func (w *worker) count(what Happening, n int64) {
	if n > 0 {
		w.opts.Metrics.Count(w.opts.Group, w.partition, what, n)
	}
}

// watermarkField is a watermark for a log line.
func watermarkField(w int64) string {
	if w == window.NullInt {
		return "none"
	}
	return time.UnixMicro(w).UTC().Format(time.RFC3339Nano)
}

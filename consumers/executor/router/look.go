package router

import (
	"context"
	"errors"

	"penstock/consumers/executor"
)

// Run looks at the target until ctx ends: it ends tables whose ttl is over, and
// puts those again that the target has lost. It returns nil.
func (k *Keeper) Run(ctx context.Context) error {
	t := k.o.Clock.NewTicker(k.o.Every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C():
			for _, from := range k.known() {
				if errors.Is(k.look(ctx, from), ErrUnreachable) {
					break // it is one target: the others would wait as long for nothing
				}
			}
		}
	}
}

// look does for one calling component what its time has come for. Its error says
// that it is to be done again.
func (k *Keeper) look(ctx context.Context, from string) error {
	s := k.scope(from)
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	switch {
	case !s.until.IsZero() && !s.until.After(k.o.Clock.Now()):
		epoch := s.good.Epoch
		if err = k.giveWay(ctx, from, s); err == nil {
			k.o.Metrics.Count(executor.Outcomes, "ttl-over", 1)
			k.o.Logger.Warn().Str("component", from).Uint64("epoch", epoch).Msg("the ttl of a table is over: the default is in force")
		}
	case s.has && s.lost == nil:
		var changes int
		changes, err = k.o.Target.Put(ctx, s.good)
		if err == nil && changes > 0 {
			k.o.Metrics.Count(executor.Retried, "lost-table", 1)
			k.o.Logger.Info().Str("component", from).Uint64("epoch", s.good.Epoch).Int("changes", changes).
				Msg("the target was not as the table says, and is again")
		}
		if err != nil && !errors.Is(err, executor.ErrAgain) && ctx.Err() == nil {
			s.lost = err
			k.o.Metrics.Count(executor.Rejected, "lost-table", 1)
			k.o.Logger.Error().Err(err).Str("component", from).Uint64("epoch", s.good.Epoch).
				Msg("the target has lost a table and does not take it again")
			return nil
		}
	}
	if err != nil && ctx.Err() == nil {
		k.o.Metrics.Count(executor.Retried, "target", 1)
		k.o.Logger.Debug().Err(err).Str("component", from).Msg("the target is tried again")
	}
	return err
}

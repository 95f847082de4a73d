package topology

import (
	"context"
	"time"

	"penstock/consumers/executor/coder"
	"penstock/consumers/executor/coder/chunks"
	"penstock/infra/clock"
	"penstock/pipeline/config"
)

const (
	// tidyEvery is how often stores are rid of what somebody who died in a put has left.
	tidyEvery = 24 * time.Hour
	// tidyBefore is how old that must be: no put takes so long.
	tidyBefore = 24 * time.Hour
)

// scrub looks at everything that a coder holds.
type scrub func(ctx context.Context, o coder.ScrubOptions) (coder.Report, error)

// chores starts what a coder does by the clock: scrubs, if the configuration asks for
// them, and tidying of stores that can be left in disorder.
func (c *Coder) chores(v *alone, x *config.Coder, stores blobStores, all scrub) {
	if every := x.Scrub.Std(); every > 0 {
		log := c.part("scrub")
		v.parts.Start("scrub", func(ctx context.Context) error {
			for clock.System().Sleep(ctx, every) == nil {
				switch r, err := all(ctx, coder.ScrubOptions{Repair: true, Orphans: true}); {
				case ctx.Err() != nil:
				case err != nil:
					v.metrics.Retries.Inc("scrub of "+x.Name, "again")
					log.Warn().Err(err).Dur("wait", every).Msg("a scrub ended before all was looked at; the next one begins anew")
				default:
					log.Info().Interface("found", r).Msg("scrubbed")
				}
			}
			return nil
		})
	}
	for _, one := range stores {
		t, ok := one.(chunks.Tidier)
		if !ok {
			continue
		}
		log := c.part("store " + one.Name())
		v.parts.Start("tidying "+one.Name(), func(ctx context.Context) error {
			for {
				n, err := t.Tidy(ctx, clock.System().Now().Add(-tidyBefore))
				if n > 0 {
					v.metrics.StoreEvents.Add(int64(n), x.Site, one.Name()+" tidied")
				}
				if err != nil && ctx.Err() == nil {
					v.metrics.Retries.Inc("tidying of "+one.Name(), "again")
					log.Warn().Err(err).Msg("what a process that died has left in the store is still there; tried again in a day")
				}
				if clock.System().Sleep(ctx, tidyEvery) != nil {
					return nil //nolint:nilerr // The context has ended.
				}
			}
		})
	}
}

package topology

import (
	"context"

	"github.com/rs/zerolog"

	"penstock/consumers/redirector/directory"
	"penstock/infra/bus"
	"penstock/infra/gate"
	"penstock/pipeline/config"
)

// keeper is where movers hold writes, nil if they don't at this site.
func (e *Entry) keeper(v *alone, d *directory.Directory) (*gate.Keeper, error) {
	if !gated(e.Config, e.Site) {
		return nil, nil
	}
	return gate.NewKeeper(gate.KeeperOptions{
		// Moves rely on it: no write before movers know of this entry point.
		Away:   -1,
		Client: v.client, Name: e.Name, Site: e.Site, Learn: d.Learn, Sync: d.Sync, Logger: e.part("gate"),
		Count: func(what string, n int64) { v.metrics.StoreEvents.Add(n, e.Site, what) },
	})
}

// draining runs a keeper. When its part is stopped no request runs any more: it tells
// movers that they need not ask this entry point until it is back.
func draining(k *gate.Keeper, client *bus.Client, log zerolog.Logger) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		running, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		stop := context.AfterFunc(ctx, func() {
			defer cancel()
			within, done := context.WithTimeout(running, patienceAtEnd(client))
			defer done()
			if err := k.Drain(within); err != nil {
				log.Warn().Err(err).Msg("moves from this site ask this entry point until it is back or forgotten")
			}
		})
		defer stop()
		return k.Run(running)
	}
}

// gated reports whether moves hold writes at the entry points of a site. By itself
// only where its store may have no write barrier of its own: whether an S3 service
// honours conditions shows only when it is asked.
func gated(cfg *config.Config, site string) bool {
	switch cfg.Entry.Barrier {
	case "always":
		return true
	case config.Auto:
		st, err := config.ParseStore(cfg.Site(site).Store)
		return err == nil && st.Kind == "s3"
	}
	return false
}

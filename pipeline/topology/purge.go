package topology

import (
	"context"
	"errors"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/locations"
	"penstock/consumers/executor/mover"
	"penstock/infra/bus"
	"penstock/pipeline/config"
)

// PurgeOptions name a stopped serve with an embedded bus.
type PurgeOptions struct {
	Config              *config.Config
	State, Prefix, Name string
	Logger              zerolog.Logger
}

// Purge deletes, for a serve that isn't running, the copies that moved away and
// whose delete_after is not over. It returns how many it deleted.
func Purge(ctx context.Context, o PurgeOptions) (n int, err error) {
	// Nobody is named here: it needs no key of users.
	s := Serve{Config: o.Config, State: o.State, Name: o.Name}
	if err := s.identify(); err != nil {
		return 0, err
	}
	if err := CheckStores(o.Config); err != nil {
		return 0, err
	}
	b, err := bus.Open(ctx, bus.Options{Dir: s.dir("bus"), Prefix: o.Prefix, Name: "penstock-purge", Logger: o.Logger})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	client, err := b.Client(ctx, "purge")
	if err != nil {
		return 0, err
	}
	stores, err := ConfiguredStores(ctx, o.Config, client, o.Logger)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stores.Close()) }()
	table, err := locations.Open(ctx, client)
	if err != nil {
		return 0, err
	}
	m, err := mover.New(mover.Options{Dir: s.dir("mover"), Name: s.Name, Stores: stores, Locations: table, Logger: o.Logger})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return m.Purge(ctx)
}

package topology

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/consumers/decider"
	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// importedLocations tells a decider where data was before its first decision.
// It reads the table only while nothing was decided. From then on the first
// answer stands in the configuration that was in force: later locations follow
// from decisions and outcomes, and a table read anew would change under a
// restart.
func importedLocations(ctx context.Context, client *bus.Client) (map[string]control.Location, error) {
	config, err := decider.ConfigInForce(ctx, client, control.Placement)
	if err == nil {
		var was struct {
			Locations map[string]control.Location `json:"locations"`
		}
		if err := json.Unmarshal(config, &was); err != nil {
			return nil, fmt.Errorf("locations: %w", err)
		}
		return was.Locations, nil
	}
	if !errors.Is(err, bus.ErrNoMessage) {
		return nil, err
	}
	table, err := locations.Open(ctx, client)
	if err != nil {
		return nil, err
	}
	out := map[string]control.Location{}
	err = table.List(ctx, func(owner string, l control.Location) error {
		out[owner] = l
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("locations: %w", err)
	}
	return out, nil
}

// watchPurge carries out `penstock purge` in a running process.
func (v *serving) watchPurge(ctx context.Context, m *moverPart) error {
	client, err := v.bus.Client(ctx, "purge")
	if err != nil {
		return err
	}
	kv, err := client.KV(ctx, subject.OperatorKV)
	if err != nil {
		return err
	}
	v.parts.Start("purge watch", func(ctx context.Context) error {
		w, err := kv.Watch(ctx, control.PurgeKey(control.Placement), jetstream.UpdatesOnly())
		if err != nil {
			return fmt.Errorf("watch %s: %w", control.PurgeKey(control.Placement), err)
		}
		defer func() { _ = w.Stop() }() // The connection ends next.
		for {
			select {
			case e, ok := <-w.Updates():
				if !ok || ctx.Err() != nil {
					return nil
				}
				if e == nil {
					continue
				}
				n, err := m.Purge(ctx)
				v.Logger.Info().Int("deleted", n).AnErr("error", err).Msg("purged copies that had moved away")
			case <-ctx.Done():
				return nil
			}
		}
	})
	return nil
}

package topology

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"penstock/consumers/decider"
	"penstock/consumers/executor/locations"
	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// importedLocations tells a decider where data was before its first decision,
// as far as nobody tells it on OUTCOMES: a table that was filled by a program of
// before, or so long ago that the bus has forgotten. It reads the table only while
// nothing was decided. From then on the first answer stands in the configuration
// that was in force: later locations follow from decisions and outcomes, and a
// table read anew would change under a restart.
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
	told, err := locations.Told(ctx, client)
	if err != nil {
		return nil, err
	}
	out := map[string]control.Location{}
	err = table.List(ctx, func(owner string, l control.Location) error {
		if _, is := told[owner]; !is {
			out[owner] = l
		}
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
	w := &purgeWatch{kv: kv, key: control.PurgeKey(control.Placement), log: v.Logger, purge: m.Purge}
	// What was asked for before this start was for those who ran then.
	e, err := kv.Get(ctx, w.key)
	switch {
	case err == nil:
		w.seen = e.Revision()
	case !errors.Is(err, jetstream.ErrKeyNotFound):
		return fmt.Errorf("purge: %w", err)
	}
	v.parts.Start("purge watch", w.run)
	return nil
}

// purgeWatch waits for the operator's word and purges once for each.
type purgeWatch struct {
	kv    jetstream.KeyValue
	key   string
	seen  uint64 // revision of the last word that was heeded
	log   zerolog.Logger
	purge func(ctx context.Context) (int, error)
}

// run watches until the context ends. A watch that ends by itself is taken up
// again: a bus that was away must not leave the operator without a hand.
func (w *purgeWatch) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := w.follow(ctx); err != nil && ctx.Err() == nil {
			w.log.Warn().Err(err).Msg("cannot wait for purges, trying again")
		}
		_ = clock.System().Sleep(ctx, time.Second) // The context's end shows above.
	}
	return nil
}

func (w *purgeWatch) follow(ctx context.Context) error {
	in, err := w.kv.Watch(ctx, w.key)
	if err != nil {
		return fmt.Errorf("watch %s: %w", w.key, err)
	}
	defer func() { _ = in.Stop() }() // It only drops the subscription.
	for {
		select {
		case e, ok := <-in.Updates():
			if !ok {
				return nil
			}
			if e == nil || e.Revision() <= w.seen || e.Operation() != jetstream.KeyValuePut {
				continue // the end of what was there, or heeded already
			}
			n, err := w.purge(ctx)
			if err != nil && ctx.Err() == nil {
				// The word stands: it is heeded when the watch is taken up again.
				return fmt.Errorf("%d copies purged, then: %w", n, err)
			}
			w.seen = e.Revision()
			w.log.Info().Int("deleted", n).Msg("purged copies that had moved away")
		case <-ctx.Done():
			return nil
		}
	}
}

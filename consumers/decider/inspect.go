package decider

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// ConfigInForce returns the configuration under which a kind's last window was
// decided, for those who look at a bus without having the file at hand. The
// error wraps bus.ErrNoMessage if nothing was decided yet.
func ConfigInForce(ctx context.Context, client *bus.Client, k control.Kind) ([]byte, error) {
	m, err := client.Last(ctx, subject.CommandsStream, subject.Decisions(string(k)))
	if err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", k, err)
	}
	d, err := control.DecodeDecision(m.Data)
	if err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", k, err)
	}
	objects, err := client.Objects(ctx)
	if err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", k, err)
	}
	body, err := objects.GetBytes(ctx, configName(d.Policy))
	if err != nil {
		return nil, fmt.Errorf("configuration %s of %s: %w", d.Policy, k, err)
	}
	return body, nil
}

// Known reports whether a decider of the kind has ever run on the bus: it has
// written a record, or, as one that serves does before it decides anything, a
// snapshot.
func Known(ctx context.Context, client *bus.Client, k control.Kind) (bool, error) {
	_, err := client.Last(ctx, subject.CommandsStream, subject.Decisions(string(k)))
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, bus.ErrNoMessage) {
		return false, fmt.Errorf("last decision of %s: %w", k, err)
	}
	objects, err := client.Objects(ctx)
	if err != nil {
		return false, fmt.Errorf("snapshots of %s: %w", k, err)
	}
	for place := range places {
		_, err := objects.GetInfo(ctx, placeName(k, place))
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, jetstream.ErrObjectNotFound) {
			return false, fmt.Errorf("snapshots of %s: %w", k, err)
		}
	}
	return false, nil
}

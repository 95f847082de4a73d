package decider

import (
	"context"
	"fmt"

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

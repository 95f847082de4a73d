package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"penstock/consumers/executor/dispatcher/claims"
	"penstock/consumers/executor/serverswitch"
	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/infra/lease"
	"penstock/schemas/control"
)

// aliveWithin is how long after its last answer who follows a table counts as heard of,
// whatever else is: its beats may be on their way.
const aliveWithin = 10 * time.Second

// alive notes who of those that have answered a site's tables is still heard of: entry
// points say once a second what they have at its servers, and server switches that they act
// or stand by. The bus forgets them after 5 s without. now is zero where wall time says
// nothing.
func (t *TableStatus) alive(ctx context.Context, client *bus.Client, now time.Time) error {
	if now.IsZero() {
		return nil
	}
	viewer, err := claims.NewViewer(client, clock.System(), t.Scope)
	if err != nil {
		return fmt.Errorf("who follows %s: %w", t.Scope, err)
	}
	view, err := viewer.Look(ctx)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil // A bus that was just restarted knows of nobody yet.
	}
	if err != nil {
		return fmt.Errorf("who follows %s: %w", t.Scope, err)
	}
	key := serverswitch.LeaseKey(t.Scope)
	held, acts, err := lease.Read(ctx, client, key)
	if err != nil {
		return fmt.Errorf("who follows %s: %w", t.Scope, err)
	}
	if acts {
		t.Acting = held.Holder
	}
	if t.StandingBy, err = lease.StandingBy(ctx, client, key); err != nil {
		return fmt.Errorf("who follows %s: %w", t.Scope, err)
	}
	for i := range t.Routers {
		r := &t.Routers[i]
		heard := slices.ContainsFunc(view.Rows, func(x claims.Row) bool { return x.Name == r.By })
		if r.Target == control.SwitchTarget {
			heard = acts && held.Holder == r.By || slices.Contains(t.StandingBy, r.By)
		}
		r.Gone = !heard && now.Sub(r.At) >= aliveWithin
	}
	return nil
}

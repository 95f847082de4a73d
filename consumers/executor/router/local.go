package router

import (
	"context"
	"errors"
	"fmt"

	"penstock/consumers/executor"
	"penstock/infra/shares"
)

// local is the table in force inside this process, as a Target.
type local struct{ *shares.Router }

// Local returns the target that puts tables into a router of this process. It can
// probe. Its errors are the router's: an older epoch wraps executor.ErrOlder too,
// and what is not ready is ErrNotReady.
func Local(r *shares.Router) Target { return local{r} }

// Put brings a table and its probes into force, whole, between two look-ups.
func (l local) Put(ctx context.Context, t shares.Table) (changes int, err error) {
	changes, err = l.Router.Put(ctx, t)
	if errors.Is(err, shares.ErrOlder) {
		err = fmt.Errorf("%w (%w)", err, executor.ErrOlder)
	}
	return changes, err
}

// Ready is nil unless the site is none, or the replica is down or draining.
func (l local) Ready(ctx context.Context, replica shares.Replica) error {
	err := l.Router.Ready(ctx, replica)
	if errors.Is(err, shares.ErrNotReady) {
		err = fmt.Errorf("%.80q at %.80q: %w", replica.Component, replica.Site, ErrNotReady)
	}
	return err
}

// Observe returns the shares that are set for a component, health apart.
func (l local) Observe(_ context.Context, from string) ([]shares.Row, error) {
	t, _ := l.Table(from)
	return t.Rows, nil
}

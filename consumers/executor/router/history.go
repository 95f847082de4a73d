package router

import (
	"context"
	"time"

	"penstock/consumers/executor"
	"penstock/infra/bus"
	"penstock/schemas/control"
)

// History reads the commands of kind split that a bus holds, for
// KeeperOptions.History.
func History(c *bus.Client) func(ctx context.Context, fn func(c *control.Command, at time.Time) error) error {
	return executor.History(c, control.Split)
}

package router

import (
	"context"
	"time"

	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// History reads the commands of kind split that a bus holds, for
// KeeperOptions.History. Those that can't be decoded are left to the executor,
// which parks them.
func History(c *bus.Client) func(ctx context.Context, fn func(c *control.Command, at time.Time) error) error {
	return func(ctx context.Context, fn func(c *control.Command, at time.Time) error) error {
		subjects := []string{subject.CommandsOf(string(control.Split))}
		return c.Each(ctx, subject.CommandsStream, subjects, 0, func(m bus.Msg) error {
			command, err := control.DecodeCommand(m.Data)
			if err != nil {
				return nil //nolint:nilerr // The executor says so, once.
			}
			return fn(command, m.Time)
		})
	}
}

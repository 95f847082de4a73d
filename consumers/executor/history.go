package executor

import (
	"context"
	"time"

	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// History reads the commands of a kind that a bus holds, in its order, with the time at
// which the server stored each: a target of tables that starts takes the last ones up
// from there. Those that can't be decoded are left to the executor, which parks them.
func History(c *bus.Client, kind control.Kind) func(ctx context.Context, fn func(c *control.Command, at time.Time) error) error {
	return func(ctx context.Context, fn func(c *control.Command, at time.Time) error) error {
		subjects := []string{subject.CommandsOf(string(kind))}
		return c.Each(ctx, subject.CommandsStream, subjects, 0, func(m bus.Msg) error {
			command, err := control.DecodeCommand(m.Data)
			if err != nil {
				return nil //nolint:nilerr // The executor says so, once.
			}
			return fn(command, m.Time)
		})
	}
}

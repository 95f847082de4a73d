package executor

import (
	"context"
	"fmt"
	"time"

	"penstock/infra/clock"
	"penstock/schemas/control"
)

type sentKey struct{}

// WithSent notes when the server stored a command, which its ttl counts from, for
// the target that is to carry it out.
func WithSent(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, sentKey{}, at)
}

// Sent returns what WithSent noted; false if nothing was.
func Sent(ctx context.Context) (at time.Time, ok bool) {
	at, ok = ctx.Value(sentKey{}).(time.Time)
	return at, ok
}

// Over is when the ttl of a command is over that the server stored at sent.
func Over(c *control.Command, sent time.Time) (time.Time, error) {
	ttl, err := time.ParseDuration(c.TTL)
	if err != nil {
		return time.Time{}, fmt.Errorf("ttl of %.80q, epoch %d: %w", c.Scope, c.Epoch, err)
	}
	return sent.Add(ttl), nil
}

// OverBy is Over for the command that a target was given with ctx; one that nobody has
// stored counts from now.
func OverBy(ctx context.Context, c *control.Command, now clock.Clock) (time.Time, error) {
	sent, ok := Sent(ctx)
	if !ok {
		sent = now.Now()
	}
	return Over(c, sent)
}

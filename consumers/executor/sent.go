package executor

import (
	"context"
	"time"
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

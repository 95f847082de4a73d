package chunks

import (
	"context"
	"time"
)

// Late is a store in which a blob may yet come after its Put has ended without an answer:
// the request has left, or is being carried out by a server that doesn't see that nobody
// waits for it any more. A store without it has the blob or hasn't when Put returns.
type Late interface {
	Store
	// Late is how long after the end of its Put a blob may come at most.
	Late() time.Duration
}

// LateOf is how long after the end of its Put a blob may come at most, 0 where none does.
func LateOf(s Store) time.Duration {
	if l, ok := s.(Late); ok {
		return l.Late()
	}
	return 0
}

// DefaultLate is the Late of stores that are asked over a network, if nothing else was
// said. A socket that was closed still sends for 100 s what was written to it (Linux,
// tcp_orphan_retries), and the server takes its time after that.
const DefaultLate = 5 * time.Minute

type doubtKey struct{}

// WithDoubt has f called by Doubt, in whatever goroutine.
func WithDoubt(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, doubtKey{}, f)
}

// Doubt is for a Put that sends a request again whose end it doesn't know, and may return
// nil in the end: the first one may be carried out after the Put. A Put that returns an
// error need not say so.
func Doubt(ctx context.Context) {
	if f, ok := ctx.Value(doubtKey{}).(func()); ok {
		f()
	}
}

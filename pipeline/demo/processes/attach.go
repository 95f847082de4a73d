package processes

import (
	"context"
	"io"
)

// Attach returns a context that ends when the given one does, or when in, the
// standard input that a Group gave to this process, ends: the process at its
// other end is gone then. The reading goroutine stays until then, which is the
// life of the process.
func Attach(ctx context.Context, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in) // However it ends, nobody is there any more.
	}()
	return ctx, cancel
}

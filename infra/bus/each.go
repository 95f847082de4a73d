package bus

import (
	"context"
	"errors"
)

// Each calls fn for what a stream holds on some subjects now, in its order, from a
// sequence on; 0 stands for the first. It returns fn's first error, or what ended
// the reading early.
func (c *Client) Each(ctx context.Context, stream string, subjects []string, from uint64, fn func(Msg) error) error {
	last := uint64(0)
	for _, s := range subjects {
		m, err := c.Last(ctx, stream, s)
		if err != nil && !errors.Is(err, ErrNoMessage) {
			return err
		}
		last = max(last, m.Seq)
	}
	if last == 0 || last < from {
		return nil
	}
	r, err := c.Read(ctx, stream, subjects, from)
	var trimmed *ErrTrimmed
	if errors.As(err, &trimmed) { // What is gone from the stream is over.
		r, err = c.Read(ctx, stream, subjects, 0)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	for m := range r.C() {
		if err := fn(m); err != nil {
			return err
		}
		if m.Seq >= last {
			return nil
		}
	}
	return errors.Join(r.Err(), ctx.Err())
}

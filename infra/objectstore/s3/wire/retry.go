package wire

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// pacer makes all requests of a client wait after the service said that it is
// overloaded.
type pacer struct {
	mu    sync.Mutex
	until time.Time
}

// Unpause forgets that the service asked to be left alone.
func (c *Client) Unpause() {
	c.pace.mu.Lock()
	defer c.pace.mu.Unlock()
	c.pace.until = time.Time{}
}

func (c *Client) slow(d time.Duration) {
	c.o.Count("throttled", 1)
	until := c.o.Clock.Now().Add(d)
	c.pace.mu.Lock()
	defer c.pace.mu.Unlock()
	if until.After(c.pace.until) {
		c.pace.until = until
	}
}

// Admitted waits until requests may be sent.
func (c *Client) Admitted(ctx context.Context) error {
	c.pace.mu.Lock()
	d := c.pace.until.Sub(c.o.Clock.Now())
	c.pace.mu.Unlock()
	if d <= 0 {
		return ctx.Err()
	}
	return c.o.Clock.Sleep(ctx, d)
}

// backoff is the pause after an attempt, drawn so that many who failed at once
// don't come back at once.
func (c *Client) backoff(attempt int) time.Duration {
	most := min(c.o.Pause<<min(attempt, 10), 40*c.o.Pause)
	return most/2 + rand.N(most/2+1)
}

// Rest pauses after a failed attempt.
func (c *Client) Rest(ctx context.Context, attempt int, err error) error {
	c.o.Count("retry", 1)
	d := c.backoff(attempt)
	if Overloaded(err) {
		c.slow(d)
	}
	if err := c.o.Clock.Sleep(ctx, d); err != nil {
		return err
	}
	return c.Admitted(ctx)
}

// Send sends a request that may be sent again whatever became of it, until its
// answer is one or Attempts are used up. Its error tells by classify what the
// last answer was.
func (c *Client) Send(ctx context.Context, what string, request func(context.Context) error) error {
	if err := c.Admitted(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	for attempt := 0; ; attempt++ {
		err := request(ctx)
		switch a := Classify(err); {
		case a == Done:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case a != Busy && a != Unknown, attempt+1 >= c.o.Attempts:
			return fmt.Errorf("%s: %w", what, c.Safe(err))
		}
		if err := c.Rest(ctx, attempt, err); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

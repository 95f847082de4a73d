package haproxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"penstock/consumers/executor/haproxyapi"
	"penstock/consumers/executor/router"
)

// client asks HAProxy, and says what a router is to make of it.
type client struct {
	network, address string
	timeout          time.Duration
}

func (c *client) api() haproxyapi.Client {
	return haproxyapi.Client{Network: c.network, Address: c.address, Timeout: c.timeout}
}

// ask sends a line of commands and returns the whole answer. router.ErrUnreachable.
func (c *client) ask(ctx context.Context, commands ...string) (string, error) {
	answer, err := c.api().Ask(ctx, commands...)
	return answer, told(err)
}

// set has HAProxy carry commands out that answer nothing if they succeed. It goes
// on to the end of a line after one that it refuses. ErrRefused, router.ErrUnreachable.
func (c *client) set(ctx context.Context, commands []string) error {
	return told(c.api().Set(ctx, commands...))
}

func told(err error) error {
	if errors.Is(err, haproxyapi.ErrUnreachable) {
		return fmt.Errorf("%w: %w", router.ErrUnreachable, err)
	}
	return err
}

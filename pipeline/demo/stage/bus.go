package stage

import (
	"context"
	"fmt"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// Operate sets one of the operator's switches, which counts from the next window on.
func Operate(ctx context.Context, c *bus.Client, key string, s control.Switch) error {
	kv, err := c.KV(ctx, subject.OperatorKV)
	if err != nil {
		return err
	}
	s.Version, s.At, s.By = 1, clock.System().Now().UTC(), "demo"
	body, err := control.Encode(s)
	if err != nil {
		return err
	}
	if _, err := kv.Put(ctx, key, body); err != nil {
		return fmt.Errorf("stage: switch %s: %w", key, err)
	}
	return nil
}

// Watch hands what a reader delivers to take, until the context ends, which is no
// error.
func Watch(ctx context.Context, open func() (*bus.Reader, error), take func(bus.Msg) error) error {
	in, err := open()
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("watch the bus: %w", err)
	}
	defer in.Close()
	for m := range in.C() {
		if err := take(m); err != nil {
			return fmt.Errorf("watch the bus: %w", err)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return in.Err()
}

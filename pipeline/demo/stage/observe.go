package stage

import (
	"context"
	"errors"
	"sync"

	"penstock/infra/bus"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// Onlooker is told what is decided, and what becomes of it. Decision and Command are
// called from one goroutine, Outcome from another.
type Onlooker interface {
	Decision(d *control.Decision)
	Command(c *control.Command)
	Outcome(o *control.Outcome)
}

// Observe tells an onlooker all that the bus has of a kind, and what comes, until the
// context ends, which is no error. What else is to run beside it ends with it, and ends
// it.
func Observe(ctx context.Context, c *bus.Client, kind control.Kind, o Onlooker, also ...func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := append([]func(context.Context) error{
		func(ctx context.Context) error {
			return Watch(ctx, func() (*bus.Reader, error) {
				return c.Read(ctx, subject.CommandsStream, []string{subject.Decisions(string(kind)), subject.CommandsOf(string(kind))}, 0)
			}, func(m bus.Msg) error { return decided(m, kind, o) })
		},
		func(ctx context.Context) error {
			return Watch(ctx, func() (*bus.Reader, error) {
				return c.Read(ctx, subject.OutcomesStream, []string{subject.OutcomesOf(string(kind))}, 0)
			}, func(m bus.Msg) error {
				x, err := control.DecodeOutcome(m.Data)
				if err == nil {
					o.Outcome(x)
				}
				return err
			})
		},
	}, also...)
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, f := range all {
		running.Go(func() {
			defer cancel()
			errs[i] = f(ctx)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// decided tells of a decision or a command.
func decided(m bus.Msg, kind control.Kind, o Onlooker) error {
	if m.Subject == subject.Decisions(string(kind)) {
		d, err := control.DecodeDecision(m.Data)
		if err == nil {
			o.Decision(d)
		}
		return err
	}
	c, err := control.DecodeCommand(m.Data)
	if err == nil {
		o.Command(c)
	}
	return err
}

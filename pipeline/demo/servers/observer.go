package servers

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
	say    func(*control.Command, []string) // called with each command, and the servers that were on before

	mu        sync.Mutex
	commands  []*control.Command
	switched  []*control.Outcome // of the server switch
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
	kind := string(control.Servers)
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
	if m.Subject == subject.Decisions(string(control.Servers)) {
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
	o.mu.Lock()
	var before []string
	if n := len(o.commands); n > 0 && o.commands[n-1].Servers != nil {
		before = o.commands[n-1].Servers.On
	}
	o.commands = append(o.commands, c)
	o.mu.Unlock()
	if o.say != nil {
		o.say(c, before)
	}
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
	if x.Target == control.SwitchTarget {
		o.switched = append(o.switched, x)
	}
	return nil
}

// table is the newest command, nil before the first.
func (o *observer) table() *control.Command {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.commands) == 0 {
		return nil
	}
	return o.commands[len(o.commands)-1]
}

// all are the commands so far, and the outcomes of the server switch.
func (o *observer) all() ([]*control.Command, []*control.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.commands), slices.Clone(o.switched)
}

// changes are the servers that a table turns on and off, against those of before.
func changes(before, after []string) (on, off []string) {
	for _, s := range after {
		if !slices.Contains(before, s) {
			on = append(on, s)
		}
	}
	for _, s := range before {
		if !slices.Contains(after, s) {
			off = append(off, s)
		}
	}
	return on, off
}

package servers

import (
	"context"
	"slices"
	"sync"

	"penstock/infra/bus"
	"penstock/pipeline/demo/stage"
	"penstock/schemas/control"
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
	return stage.Observe(ctx, o.client, control.Servers, o)
}

// Decision implements stage.Onlooker.
func (o *observer) Decision(d *control.Decision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.decisions++
	for _, r := range d.Reasons {
		o.reasons[r.Code] += max(r.Count, 1)
	}
}

// Command implements stage.Onlooker.
func (o *observer) Command(c *control.Command) {
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
}

// Outcome implements stage.Onlooker.
func (o *observer) Outcome(x *control.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.outcomes[x.Status]++
	if x.Target == control.SwitchTarget {
		o.switched = append(o.switched, x)
	}
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

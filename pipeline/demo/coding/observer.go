package coding

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
	return stage.Observe(ctx, o.client, control.Coding, o)
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
	if o.say != nil {
		o.say(c)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.commands = append(o.commands, c)
}

// Outcome implements stage.Onlooker.
func (o *observer) Outcome(x *control.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.outcomes[x.Status]++
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

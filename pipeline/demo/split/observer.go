package split

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"penstock/consumers/panes"
	"penstock/infra/bus"
	"penstock/pipeline/demo/stage"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// observer watches the bus of a world as anybody could: what is decided, what
// becomes of it, and what windows say. It changes nothing.
type observer struct {
	client *bus.Client
	sites  []string
	say    func(*order, *observer) // called with each command, unlocked

	mu        sync.Mutex
	orders    []order
	index     map[orderID]int
	early     map[orderID][]*control.Outcome // outcomes that came before their command
	windows   []seen
	decisions int
	reasons   map[string]int64
	last      *control.Decision
	others    map[control.Status]int // outcomes that are not done
}

// orderID is how a command is told from all others.
type orderID struct {
	scope string
	epoch uint64
}

func newObserver(c *bus.Client, sites []string, say func(*order, *observer)) *observer {
	return &observer{
		client: c, sites: sites, say: say, index: map[orderID]int{}, early: map[orderID][]*control.Outcome{},
		reasons: map[string]int64{}, others: map[control.Status]int{},
	}
}

// run watches until the context ends.
func (o *observer) run(ctx context.Context) error {
	return stage.Observe(ctx, o.client, control.Split, o, o.watchWindows)
}

// watchWindows closes windows as they become complete.
func (o *observer) watchWindows(ctx context.Context) error {
	asm := panes.New(panes.Options{Group: window.Fast, Partitions: o.client.Partitions(), Width: width})
	in, err := panes.Read(ctx, o.client, asm)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer in.Close()
	for {
		if _, err := in.Next(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("watch windows: %w", err)
		}
		for w := asm.Close(); w != nil; w = asm.Close() {
			s := seenOf(w)
			o.mu.Lock()
			o.windows = append(o.windows, s)
			o.mu.Unlock()
		}
	}
}

// Decision implements stage.Onlooker.
func (o *observer) Decision(d *control.Decision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.decisions++
	o.last = d
	for _, r := range d.Reasons {
		o.reasons[r.Code] += max(r.Count, 1)
	}
}

// Command implements stage.Onlooker.
func (o *observer) Command(c *control.Command) {
	x := orderOf(c)
	if o.say != nil {
		o.say(&x, o)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	id := orderID{x.scope, x.epoch}
	o.index[id] = len(o.orders)
	o.orders = append(o.orders, x)
	for _, was := range o.early[id] {
		o.answered(was)
	}
	delete(o.early, id)
}

// Outcome implements stage.Onlooker.
func (o *observer) Outcome(x *control.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answered(x)
}

// answered notes when the entry point of a site had applied a command.
func (o *observer) answered(x *control.Outcome) {
	if x.Status != control.Done && x.Status != control.AlreadyApplied {
		o.others[x.Status]++
		return
	}
	id := orderID{x.Scope, x.Epoch}
	i, known := o.index[id]
	if !known {
		o.early[id] = append(o.early[id], x)
		return
	}
	for _, site := range o.sites {
		if at, ok := o.orders[i].applied[site]; strings.HasSuffix(x.By, "entry-"+site) && (!ok || x.At.Before(at)) {
			o.orders[i].applied[site] = x.At
		}
	}
}

// now is the share of a site in a link as it was commanded last, and whether it was.
func (o *observer) now(l link, site string) (float64, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := len(o.orders) - 1; i >= 0; i-- {
		if row := o.orders[i].rows[l]; row != nil {
			return row[site], true
		}
	}
	return 0, false
}

// record is what was seen so far.
func (o *observer) record(policy string) *record {
	o.mu.Lock()
	defer o.mu.Unlock()
	return &record{policy: policy, sites: o.sites, orders: slices.Clone(o.orders), windows: slices.Clone(o.windows)}
}

// latest is the last window that closed, nil before the first.
func (o *observer) latest() *seen {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.windows) == 0 {
		return nil
	}
	w := o.windows[len(o.windows)-1]
	return &w
}

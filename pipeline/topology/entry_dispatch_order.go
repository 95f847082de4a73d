package topology

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor"
	"penstock/infra/clock"
	"penstock/producers/entry/upstream"
	"penstock/schemas/control"
)

// orderWorkers is how many tables an entry point has in work: the one that waits, and those
// that come meanwhile.
const orderWorkers = 4

// orderLook is how often it is asked whether a server of a table that waits is ready, and
// orderPatience how long one may take to say so.
const (
	orderLook     = 250 * time.Millisecond
	orderPatience = time.Second
)

// ordered is a dispatcher's target that takes no server away before one of those that are
// left is there (PROBLEMS P31, P37). Whoever made the table need not know yet that a server
// has died: followed at once, it would leave nobody to serve. What is in force goes on until
// one is ready, the table's ttl is over, or a later one comes; nothing is stopped meanwhile,
// for the server switch waits until dispatchers have its table.
type ordered struct {
	executor.Target
	site  string
	clock clock.Clock
	log   zerolog.Logger
	// well are the servers that get requests and are well.
	well func() []string
	// ready asks a server whether it takes requests.
	ready func(ctx context.Context, server string) error

	mu     sync.Mutex
	latest uint64
	later  chan struct{} // closed when a later table comes
}

// Apply implements executor.Target.
func (o *ordered) Apply(ctx context.Context, c *control.Command, answer executor.Answer) error {
	if c.Scope != o.site || c.Servers == nil {
		return o.Target.Apply(ctx, c, answer)
	}
	until, err := executor.OverBy(ctx, c, o.clock)
	if err != nil {
		return err
	}
	later := o.enter(c.Epoch)
	for said := false; o.takesAway(c.Servers) && !o.anyReady(ctx, c.Servers.On); said = true {
		now := o.clock.Now()
		if ctx.Err() != nil || !now.Before(until) {
			break
		}
		if !said {
			o.log.Warn().Uint64("epoch", c.Epoch).Strs("on", c.Servers.On).Msg("no server that a table has on is ready: what is in force stays until one is")
		}
		t := o.clock.NewTimer(orderLook)
		select {
		case <-t.C():
		case <-ctx.Done():
		case <-later:
			t.Stop()
			return answer(ctx, control.Outcome{Scope: c.Scope, Epoch: c.Epoch, Target: "dispatcher", Status: control.Refused, Reason: "older-epoch"})
		}
		t.Stop()
	}
	return o.Target.Apply(ctx, c, answer)
}

// enter notes that a table has come. What it returns is closed when a later one does, or has:
// one that is delivered again may be older than what was followed since.
func (o *ordered) enter(epoch uint64) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case epoch < o.latest:
		over := make(chan struct{})
		close(over)
		return over
	case o.later == nil:
		o.latest, o.later = epoch, make(chan struct{})
	case epoch > o.latest:
		close(o.later)
		o.latest, o.later = epoch, make(chan struct{})
	}
	return o.later
}

// takesAway says whether a table turns off a server that serves.
func (o *ordered) takesAway(t *control.ServersTable) bool {
	return slices.ContainsFunc(o.well(), func(name string) bool { return slices.Contains(t.Off, name) })
}

// anyReady says whether one of the servers is ready: as soon as one says so.
func (o *ordered) anyReady(ctx context.Context, servers []string) bool {
	ctx, cancel := context.WithTimeout(ctx, orderPatience)
	defer cancel()
	answers := make(chan error, len(servers))
	for _, name := range servers {
		go func() { answers <- o.ready(ctx, name) }()
	}
	found := false
	for range servers {
		if <-answers == nil {
			found = true
			cancel()
		}
	}
	return found
}

// wellOf are the servers of a pool that get requests and are well.
func wellOf(pool *upstream.Pool) []string {
	var names []string
	for _, s := range pool.Status() {
		if s.State == upstream.StateUsed {
			names = append(names, s.Name)
		}
	}
	return names
}

package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"penstock/infra/clock"
)

// Readiness holds what the parts of a process say of themselves. It is safe for
// concurrent use.
type Readiness struct {
	clock  clock.Clock
	mu     sync.Mutex
	parts  map[*Part]struct{}
	checks []check
}

// NewReadiness returns one without parts: such a process is not ready, for it
// does nothing. The clock stamps changes; nil is the machine's.
func NewReadiness(c clock.Clock) *Readiness {
	if c == nil {
		c = clock.System()
	}
	return &Readiness{clock: c, parts: map[*Part]struct{}{}}
}

// Part is one part of the process, such as the aggregator of a partition.
type Part struct {
	of     *Readiness
	name   string
	ready  bool
	reason string
	since  time.Time
}

// NotReady is a part that is not ready.
type NotReady struct {
	Part   string    `json:"part"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// Part registers a part, which is not ready because it starts.
func (r *Readiness) Part(name string) *Part {
	p := &Part{of: r, name: name, reason: "starting", since: r.clock.Now().UTC()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts[p] = struct{}{}
	return p
}

// Ready says that the part does its work.
func (p *Part) Ready() { p.set(true, "") }

// NotReady says that it doesn't, and why.
func (p *Part) NotReady(reason string) { p.set(false, cmp.Or(reason, "unknown")) }

// Gone takes the part off the list: it ended as it should, or moved to another
// process.
func (p *Part) Gone() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	delete(p.of.parts, p)
}

func (p *Part) set(ready bool, reason string) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	// A part that says the same again keeps the time since when it holds.
	if p.ready != ready || p.reason != reason {
		p.ready, p.reason, p.since = ready, reason, p.of.clock.Now().UTC()
	}
}

// NotReady returns the parts that are not ready, by name, and how many parts
// there are.
func (r *Readiness) NotReady() (not []NotReady, parts int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	not = []NotReady{}
	for p := range r.parts {
		if !p.ready {
			not = append(not, NotReady{p.name, p.reason, p.since})
		}
	}
	slices.SortFunc(not, func(a, b NotReady) int {
		return cmp.Or(cmp.Compare(a.Part, b.Part), cmp.Compare(a.Reason, b.Reason))
	})
	return not, len(r.parts)
}

type check struct {
	name string
	run  func(context.Context) error
}

// Check registers a check of the process's health: an error is what only a
// restart can mend. It is called for each /healthz, with the request's context,
// from any goroutine; it should answer within a second and may not block for
// longer than the context lasts.
func (r *Readiness) Check(name string, run func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checks = append(r.checks, check{name, run})
}

// Fault is a check that failed.
type Fault struct {
	Check string `json:"check"`
	Error string `json:"error"`
}

// Faults runs the checks side by side and returns those that failed, in the
// order of registration. One that panics or outlasts the context has failed.
func (r *Readiness) Faults(ctx context.Context) []Fault {
	r.mu.Lock()
	checks := slices.Clone(r.checks)
	r.mu.Unlock()
	results := make([]chan error, len(checks))
	for i, c := range checks {
		// Room for the answer of a check that nobody waits for any more.
		results[i] = make(chan error, 1)
		go func() { results[i] <- c.safely(ctx) }()
	}
	out := []Fault{}
	for i, c := range checks {
		var err error
		select {
		case err = <-results[i]:
		case <-ctx.Done():
			err = fmt.Errorf("no answer: %w", context.Cause(ctx))
		}
		if err != nil {
			out = append(out, Fault{c.name, err.Error()})
		}
	}
	return out
}

func (c check) safely(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return c.run(ctx)
}

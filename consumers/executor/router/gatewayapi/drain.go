package gatewayapi

import (
	"context"
	"fmt"

	"penstock/consumers/executor/router"
	"penstock/infra/shares"
)

// at returns the rules with a backendRef of a replica.
func (t *Target) at(r shares.Replica) ([]*Route, error) {
	routes := t.of(func(x *Route) bool {
		_, has := x.Backends[r.Site]
		return x.Link.To == r.Component && has
	})
	if len(routes) == 0 {
		return nil, fmt.Errorf("no rule has %.80q at %.80q: %w", r.Component, r.Site, shares.ErrAbsent)
	}
	return routes, nil
}

// Ready is nil if, in each rule of the replica, its backendRef is there and has a
// ready endpoint, it doesn't drain, and a gateway has accepted the HTTPRoute as it is
// and resolved its references.
func (t *Target) Ready(ctx context.Context, r shares.Replica) error {
	routes, err := t.at(r)
	if err != nil {
		return err
	}
	objects := map[key]*object{}
	for _, x := range routes {
		o, err := t.once(ctx, objects, x)
		if err != nil {
			return err
		}
		if len(x.slots(o.Spec.Rules[x.place(o)].BackendRefs)[r.Site]) == 0 {
			return fmt.Errorf("rule %s: no backendRef of site %.80q: %w", x.id(), r.Site, shares.ErrAbsent)
		}
		if !o.resolved() {
			return fmt.Errorf("rule %s: no gateway has accepted generation %d and resolved its references: %w", x.id(), o.Metadata.Generation, router.ErrNotReady)
		}
		if b := x.Backends[r.Site]; b.isService() {
			dead, err := t.dead(ctx, b.Namespace, []string{b.Name})
			if err != nil {
				return err
			}
			if dead[b.Name] {
				return fmt.Errorf("rule %s: Service %s/%s has no ready endpoint: %w", x.id(), b.Namespace, b.Name, router.ErrNotReady)
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.draining[r] {
		return fmt.Errorf("%.80q at %.80q drains: %w", r.Component, r.Site, router.ErrNotReady)
	}
	return nil
}

// resolved says whether a gateway carries the object as it is.
func (o *object) resolved() bool {
	for i := range o.Status.Parents {
		p := &o.Status.Parents[i]
		if p.holds("Accepted", o.Metadata.Generation) && p.holds("ResolvedRefs", o.Metadata.Generation) {
			return true
		}
	}
	return false
}

// Drain takes the weight of a replica away, in all rules, and waits until nothing
// runs there, as Options.Running says. Without it ErrRemaining, with −1: nobody
// knows.
func (t *Target) Drain(ctx context.Context, r shares.Replica) (remaining int, err error) {
	routes, err := t.at(r)
	if err != nil {
		return 0, err
	}
	if _, err := t.edit(context.WithoutCancel(ctx), routes, func(s *standing) { s.draining[r] = true }); err != nil {
		return 0, err
	}
	return router.Emptied(ctx, t.o.Clock, r, t.o.Running)
}

// Undrain gives a replica its weight again.
func (t *Target) Undrain(ctx context.Context, r shares.Replica) error {
	routes, err := t.at(r)
	if err != nil {
		return err
	}
	_, err = t.edit(ctx, routes, func(s *standing) { delete(s.draining, r) })
	return err
}

package gatewayapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"penstock/consumers/executor/router"
	"penstock/infra/shares"
)

// tries is how often a patch is made again because somebody else wrote.
const tries = 6

// weights are those of rules, by id and site, in the order of their slots.
type weights map[string]map[string][]int64

// written is an object that was changed, and what its rules had before.
type written struct {
	routes []*Route
	before weights
}

// writeAll writes the rules of each object. If one is refused, what was written is
// written back.
func (t *Target) writeAll(ctx context.Context, routes []*Route, s standing, away map[string]map[string]bool) (changes int, err error) {
	var done []written
	for _, k := range objects(routes) {
		some := slices.DeleteFunc(slices.Clone(routes), func(r *Route) bool { return r.object() != k })
		n, before, e := t.write(ctx, some, func(o *object) (want, have weights, err error) { return t.plan(o, some, s, away) })
		if n > 0 {
			changes, done = changes+n, append(done, written{some, before})
		}
		if err = e; err != nil {
			break
		}
	}
	if err == nil || errors.Is(err, router.ErrUnreachable) {
		return changes, err // of what can't be reached nothing is known: it is put again
	}
	ctx = context.WithoutCancel(ctx)
	for _, w := range slices.Backward(done) {
		back := func(*object) (want, have weights, err error) { return w.before, nil, nil }
		if _, _, undo := t.write(ctx, w.routes, back); undo != nil {
			err = errors.Join(err, undo)
		}
	}
	return 0, err
}

// objects are those of some rules, in their order.
func objects(routes []*Route) []key {
	var all []key
	for _, r := range routes {
		if !slices.Contains(all, r.object()) {
			all = append(all, r.object())
		}
	}
	return all
}

// plan returns what the rules of an object are to have, and what those have that are
// touched for the first time.
func (t *Target) plan(o *object, routes []*Route, s standing, away map[string]map[string]bool) (want, fresh weights, err error) {
	want, fresh = weights{}, weights{}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range routes {
		if err := r.within(o); err != nil {
			return nil, nil, err
		}
		refs := o.Spec.Rules[r.place(o)].BackendRefs
		at := r.slots(refs)
		w := wanted{split: split(r, s.tables), away: away[r.id()], foreign: at.foreign(refs)}
		var known bool
		if w.first, known = t.first[r.id()]; !known {
			if w.split == nil && !s.drains(r) {
				continue // never touched
			}
			w.first = at.weights(refs)
			fresh[r.id()] = w.first
		}
		if want[r.id()], err = w.weights(at); err != nil {
			return nil, nil, fmt.Errorf("rule %s: %w", r.id(), err)
		}
	}
	return want, fresh, nil
}

// write brings the rules of one object to what a plan says of its present version,
// and waits for gateways to accept that. before is what they had.
func (t *Target) write(ctx context.Context, routes []*Route, plan func(o *object) (want, fresh weights, err error)) (changes int, before weights, err error) {
	k, tested := routes[0].object(), ""
	for range tries {
		o, err := t.client.read(ctx, k)
		if err != nil {
			return 0, nil, err
		}
		if o.Metadata.ResourceVersion == tested {
			// It is what the patch was made for, which failed all the same.
			return 0, nil, fmt.Errorf("HTTPRoute %s/%s, version %s: %w: a patch for it", k.namespace, k.name, tested, ErrRefused)
		}
		want, fresh, err := plan(o)
		if err != nil {
			return 0, nil, err
		}
		all, before := differences(o, routes, want)
		if len(all) == 0 {
			return 0, nil, nil
		}
		t.remember(fresh)
		tested = o.Metadata.ResourceVersion
		after, err := t.client.write(ctx, k, patch(tested, all))
		switch {
		case err == nil:
			return len(all), before, t.accepted(ctx, k, o, after)
		case !errors.Is(err, errConflict):
			return 0, nil, err
		}
		t.o.Metrics.Count(Conflicts, "", 1)
		t.mu.Lock()
		for id := range fresh { // who wrote may have written what came before us
			delete(t.first, id)
		}
		t.mu.Unlock()
	}
	return 0, nil, fmt.Errorf("HTTPRoute %s/%s: %d times: %w: %w", k.namespace, k.name, tries, errConflict, router.ErrUnreachable)
}

// differences are what has to be written so that rules have what they are to, and
// what those rules have now.
func differences(o *object, routes []*Route, want weights) (all []change, before weights) {
	before = weights{}
	for _, r := range routes {
		sites, touched := want[r.id()]
		place := r.place(o)
		if !touched || place < 0 {
			continue
		}
		refs := o.Spec.Rules[place].BackendRefs
		at := r.slots(refs)
		before[r.id()] = at.weights(refs)
		for _, site := range r.sites() {
			for i, slot := range at[site] {
				if i >= len(sites[site]) || refs[slot].weight() == sites[site][i] {
					continue
				}
				all = append(all, change{place, slot, refs[slot].Name, sites[site][i], refs[slot].Weight != nil})
			}
		}
	}
	return all, before
}

// remember keeps what rules had before they are touched for the first time.
func (t *Target) remember(fresh weights) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, sites := range fresh {
		t.first[id], t.stale = sites, true
	}
	t.keep()
}

// accepted waits until a gateway has accepted what was written. ErrRefused if all
// that accepted what was there before say no.
func (t *Target) accepted(ctx context.Context, k key, before, after *object) error {
	generation := after.Metadata.Generation
	if !before.accepted(before.Metadata.Generation) {
		return nil // nobody carries it: there is nobody to ask
	}
	late := t.o.Clock.Now().Add(t.o.Wait)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		if after.accepted(generation) {
			return nil
		}
		if c, all := after.refused(generation); all {
			return fmt.Errorf("HTTPRoute %s/%s, generation %d: %w: %s: %.400s", k.namespace, k.name, generation, ErrRefused, c.Reason, c.Message)
		}
		if !t.o.Clock.Now().Before(late) {
			t.o.Metrics.Count(Silent, "", 1)
			return nil
		}
		if err := t.o.Clock.Sleep(ctx, pause); err != nil {
			t.o.Metrics.Count(Silent, "ended", 1)
			return nil //nolint:nilerr // It is written, and nobody waits any more.
		}
		next, err := t.client.read(ctx, k)
		if err != nil {
			t.o.Metrics.Count(Silent, "unreachable", 1)
			return nil //nolint:nilerr // It is written; the next look says more.
		}
		after = next
	}
}

// accepted says whether a gateway has accepted a version, or a later one.
func (o *object) accepted(generation int64) bool {
	return slices.ContainsFunc(o.Status.Parents, func(p parent) bool { return p.holds("Accepted", generation) })
}

// refused says whether all gateways refuse a version, and why the first does.
func (o *object) refused(generation int64) (c condition, all bool) {
	for i := range o.Status.Parents {
		said, ok := o.Status.Parents[i].says("Accepted", generation)
		if !ok || said.Status != "False" {
			return c, false
		}
		if i == 0 {
			c = said
		}
	}
	return c, len(o.Status.Parents) > 0
}

// awayOf returns the sites of each rule that get nothing: those that drain, and,
// where a table has the rule, those without a ready endpoint.
func (t *Target) awayOf(ctx context.Context, routes []*Route, s standing) (map[string]map[string]bool, error) {
	away, services := map[string]map[string]bool{}, map[string][]string{}
	for _, r := range routes {
		away[r.id()] = map[string]bool{}
		for site, b := range r.Backends {
			if s.draining[shares.Replica{Component: r.Link.To, Site: site}] {
				away[r.id()][site] = true
			}
			if split(r, s.tables) != nil && b.isService() && !slices.Contains(services[b.Namespace], b.Name) {
				services[b.Namespace] = append(services[b.Namespace], b.Name)
			}
		}
	}
	for namespace, names := range services {
		slices.Sort(names)
		dead, err := t.dead(ctx, namespace, names)
		if err != nil {
			return nil, err
		}
		for _, r := range routes {
			for site, b := range r.Backends {
				if split(r, s.tables) != nil && b.isService() && b.Namespace == namespace && dead[b.Name] {
					away[r.id()][site] = true
				}
			}
		}
	}
	return away, nil
}

// isService says whether a backend has endpoints that can be asked for.
func (b Backend) isService() bool { return b.Group == "" && b.Kind == "Service" }

// dead returns which Services have no ready endpoint; none, if we may not ask.
func (t *Target) dead(ctx context.Context, namespace string, services []string) (map[string]bool, error) {
	dead, err := t.client.dead(ctx, namespace, services)
	if errors.Is(err, ErrRefused) {
		t.o.Metrics.Count(Unseen, "", 1)
		return nil, nil //nolint:nilnil // Nothing is known of any.
	}
	return dead, err
}

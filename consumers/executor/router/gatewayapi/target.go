package gatewayapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"penstock/consumers/executor/router"
	"penstock/infra/shares"
)

// Target is the HTTPRoutes of one API server. It is safe for concurrent use.
type Target struct {
	o      Options
	client *client
	turn   sync.Mutex // held by those who write

	mu       sync.Mutex // of all below; never held while waiting
	first    map[string]map[string][]int64
	draining map[shares.Replica]bool
	tables   map[string]shares.Table
	stale    bool                       // the state file is older than what it is to hold
	away     map[string]map[string]bool // what was away when a rule was last written, by id and site
}

var (
	_ router.Target  = (*Target)(nil)
	_ router.Carrier = (*Target)(nil)
)

// New returns the target of an API server, which need not be there yet.
// router.ErrOptions, ErrState.
func New(o Options) (*Target, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	c, err := newClient(&o)
	if err != nil {
		return nil, err
	}
	m, err := recall(o.StateFile)
	if err != nil {
		return nil, err
	}
	t := &Target{
		o: o, client: c, first: m.First, draining: map[shares.Replica]bool{},
		tables: map[string]shares.Table{}, away: map[string]map[string]bool{},
	}
	for _, r := range m.Draining {
		t.draining[r] = true
	}
	return t, nil
}

// Name is the target in outcomes.
func (t *Target) Name() string { return t.o.Name }

// Carries says whether a rule has the link.
func (t *Target) Carries(l shares.Link) bool {
	return slices.ContainsFunc(t.o.Routes, func(r Route) bool { return r.Link == l })
}

// Close closes idle connections to the API server.
func (t *Target) Close() { t.client.api.Close() }

// of returns the rules that satisfy a condition.
func (t *Target) of(is func(r *Route) bool) []*Route {
	return router.Those(t.o.Routes, is)
}

// check says whether a table can be followed, and how many rows no rule carries.
func (t *Target) check(table shares.Table) (ignored int64, err error) {
	if err := table.Check(); err != nil {
		return 0, err
	}
	for _, row := range table.Rows {
		l := shares.Link{From: table.From, FromSite: row.FromSite, To: row.To}
		routes := t.of(func(r *Route) bool { return r.Link == l })
		if len(routes) == 0 {
			ignored++
		} else if row.WritesAt != "" && !slices.ContainsFunc(routes, func(r *Route) bool { return r.Writes }) {
			return 0, fmt.Errorf("writes from %.80q to %.80q at %.80q: no rule of their own for them: %w", row.FromSite, row.To, row.WritesAt, shares.ErrTable)
		}
		for _, r := range routes {
			for site, share := range split(r, map[string]shares.Table{table.From: table}) {
				if _, has := r.Backends[site]; share > 0 && !has {
					return 0, fmt.Errorf("rule %s: site %.80q: %w", r.id(), site, shares.ErrAbsent)
				}
			}
		}
	}
	return ignored, nil
}

// split returns the shares that tables give the sites of a rule; nil if they have no
// row for it.
func split(r *Route, tables map[string]shares.Table) map[string]float64 {
	table := tables[r.Link.From]
	for _, row := range table.Rows {
		if row.FromSite == r.Link.FromSite && row.To == r.Link.To {
			return router.Wanted(row, r.Writes)
		}
	}
	return nil
}

// Put writes the weights that are not as the table says.
func (t *Target) Put(ctx context.Context, table shares.Table) (changes int, err error) {
	ignored, err := t.check(table)
	if err != nil {
		return 0, err
	}
	changes, err = t.edit(ctx, t.of(func(r *Route) bool { return r.Link.From == table.From }), func(s *standing) { s.tables[table.From] = table })
	if err == nil && changes > 0 && ignored > 0 {
		t.o.Metrics.Count(Ignored, "no-route", ignored)
	}
	return changes, err
}

// Clear writes the weights of before for a calling component.
func (t *Target) Clear(ctx context.Context, from string) error {
	_, err := t.edit(ctx, t.of(func(r *Route) bool { return r.Link.From == from }), func(s *standing) { delete(s.tables, from) })
	return err
}

// standing is what is to hold.
type standing struct {
	tables   map[string]shares.Table
	draining map[shares.Replica]bool
}

// edit has something else hold for some rules, writes what that changes, and takes
// note of it.
func (t *Target) edit(ctx context.Context, routes []*Route, edit func(s *standing)) (changes int, err error) {
	t.turn.Lock()
	defer t.turn.Unlock()
	t.mu.Lock()
	s := standing{maps.Clone(t.tables), maps.Clone(t.draining)}
	t.mu.Unlock()
	edit(&s)
	away, err := t.awayOf(ctx, routes, s)
	if err != nil {
		return 0, err
	}
	changes, err = t.writeAll(ctx, routes, s, away)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		if !errors.Is(err, router.ErrUnreachable) { // then all is as before
			t.forget(routes, standing{t.tables, t.draining})
		}
		return 0, err
	}
	t.stale = t.stale || !maps.Equal(t.draining, s.draining)
	t.tables, t.draining = s.tables, s.draining
	for _, r := range routes {
		t.away[r.id()] = away[r.id()]
	}
	t.forget(routes, s)
	return changes, nil
}

// forget forgets what rules had before that are not touched any more: their weights
// are their own again. The lock is held.
func (t *Target) forget(routes []*Route, s standing) {
	for _, r := range routes {
		if _, touched := t.first[r.id()]; touched && split(r, s.tables) == nil && !s.drains(r) {
			delete(t.first, r.id())
			t.stale = true
		}
	}
	t.keep()
}

// keep writes the state file if that is due. A failure is no reason to hold a table
// up: it is counted, and the file is due again. The lock is held.
func (t *Target) keep() {
	if !t.stale {
		return
	}
	m := memory{First: t.first, Draining: slices.Collect(maps.Keys(t.draining))}
	slices.SortFunc(m.Draining, func(a, b shares.Replica) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Site, b.Site))
	})
	if err := m.keep(t.o.StateFile); err != nil {
		t.o.Metrics.Count(StateFile, "write", 1)
		return
	}
	t.stale = false
}

// drains says whether a site of a rule drains.
func (s *standing) drains(r *Route) bool {
	for site := range r.Backends {
		if s.draining[shares.Replica{Component: r.Link.To, Site: site}] {
			return true
		}
	}
	return false
}

// Observe returns the shares that the weights come to. A site that gets nothing
// because it drains, or has no ready endpoint, shows the share that it has in the
// table.
func (t *Target) Observe(ctx context.Context, from string) ([]shares.Row, error) {
	var rows []shares.Row
	objects := map[key]*object{}
	for _, r := range t.of(func(r *Route) bool { return r.Link.From == from && !r.Writes }) {
		o, err := t.once(ctx, objects, r)
		if err != nil {
			return nil, err
		}
		refs := o.Spec.Rules[r.place(o)].BackendRefs
		weights, err := t.shown(r, refs)
		if err != nil {
			return nil, err
		}
		sum := total(weights)
		if sum == 0 {
			continue
		}
		split := map[string]float64{}
		for site := range r.Backends {
			split[site] = float64(total(map[string][]int64{site: weights[site]})) / float64(sum)
		}
		rows = append(rows, router.Shown(r.Link, split))
	}
	return rows, nil
}

// once reads a rule's object unless it was read before.
func (t *Target) once(ctx context.Context, objects map[key]*object, r *Route) (*object, error) {
	if o := objects[r.object()]; o != nil {
		return o, r.within(o)
	}
	o, err := t.client.read(ctx, r.object())
	if err != nil {
		return nil, err
	}
	objects[r.object()] = o
	return o, r.within(o)
}

// within says whether an object has the rule.
func (r *Route) within(o *object) error {
	if r.place(o) < 0 {
		return fmt.Errorf("rule %s: %w", r.id(), shares.ErrAbsent)
	}
	return nil
}

// shown are the weights of a rule's sites as if none were away.
func (t *Target) shown(r *Route, refs []ref) (map[string][]int64, error) {
	at := r.slots(refs)
	now := at.weights(refs)
	t.mu.Lock()
	w := wanted{split: split(r, t.tables), first: t.first[r.id()], away: t.away[r.id()], foreign: at.foreign(refs)}
	t.mu.Unlock()
	if w.split == nil || len(w.away) == 0 {
		return now, nil
	}
	told, err := w.weights(at)
	if err != nil || !maps.EqualFunc(told, now, slices.Equal[[]int64]) {
		return now, nil //nolint:nilerr // It isn't as the table says, whatever the reason: it shows what it has.
	}
	w.away = nil
	return w.weights(at)
}

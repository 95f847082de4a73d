package haproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"penstock/consumers/executor/router"
	"penstock/infra/shares"
)

// Target is a running HAProxy. It is safe for concurrent use.
type Target struct {
	o      Options
	client client
	// mu is held by those who set something, so that what is read stays true until
	// it is set.
	mu    sync.Mutex
	stale bool // the state file is older than what was set
}

var (
	_ router.Target  = (*Target)(nil)
	_ router.Carrier = (*Target)(nil)
)

// New returns the target of a HAProxy, which need not run yet. ErrOptions.
func New(o Options) (*Target, error) {
	network, err := o.complete()
	if err != nil {
		return nil, err
	}
	return &Target{o: o, client: client{network: network, address: o.Address, timeout: o.Timeout}}, nil
}

// Name is the target in outcomes.
func (t *Target) Name() string { return t.o.Name }

// Carries says whether a backend has the link.
func (t *Target) Carries(l shares.Link) bool {
	return slices.ContainsFunc(t.o.Backends, func(b Backend) bool { return b.Link == l })
}

// servers reads the servers of backends: by backend, then name.
func (t *Target) servers(ctx context.Context, backends []*Backend) (map[string]map[string]*server, error) {
	all := map[string]map[string]*server{}
	for part := range slices.Chunk(backends, 32) { // a line has a length
		var commands []string
		for _, b := range part {
			commands = append(commands, "show servers state "+b.Name)
			all[b.Name] = map[string]*server{}
		}
		answer, err := t.client.ask(ctx, commands...)
		if err != nil {
			return nil, err
		}
		found, err := parseState(answer)
		if err != nil {
			return nil, err
		}
		for i := range found {
			if of := all[found[i].backend]; of != nil {
				of[found[i].name] = &found[i]
			}
		}
	}
	return all, nil
}

// of returns the backends that satisfy a condition.
func (t *Target) of(is func(b *Backend) bool) []*Backend {
	return router.Those(t.o.Backends, is)
}

// plan is what a table asks of one backend.
type plan struct {
	backend *Backend
	shares  map[string]float64 // nil: the weights of HAProxy's configuration
}

// plans finds the backends of a table's rows; rows without one are left to others.
// Backends without a row are as without a table.
func (t *Target) plans(table shares.Table) (plans []plan, ignored int64, err error) {
	for _, row := range table.Rows {
		l := shares.Link{From: table.From, FromSite: row.FromSite, To: row.To}
		backends := t.of(func(b *Backend) bool { return b.Link == l })
		if len(backends) == 0 {
			ignored++
			continue
		}
		if row.WritesAt != "" && !slices.ContainsFunc(backends, func(b *Backend) bool { return b.Writes }) {
			return nil, 0, fmt.Errorf("writes from %.80q to %.80q at %.80q: %w", row.FromSite, row.To, row.WritesAt, ErrWrites)
		}
		for _, b := range backends {
			p := plan{b, router.Wanted(row, b.Writes)}
			for site, share := range p.shares {
				if share > 0 && b.Servers[site] == nil {
					return nil, 0, fmt.Errorf("backend %s: site %.80q: %w", b.Name, site, shares.ErrAbsent)
				}
			}
			plans = append(plans, p)
		}
	}
	for _, b := range t.of(func(b *Backend) bool { return b.Link.From == table.From }) {
		if !slices.ContainsFunc(plans, func(p plan) bool { return p.backend == b }) {
			plans = append(plans, plan{backend: b})
		}
	}
	return plans, ignored, nil
}

// change is a weight to set.
type change struct {
	server *server
	weight int
}

func (c change) command() string {
	return fmt.Sprintf("set server %s/%s weight %d", c.server.backend, c.server.name, c.weight)
}

// Put sets the weights that are not as the table says.
func (t *Target) Put(ctx context.Context, table shares.Table) (changes int, err error) {
	if err := table.Check(); err != nil {
		return 0, err
	}
	plans, ignored, err := t.plans(table)
	if err != nil {
		return 0, err
	}
	changes, err = t.carryOut(ctx, plans)
	if changes > 0 && ignored > 0 {
		t.o.Metrics.Count(Ignored, "no-backend", ignored)
	}
	return changes, err
}

// Clear gives the servers of a calling component the weights of HAProxy's
// configuration.
func (t *Target) Clear(ctx context.Context, from string) error {
	var plans []plan
	for _, b := range t.of(func(b *Backend) bool { return b.Link.From == from }) {
		plans = append(plans, plan{backend: b})
	}
	_, err := t.carryOut(ctx, plans)
	return err
}

// carryOut sets the weights that are not as planned.
func (t *Target) carryOut(ctx context.Context, plans []plan) (changes int, err error) {
	var backends []*Backend
	for _, p := range plans {
		backends = append(backends, p.backend)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now, err := t.servers(ctx, backends)
	if err != nil {
		return 0, err
	}
	var all []change
	for _, p := range plans {
		servers := now[p.backend.Name]
		weights, err := p.weights(servers)
		if err != nil {
			return 0, err
		}
		for name, weight := range weights {
			if s := servers[name]; s.weight != weight {
				all = append(all, change{s, weight})
			}
		}
	}
	return len(all), t.set(ctx, all)
}

// weights are those that the servers of the backend are to have.
func (p plan) weights(servers map[string]*server) (map[string]int, error) {
	if p.shares != nil {
		return p.backend.weights(p.shares, servers)
	}
	weights := map[string]int{}
	for _, names := range p.backend.Servers {
		for _, name := range names {
			if s := servers[name]; s != nil {
				weights[name] = s.initial
			}
		}
	}
	return weights, nil
}

// set sets weights, those that rise first. If HAProxy refuses, what was set is set
// back.
func (t *Target) set(ctx context.Context, all []change) error {
	if len(all) == 0 {
		t.keepState(ctx, t.stale)
		return nil
	}
	slices.SortFunc(all, func(a, b change) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			cmp.Compare(a.server.backend, b.server.backend), cmp.Compare(a.server.name, b.server.name))
	})
	var there, back []string
	for _, c := range all {
		there = append(there, c.command())
		back = append(back, change{c.server, c.server.weight}.command())
	}
	err := t.client.set(ctx, there)
	if errors.Is(err, ErrRefused) {
		// The first refusal may have come after others were set. Those that are refused
		// in both directions are as they were.
		var undo error
		for _, command := range back {
			if err := t.client.set(ctx, []string{command}); err != nil && !errors.Is(err, ErrRefused) {
				undo = errors.Join(undo, err)
			}
		}
		return errors.Join(err, undo)
	}
	if err != nil {
		return err
	}
	t.keepState(ctx, true)
	return nil
}

// rank puts weights that rise before those that fall.
func rank(c change) int {
	if c.weight > c.server.weight {
		return 0
	}
	return 1
}

// Observe returns the shares that the weights come to.
func (t *Target) Observe(ctx context.Context, from string) ([]shares.Row, error) {
	backends := t.of(func(b *Backend) bool { return b.Link.From == from && !b.Writes })
	now, err := t.servers(ctx, backends)
	if err != nil {
		return nil, err
	}
	var rows []shares.Row
	for _, b := range backends {
		split := b.shares(now[b.Name])
		if split == nil {
			continue
		}
		rows = append(rows, router.Shown(b.Link, split))
	}
	return rows, nil
}

// at returns the backends with servers of a replica.
func (t *Target) at(r shares.Replica) []*Backend {
	return t.of(func(b *Backend) bool { return b.Link.To == r.Component && b.Servers[r.Site] != nil })
}

// Ready is nil if each backend of the replica has a usable server there.
func (t *Target) Ready(ctx context.Context, r shares.Replica) error {
	backends := t.at(r)
	if len(backends) == 0 {
		return fmt.Errorf("no backend has %.80q at %.80q: %w", r.Component, r.Site, shares.ErrAbsent)
	}
	now, err := t.servers(ctx, backends)
	if err != nil {
		return err
	}
	for _, b := range backends {
		active := b.active(r.Site, now[b.Name])
		switch {
		case len(active) == 0:
			return fmt.Errorf("backend %s: no server at %.80q: %w", b.Name, r.Site, shares.ErrAbsent)
		case !active[0].usable():
			return fmt.Errorf("backend %s: no server at %.80q is up: %w", b.Name, r.Site, router.ErrNotReady)
		}
	}
	return nil
}

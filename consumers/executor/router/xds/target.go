package xds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	listenerservice "github.com/envoyproxy/go-control-plane/envoy/service/listener/v3"
	routeservice "github.com/envoyproxy/go-control-plane/envoy/service/route/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/log"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"

	"penstock/consumers/executor/router"
	"penstock/infra/shares"
)

// Target serves xDS. It is safe for concurrent use.
type Target struct {
	o     Options
	cache cachev3.SnapshotCache
	turn  sync.Mutex // held by those who change the configuration, until clients answered

	mu         sync.Mutex // of all below; never held while waiting
	good       *served
	goodTables map[string]shares.Table
	goodDrains map[shares.Replica]bool
	current    *served // good, or not confirmed yet
	tables     map[string]shares.Table
	last       shares.Table // what made current
	number     uint64       // of the newest snapshot
	rejected   map[string]rejection
	draining   map[shares.Replica]bool
	streams    map[streamID]*stream
	heardOf    chan struct{} // closed when clients have said something
}

// rejection is what a client refused of a table: the rows that a split carries.
type rejection struct {
	rows []shares.Row
	err  error
}

var (
	_ router.Target  = (*Target)(nil)
	_ router.Carrier = (*Target)(nil)
)

// everybody is the node of all clients: they get the same.
type everybody struct{}

func (everybody) ID(*corev3.Node) string { return "all" }

// New returns a target that serves the base. router.ErrOptions, ErrInvalid.
func New(o Options) (*Target, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	o.Base = o.Base.copy()
	first, err := serve(o.Base, nil, 1)
	if err != nil {
		return nil, err
	}
	t := &Target{
		o: o, cache: cachev3.NewSnapshotCache(false, everybody{}, log.LoggerFuncs{}),
		good: first, goodTables: map[string]shares.Table{}, goodDrains: map[shares.Replica]bool{}, current: first, tables: map[string]shares.Table{}, number: 1,
		rejected: map[string]rejection{}, draining: map[shares.Replica]bool{},
		streams: map[streamID]*stream{}, heardOf: make(chan struct{}),
	}
	return t, t.offer()
}

// Register adds the discovery services, aggregated and single, to a server, whose
// streams end with it or with ctx.
func (t *Target) Register(ctx context.Context, s grpc.ServiceRegistrar) {
	x := serverv3.NewServer(ctx, t.cache, callbacks{t})
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(s, x)
	listenerservice.RegisterListenerDiscoveryServiceServer(s, x)
	routeservice.RegisterRouteDiscoveryServiceServer(s, x)
	clusterservice.RegisterClusterDiscoveryServiceServer(s, x)
	endpointservice.RegisterEndpointDiscoveryServiceServer(s, x)
}

// Name is the target in outcomes.
func (t *Target) Name() string { return t.o.Name }

// Carries says whether a split has the link.
func (t *Target) Carries(l shares.Link) bool {
	return slices.ContainsFunc(t.o.Splits, func(s Split) bool { return s.Link == l })
}

// offer has the cache serve the current snapshot.
func (t *Target) offer() error {
	if err := t.cache.SetSnapshot(context.Background(), everybody{}.ID(nil), t.current.snapshot); err != nil {
		return fmt.Errorf("xds: serve a snapshot: %w", err)
	}
	return nil
}

// splits returns those that satisfy a condition.
func (t *Target) splits(is func(s *Split) bool) []*Split {
	return router.Those(t.o.Splits, is)
}

// carried are the rows of a table that a split carries.
func (t *Target) carried(table shares.Table) []shares.Row {
	return slices.DeleteFunc(slices.Clone(table.Rows), func(r shares.Row) bool {
		return !t.Carries(shares.Link{From: table.From, FromSite: r.FromSite, To: r.To})
	})
}

// apply writes a table into a configuration; ignored is how many rows no split
// carries.
func (t *Target) apply(b *Base, table shares.Table, draining map[shares.Replica]bool) (ignored int64, err error) {
	for _, row := range table.Rows {
		l := shares.Link{From: table.From, FromSite: row.FromSite, To: row.To}
		splits := t.splits(func(s *Split) bool { return s.Link == l })
		if len(splits) == 0 {
			ignored++
			continue
		}
		if row.WritesAt != "" && !slices.ContainsFunc(splits, func(s *Split) bool { return s.Writes }) {
			return 0, fmt.Errorf("writes from %.80q to %.80q at %.80q: nothing of their own for them: %w", row.FromSite, row.To, row.WritesAt, shares.ErrTable)
		}
		for _, s := range splits {
			split := router.Wanted(row, s.Writes)
			for site, share := range split {
				if share > 0 && s.sites()[site] == "" {
					return 0, fmt.Errorf("from %.80q to %.80q: site %.80q: %w", row.FromSite, row.To, site, shares.ErrAbsent)
				}
			}
			if err := s.set(b, without(split, row.To, draining)); err != nil {
				return 0, err
			}
		}
	}
	return ignored, nil
}

// without takes the shares of draining replicas away, unless nobody would be left.
func without(split map[string]float64, to string, draining map[shares.Replica]bool) map[string]float64 {
	return router.Without(split, func(site string) bool { return draining[shares.Replica{Component: to, Site: site}] })
}

// build makes the configuration of tables.
func (t *Target) build(tables map[string]shares.Table, draining map[shares.Replica]bool) (b Base, ignored int64, err error) {
	b = t.o.Base.clone()
	for _, s := range t.o.Splits { // a drain holds without a table too
		split, err := s.shares(&b)
		if err != nil {
			return b, 0, err
		}
		if left := without(split, s.Link.To, draining); !maps.Equal(left, split) {
			if err := s.set(&b, left); err != nil {
				return b, 0, err
			}
		}
	}
	for _, from := range slices.Sorted(maps.Keys(tables)) {
		n, err := t.apply(&b, tables[from], draining)
		if err != nil {
			return b, 0, fmt.Errorf("table of %.80q: %w", from, err)
		}
		ignored += n
	}
	return b, ignored, nil
}

// change brings other tables into force, and waits for clients to say what they
// think of that.
func (t *Target) change(ctx context.Context, cause shares.Table, edit func(tables map[string]shares.Table, draining map[shares.Replica]bool)) (changes int, err error) {
	t.turn.Lock()
	defer t.turn.Unlock()
	mine, changes, err := t.step(cause, edit)
	if err != nil || changes == 0 {
		return 0, err
	}
	return changes, t.await(ctx, mine, cause)
}

// step serves the next snapshot.
func (t *Target) step(cause shares.Table, edit func(tables map[string]shares.Table, draining map[shares.Replica]bool)) (*served, int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r, was := t.rejected[cause.From]; was && cause.From != "" {
		if shares.SameRows(r.rows, t.carried(cause)) {
			return nil, 0, r.err
		}
		delete(t.rejected, cause.From)
	}
	tables, draining := maps.Clone(t.tables), maps.Clone(t.draining)
	edit(tables, draining)
	b, ignored, err := t.build(tables, draining)
	if err != nil {
		return nil, 0, err
	}
	next, err := serve(b, t.current, t.number+1)
	if err != nil {
		return nil, 0, err
	}
	changes := 0
	for url := range next.versions {
		changes += len(next.changed(t.current, url))
	}
	t.tables, t.draining = tables, draining
	if changes == 0 {
		return nil, 0, nil
	}
	if ignored > 0 {
		t.o.Metrics.Count(Ignored, "no-split", ignored)
	}
	t.number++
	t.current, t.last = next, cause
	return next, changes, t.offer()
}

// await waits until clients took a snapshot or one refused it. Silence is consent,
// until it is broken.
func (t *Target) await(ctx context.Context, mine *served, cause shares.Table) error {
	timer := t.o.Clock.NewTimer(t.o.Wait)
	defer timer.Stop()
	for {
		t.mu.Lock()
		current, news := t.current, t.heardOf
		waiting, _ := t.waiting()
		rejection := t.rejected[cause.From]
		t.confirm()
		t.mu.Unlock()
		switch {
		case current != mine:
			return errors.Join(ErrRefused, rejection.err)
		case waiting == 0:
			return nil
		}
		select {
		case <-news:
		case <-timer.C():
			t.o.Metrics.Count(Silent, "", int64(waiting))
			return nil
		case <-ctx.Done():
			return nil // it is served; who is still to answer is known
		}
	}
}

// Put serves a snapshot with a table's weights.
func (t *Target) Put(ctx context.Context, table shares.Table) (changes int, err error) {
	if err := table.Check(); err != nil {
		return 0, err
	}
	return t.change(ctx, table, func(tables map[string]shares.Table, _ map[shares.Replica]bool) { tables[table.From] = table })
}

// Clear serves a snapshot with the base's weights for a calling component.
func (t *Target) Clear(ctx context.Context, from string) error {
	_, err := t.change(ctx, shares.Table{From: from}, func(tables map[string]shares.Table, _ map[shares.Replica]bool) { delete(tables, from) })
	return err
}

// Observe returns the shares that are set, drains apart.
func (t *Target) Observe(_ context.Context, from string) ([]shares.Row, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, _, err := t.build(t.tables, nil)
	if err != nil {
		return nil, err
	}
	var rows []shares.Row
	for _, s := range t.splits(func(s *Split) bool { return s.Link.From == from && !s.Writes }) {
		split, err := s.shares(&b)
		if err != nil {
			return nil, err
		}
		rows = append(rows, router.Shown(s.Link, split))
	}
	return rows, nil
}

// Ready is nil if a replica is in the configuration, isn't draining, and
// Options.Ready has nothing against it.
func (t *Target) Ready(ctx context.Context, r shares.Replica) error {
	if err := t.known(r); err != nil {
		return err
	}
	t.mu.Lock()
	draining := t.draining[r]
	t.mu.Unlock()
	if draining {
		return fmt.Errorf("%.80q at %.80q drains: %w", r.Component, r.Site, router.ErrNotReady)
	}
	if t.o.Ready == nil {
		return nil
	}
	return t.o.Ready(ctx, r)
}

func (t *Target) known(r shares.Replica) error {
	if len(t.splits(func(s *Split) bool { return s.Link.To == r.Component && s.sites()[r.Site] != "" })) == 0 {
		return fmt.Errorf("nothing stands for %.80q at %.80q: %w", r.Component, r.Site, shares.ErrAbsent)
	}
	return nil
}

// Drain takes the weight of a replica away and waits until nothing runs there, as
// Options.Running says. Without it ErrRemaining, with −1: nobody knows.
func (t *Target) Drain(ctx context.Context, r shares.Replica) (remaining int, err error) {
	if err := t.known(r); err != nil {
		return 0, err
	}
	mark := func(_ map[string]shares.Table, draining map[shares.Replica]bool) { draining[r] = true }
	// Clients are waited for beyond ctx too, as long as Options.Wait says: what they
	// have not heard of does not drain.
	if _, err := t.change(context.WithoutCancel(ctx), shares.Table{}, mark); err != nil {
		return 0, err
	}
	return router.Emptied(ctx, t.o.Clock, r, t.o.Running)
}

// Undrain gives a replica its weight again.
func (t *Target) Undrain(ctx context.Context, r shares.Replica) error {
	mark := func(_ map[string]shares.Table, draining map[shares.Replica]bool) { delete(draining, r) }
	_, err := t.change(ctx, shares.Table{}, mark)
	return err
}

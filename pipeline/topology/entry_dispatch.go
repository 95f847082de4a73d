package topology

import (
	"cmp"
	"context"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"penstock/consumers/executor"
	"penstock/consumers/executor/dispatcher"
	"penstock/consumers/executor/dispatcher/claims"
	"penstock/consumers/executor/inforce"
	"penstock/infra/clock"
	"penstock/infra/publisher"
	"penstock/pipeline/config"
	"penstock/pipeline/dispatching"
	"penstock/producers/entry/upstream"
	"penstock/schemas/control"
)

// dispatch is the switch of a site in its entry point, with what follows the tables of
// servers for it and shares the servers with other entry points.
type dispatch struct {
	*dispatching.Dispatcher
	claims *claims.Claims
	target *dispatcher.Target
	ready  string // path that says whether a server is ready; empty: that it takes a connection
	site   string
	pool   *upstream.Pool // once there is one
}

// newDispatch makes the switch; nil if the configuration dispatches nothing.
func (e *Entry) newDispatch(v *alone, p *publisher.Publisher) (_ *dispatch, err error) {
	if !e.Config.Dispatches() {
		return nil, nil
	}
	s := &e.Config.Servers
	d := &dispatch{site: e.Site}
	if s.Switching.Policy != config.SwitchNone {
		d.ready = s.Switching.Ready
	}
	o := dispatcher.Options{
		Site: e.Site, Policy: s.Policy, Zone: s.Zone, InService: s.InService, Queue: s.Queue, Ramp: noneIfZero(s.Ramp.Std()), Trial: noneIfZero(s.Trial.Std()),
		Seed: xxhash.Sum64String(e.Name), Logger: e.part("dispatcher"), Registerer: v.registry,
	}
	if !e.Silent {
		o.Gauges = p
	}
	co := claims.Options{Client: v.client, Name: e.Name, Site: e.Site, Logger: e.part("claims"), Registerer: v.registry}
	for _, zone := range e.Config.ZonesOf(e.Site) {
		z := dispatcher.Zone{Name: zone.Name}
		for _, name := range zone.Servers {
			z.Servers = append(z.Servers, dispatcher.Server{Name: name})
			co.Servers = append(co.Servers, claims.Server{Name: name, Zone: zone.Name, M: s.InService})
		}
		o.Zones = append(o.Zones, z)
	}
	for i, name := range s.ClassNames() {
		k := s.Classes[name]
		o.Classes = append(o.Classes, dispatcher.Class{Name: name, Limit: k.TMax.Std(), Penalty: k.Penalty, Dynamic: !s.IsStatic(name), Impact: uint8(min(i, 255))})
	}
	if d.claims, err = claims.New(co); err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	o.Shares, o.Others = d.claims, others{d.claims}
	if d.Dispatcher, err = dispatching.New(o); err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	d.claims.Observe(d.Site().Loads, func() uint64 { return d.Site().Table().Epoch })
	d.target, err = dispatcher.NewTarget(d.Site(), inforce.Options{
		File: e.dir("servers.json"), History: executor.History(v.client, control.Servers), Logger: e.part("servers"),
		Metrics: executorMeter{v.metrics, control.Servers},
	})
	if err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	return d, nil
}

// with makes the pool of the site's servers, and has it ask the switch. Servers that go
// on and off are asked whether they are ready as the server switch asks them: one that
// only takes connections yet would get requests.
func (d *dispatch) with(o upstream.Options) (*upstream.Pool, error) {
	for i := range o.Servers {
		o.Servers[i].Name = config.ServerName(o.Servers[i].URL)
	}
	o.Dispatcher = d.Dispatcher
	o.Health.Path = cmp.Or(o.Health.Path, d.ready)
	pool, err := upstream.New(o)
	if err != nil {
		return nil, err
	}
	d.pool = pool
	if err := d.Bind(pool, o.Servers); err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	return pool, nil
}

// start starts what follows the tables and shares the servers with other entry points.
func (d *dispatch) start(v *alone, role string) {
	if _, err := d.target.Restore(); err != nil {
		v.metrics.SetAside.Inc(string(control.Servers), "kept-table")
		v.Logger.Warn().Err(err).Msg("the table of servers of before the start is not in force again; the bus has it")
	}
	f := &following{}
	v.watchTables("tables of servers", f)
	v.parts.Start("servers", func(ctx context.Context) error {
		return v.execute(ctx, f, executor.Options{Target: d.ordered(v), Role: role, Own: true, Workers: orderWorkers, Logger: v.part("servers")})
	})
	v.parts.Start("table of servers", d.target.Run)
	v.parts.Start("gauges", d.Site().Run)
	v.parts.Start("claims", d.claims.Run)
}

// ordered is the target, with tables in their order.
func (d *dispatch) ordered(v *alone) *ordered {
	return &ordered{
		Target: d.target, site: d.site, clock: clock.System(), log: v.part("servers"),
		well: func() []string { return wellOf(d.pool) }, ready: d.pool.Ready,
	}
}

// others are the dispatchers of other entry points.
type others struct{ *claims.Claims }

// Zone implements dispatcher.Others.
func (o others) Zone(name string) (dispatcher.Load, bool) {
	l, some := o.Claims.Zone(name)
	return dispatcher.Load(l), some
}

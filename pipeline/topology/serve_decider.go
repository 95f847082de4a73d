package topology

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"penstock/consumers/decider"
	"penstock/consumers/decider/placement"
	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/pipeline/config"
	"penstock/schemas/control"
)

const (
	// fenceWait is how long a decider that was fenced stays out of the way.
	fenceWait = time.Second
	// stopWithin bounds the snapshot of a decider that stops.
	stopWithin = 10 * time.Second
)

// deciding runs the deciders of a kind, one after another.
type deciding struct {
	*serving
	kind   control.Kind
	client *bus.Client
	// now is the one that runs; nil while a fence is waited out.
	now atomic.Pointer[decider.Decider]
}

// kindsOf are those that a configuration steers, in the order in which windows that
// close together are decided.
func kindsOf(cfg *config.Config) []control.Kind {
	kinds := []control.Kind{control.Placement}
	if cfg.Splits() {
		kinds = append(kinds, control.Split)
	}
	if cfg.Dispatches() {
		kinds = append(kinds, control.Servers)
	}
	if cfg.Codes() {
		kinds = append(kinds, control.Coding)
	}
	return kinds
}

// startDeciders starts one decider for each kind that the configuration steers.
func (v *serving) startDeciders(ctx context.Context) error {
	for _, kind := range kindsOf(v.Config) {
		client, err := v.bus.Client(ctx, "decider-"+string(kind))
		if err != nil {
			return err
		}
		d := &deciding{serving: v, kind: kind, client: client}
		// What cannot work fails the start, not a part some time later.
		first, err := d.make(ctx)
		if err != nil {
			return err
		}
		v.watch("decider of "+string(kind), d.waiting)
		v.parts.Start("decider of "+string(kind), func(ctx context.Context) error { return d.run(ctx, first) })
	}
	return nil
}

// make makes a decider that knows nothing yet.
func (d *deciding) make(ctx context.Context) (*decider.Decider, error) {
	o := decider.Options{
		Client: d.client, Mode: control.Advise, Purpose: bus.Serve, StopWithin: stopWithin,
		Metrics: deciderMeter{d.metrics}, Logger: d.Logger.With().Str("kind", string(d.kind)).Logger(),
	}
	if d.kind != control.Placement {
		t, err := tablesOf(d.Config, d.kind)
		if err != nil {
			return nil, err
		}
		o.Config, o.Factory, o.TTL = t.config, t.factory, t.ttl
		return decider.New(o)
	}
	// Where data was before the first decision is read anew: another may have made
	// that decision.
	imported, err := importedLocations(ctx, d.client)
	if err != nil {
		return nil, err
	}
	policy, err := placement.New(placementConfig(d.Config, placement.Optimal, nil, imported))
	if err != nil {
		return nil, err
	}
	o.Config, o.Factory, o.TTL = policy.Config(), placementFactory, d.Config.Placement.ValidFor()
	return decider.New(o)
}

// run decides until the context ends. A decider that another has fenced is done
// for: what it knew is no longer so. The next one starts from scratch, with what
// the other has written, as a process that starts again would; two who both
// decide are safe, only slow. Every other failure is the process's own.
func (d *deciding) run(ctx context.Context, one *decider.Decider) error {
	for {
		d.now.Store(one)
		err := one.Run(ctx)
		d.now.Store(nil)
		if !errors.Is(err, decider.ErrFenced) || ctx.Err() != nil {
			return err
		}
		d.metrics.Retries.Inc("decider of "+string(d.kind), "fenced")
		d.Logger.Warn().Err(err).Str("kind", string(d.kind)).Dur("wait", fenceWait).Msg("fenced: another decider has taken over; starting again from what it has written")
		if one, err = d.again(ctx); err != nil || one == nil {
			return err
		}
	}
}

// again makes the next decider as soon as the bus allows; nil if the context
// ends first.
func (d *deciding) again(ctx context.Context) (one *decider.Decider, err error) {
	for clock.System().Sleep(ctx, fenceWait) == nil {
		if one, err = d.make(ctx); err == nil || errors.Is(err, decider.ErrOptions) {
			return one, err
		}
		d.Logger.Warn().Err(err).Dur("wait", fenceWait).Msg("the decider cannot start again yet")
	}
	return nil, nil
}

// waiting says what keeps decisions from being made, "" if nothing.
func (d *deciding) waiting() string {
	one := d.now.Load()
	if one == nil {
		return "not running: it was fenced by another, or has ended"
	}
	s := one.Status()
	deciderMeter{d.metrics}.Stale(s.Kind, s.Stale(clock.System().Now()))
	switch s.Phase {
	case decider.Deciding:
		return ""
	case decider.Failed:
		return "failed: " + s.Err.Error()
	default:
		return string(s.Phase)
	}
}

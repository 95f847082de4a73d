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
	"penstock/schemas/control"
)

const (
	// fenceWait is how long a decider that was fenced stays out of the way.
	fenceWait = time.Second
	// stopWithin bounds the snapshot of a decider that stops.
	stopWithin = 10 * time.Second
)

// deciding runs the decider of placement, one after another.
type deciding struct {
	*serving
	client *bus.Client
	// now is the one that runs; nil while a fence is waited out.
	now atomic.Pointer[decider.Decider]
}

func (v *serving) startDecider(ctx context.Context) error {
	client, err := v.bus.Client(ctx, "decider")
	if err != nil {
		return err
	}
	d := &deciding{serving: v, client: client}
	// What cannot work fails the start, not a part some time later.
	first, err := d.make(ctx)
	if err != nil {
		return err
	}
	v.watch("decider of placement", d.waiting)
	v.parts.Start("decider", func(ctx context.Context) error { return d.run(ctx, first) })
	return nil
}

// make makes a decider that knows nothing yet. Where data was before the first
// decision is read anew: another may have made that decision.
func (d *deciding) make(ctx context.Context) (*decider.Decider, error) {
	imported, err := importedLocations(ctx, d.client)
	if err != nil {
		return nil, err
	}
	policy, err := placement.New(placementConfig(d.Config, placement.Optimal, nil, imported))
	if err != nil {
		return nil, err
	}
	return decider.New(decider.Options{
		Client: d.client, Config: policy.Config(), Factory: placementFactory, Mode: control.Advise, Purpose: bus.Serve,
		TTL: d.Config.Placement.ValidFor(), StopWithin: stopWithin, Metrics: deciderMeter{d.metrics}, Logger: d.Logger,
	})
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
		d.metrics.Retries.Inc("decider of "+string(control.Placement), "fenced")
		d.Logger.Warn().Err(err).Dur("wait", fenceWait).Msg("fenced: another decider has taken over; starting again from what it has written")
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

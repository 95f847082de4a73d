package topology

import (
	"context"
	"sync/atomic"
	"time"

	"penstock/consumers/executor"
	"penstock/infra/clock"
)

// followAgain is the pause after an executor in the data plane has failed.
const followAgain = time.Second

// following is what is known of the tables that a target follows.
type following struct {
	now   atomic.Pointer[executor.Executor]
	known atomic.Bool
}

// Known says whether what is in force is known: from the bus, or from before the
// process was started.
func (f *following) Known() bool {
	if x := f.now.Load(); x != nil && x.Ready() {
		f.known.Store(true)
	}
	return f.known.Load()
}

// watchTables makes readiness wait until the tables in force are known.
func (v *alone) watchTables(what string, f *following) {
	v.watch(what, func() string {
		if x := f.now.Load(); !v.client.Connected() || x != nil && x.Ready() {
			return "" // Without the bus what is in force stays: that is no reason to serve nobody.
		}
		return "the tables in force are not known yet, or commands are pending and none is delivered"
	})
}

// executing starts a part that brings the commands of a target's kind into force there, by
// an executor of its own: role is its name among all of them. What the bus or the target
// do to the executor never ends the process: what is in force stays, and it begins anew.
func (v *alone) executing(part, role string, target executor.Target, f *following) {
	v.parts.Start(part, func(ctx context.Context) error {
		return v.execute(ctx, f, executor.Options{Target: target, Role: role, Own: true, Logger: v.part(part)})
	})
}

// execute runs executors, one after another, until the context ends.
func (v *alone) execute(ctx context.Context, f *following, o executor.Options) error {
	kind := o.Target.Kind()
	o.Client, o.Name, o.Metrics = v.client, v.Name, executorMeter{v.metrics, kind}
	for {
		if v.client.Ready(ctx) != nil {
			return nil //nolint:nilerr // The context has ended.
		}
		x, err := executor.New(o)
		if err != nil {
			return err
		}
		f.now.Store(x)
		err = x.Run(ctx)
		if ctx.Err() != nil {
			return err
		}
		v.metrics.Retries.Inc("executor of "+string(kind), "again")
		o.Logger.Warn().Err(err).Dur("wait", followAgain).Msg("tables cannot be followed: what is in force stays, and they are asked for again")
		if clock.System().Sleep(ctx, followAgain) != nil {
			return nil //nolint:nilerr // The context has ended.
		}
	}
}

package topology

import (
	"context"
	"sync/atomic"
	"time"

	"penstock/consumers/executor"
	"penstock/consumers/executor/router"
	"penstock/infra/clock"
	"penstock/schemas/control"
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

// followSplit keeps a target at the split tables in force, by an executor of its own:
// role is its name among all of them, every is how often the target is looked at (0:
// as often as a Keeper does). What the bus or the target do to the executor never ends
// the process: what is in force stays, and it begins anew. Tables that were in force
// before the process was started are again when it returns.
func (v *alone) followSplit(ctx context.Context, role string, target router.Target, every time.Duration) (*following, error) {
	log := v.part("split of " + target.Name())
	keeper, err := router.NewKeeper(router.KeeperOptions{
		Every: every, History: router.History(v.client), Logger: log, Metrics: executorMeter{v.metrics, control.Split}, Target: target,
	})
	if err != nil {
		return nil, err
	}
	f := &following{}
	memory := splitMemory{file: v.dir("split-" + target.Name() + ".json"), keeper: keeper, failed: func(err error) {
		v.metrics.SetAside.Inc(string(control.Split), "kept-table")
		log.Warn().Err(err).Msg("the tables in force cannot be kept for a restart")
	}}
	switch some, err := memory.restore(ctx); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		v.metrics.SetAside.Inc(string(control.Split), "kept-table")
		log.Warn().Err(err).Msg("the tables of before the start are not in force again; the bus has them")
	default:
		f.known.Store(some)
	}
	v.watch("split tables of "+target.Name(), func() string {
		if x := f.now.Load(); !v.client.Connected() || x != nil && x.Ready() {
			return "" // Without the bus what is in force stays: that is no reason to serve nobody.
		}
		return "the tables in force are not known yet, or commands are pending and none is delivered"
	})
	v.parts.Start("split of "+target.Name(), func(ctx context.Context) error {
		for {
			if v.client.Ready(ctx) != nil {
				return nil //nolint:nilerr // The context has ended.
			}
			x, err := executor.New(executor.Options{
				Client: v.client, Target: keeper, Name: v.Name, Role: role, Own: true, Metrics: executorMeter{v.metrics, control.Split}, Logger: log,
			})
			if err != nil {
				return err
			}
			f.now.Store(x)
			err = x.Run(ctx)
			if ctx.Err() != nil {
				return err
			}
			v.metrics.Retries.Inc("executor of "+string(control.Split), "again")
			log.Warn().Err(err).Dur("wait", followAgain).Msg("tables cannot be followed: what is in force stays, and they are asked for again")
			if clock.System().Sleep(ctx, followAgain) != nil {
				return nil //nolint:nilerr // The context has ended.
			}
		}
	})
	v.parts.Start("tables of "+target.Name(), keeper.Run)
	v.parts.Start("memory of "+target.Name(), memory.run)
	return f, nil
}

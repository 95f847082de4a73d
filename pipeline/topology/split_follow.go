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

// followSplit keeps a target at the split tables in force, by an executor of its own:
// role is its name among all of them. What the bus or the target do to the executor
// never ends the process: what is in force stays, and it begins anew.
func (v *alone) followSplit(role string, target router.Target) error {
	log := v.part("split of " + target.Name())
	keeper, err := router.NewKeeper(router.KeeperOptions{
		History: router.History(v.client), Logger: log, Metrics: executorMeter{v.metrics, control.Split}, Target: target,
	})
	if err != nil {
		return err
	}
	var now atomic.Pointer[executor.Executor]
	v.watch("split tables of "+target.Name(), func() string {
		if x := now.Load(); !v.client.Connected() || x != nil && x.Ready() {
			return "" // Without the bus what is in force stays: that is no reason to serve nobody.
		}
		return "the tables in force are not known yet, or commands are pending and none is delivered"
	})
	v.parts.Start("split of "+target.Name(), func(ctx context.Context) error {
		for {
			if v.client.Ready(ctx) != nil {
				return nil // The context has ended.
			}
			x, err := executor.New(executor.Options{
				Client: v.client, Target: keeper, Name: v.Name, Role: role, Own: true, Metrics: executorMeter{v.metrics, control.Split}, Logger: log,
			})
			if err != nil {
				return err
			}
			now.Store(x)
			err = x.Run(ctx)
			if ctx.Err() != nil {
				return err
			}
			v.metrics.Retries.Inc("executor of "+string(control.Split), "again")
			log.Warn().Err(err).Dur("wait", followAgain).Msg("tables cannot be followed: what is in force stays, and they are asked for again")
			if clock.System().Sleep(ctx, followAgain) != nil {
				return nil
			}
		}
	})
	v.parts.Start("tables of "+target.Name(), keeper.Run)
	return nil
}

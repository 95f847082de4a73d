package topology

import (
	"context"
	"time"

	"penstock/consumers/executor/router"
	"penstock/infra/wholefile"
	"penstock/schemas/control"
)

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
	file := wholefile.JSON[[]keptTable]{Name: v.dir("split-" + target.Name() + ".json")}
	memory := splitMemory{file: file, keeper: keeper, failed: func(err error) {
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
	v.watchTables("split tables of "+target.Name(), f)
	v.executing("split of "+target.Name(), role, keeper, f)
	v.parts.Start("tables of "+target.Name(), keeper.Run)
	v.parts.Start("memory of "+target.Name(), memory.run)
	return f, nil
}

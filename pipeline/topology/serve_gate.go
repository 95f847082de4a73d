package topology

import (
	"context"

	"penstock/infra/gate"
)

// gate puts the stores of sites at whose entry points moves hold writes behind a
// barrier, and returns what runs that; nil if there is no such site.
func (v *serving) gate(ctx context.Context, stores Stores) (Stores, func(context.Context) error, error) {
	behind := Stores{}
	var barrier *gate.Barrier
	for site, store := range stores {
		behind[site] = store
		if !gated(v.Config, site) {
			continue
		}
		if barrier == nil {
			client, err := v.bus.Client(ctx, "gate")
			if err != nil {
				return nil, nil, err
			}
			if barrier, err = gate.NewBarrier(gate.BarrierOptions{
				Client: client, Name: v.Name, Logger: v.Logger.With().Str("part", "gate").Logger(),
				Count: func(what string, n int64) { v.metrics.StoreEvents.Add(n, "", what) },
			}); err != nil {
				return nil, nil, err
			}
		}
		behind[site] = barrier.Store(site, store, v.Config.Entry.Barrier == "always")
	}
	if barrier == nil {
		return behind, nil, nil
	}
	return behind, barrier.Run, nil
}

package live

import (
	"context"
	"fmt"

	"penstock/consumers/decider/coding/threshold"
	"penstock/consumers/executor/coder/codes"
	"penstock/consumers/executor/coder/queue"
	"penstock/pipeline/experiment/coding/simcoder"
)

// keepsUp is the most of a code's capacity at which it is simulated under the load:
// beyond it delays hang on how long a run lasts, and what shows is what it carries. The
// model's capacity is for requests whose tasks all begin together, and so more than is
// carried.
const keepsUp = 0.9

// simulate runs the simulation of each policy and load.
func (o *Options) simulate(ctx context.Context, r *Result) error {
	for i := range r.Points {
		p := &r.Points[i]
		x := policies[i%len(policies)]
		table, err := o.table(x)
		if err != nil {
			return err
		}
		chooser, err := codes.New(codes.Options{Default: table})
		if err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		options := simcoder.Options{
			Seed: o.Seed, Connections: connections, Chooser: chooser, Op: queue.Read, Law: law(o.model(threshold.DefaultRead)),
			Bytes: []int64{int64(o.Bytes)}, Warm: 1000, Requests: o.Simulated,
		}
		keeps := x.code.K == 0 || p.PerSecond <= keepsUp*o.capacity(x.code.N, x.code.K)
		if keeps {
			options.Rate = simcoder.Steady(p.PerSecond)
		} else {
			options.Waiting, options.Requests = maxWaiting, o.Simulated/4
		}
		out, err := simcoder.Run(ctx, options)
		if err != nil {
			return fmt.Errorf("%s at %d %%: %w", x.name, p.Percent, err)
		}
		p.Simulated = &Simulated{KeepsUp: keeps, Served: out.Throughput(), Requests: out.Requests, Figures: out.Figures, Asked: float64(out.Tasks) / float64(out.Requests)}
		for k := 1; k <= kMax; k++ {
			share := 0.0
			if k < len(out.K) {
				share = float64(out.K[k]) / float64(out.Requests)
			}
			p.Simulated.K = append(p.Simulated.K, share)
		}
	}
	return nil
}

package live

import (
	"context"
	"fmt"
	"math"

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

// simulate runs the simulation of each policy and load: as many requests as the coder
// gets, again and again, so that it also says how much such a run varies by chance.
func (o *Options) simulate(ctx context.Context, r *Result) error {
	for i := range r.Points {
		p := &r.Points[i]
		x := policies[i%len(policies)]
		s := &Simulated{KeepsUp: x.code.K == 0 || p.PerSecond <= keepsUp*o.capacity(x.code.N, x.code.K), K: make([]float64, kMax)}
		var squares float64
		for run := range o.Simulated {
			out, err := o.again(ctx, x, o.Loads[i/len(policies)], s.KeepsUp, o.Seed+uint64(run))
			if err != nil {
				return fmt.Errorf("%s at %d %%: %w", x.name, p.Percent, err)
			}
			s.add(out, 1/float64(o.Simulated))
			squares += out.Mean * out.Mean / float64(o.Simulated)
		}
		s.Error = math.Sqrt(max(0, squares-s.Mean*s.Mean))
		p.Simulated = s
	}
	return nil
}

// again is one run of a policy at a load.
func (o *Options) again(ctx context.Context, x policy, l Load, keepsUp bool, seed uint64) (*simcoder.Outcome, error) {
	table, err := o.table(x)
	if err != nil {
		return nil, err
	}
	chooser, err := codes.New(codes.Options{Default: table})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", x.name, err)
	}
	options := simcoder.Options{
		Seed: seed, Connections: connections, Chooser: chooser, Op: queue.Read, Law: law(o.model(threshold.DefaultRead)),
		Bytes: []int64{int64(o.Bytes)}, Warm: l.Warm, Requests: l.Requests,
	}
	if keepsUp {
		options.Rate = simcoder.Steady(o.rate(l))
	} else {
		options.Waiting = maxWaiting
	}
	return simcoder.Run(ctx, options)
}

// add adds a run, of which a part counts.
func (s *Simulated) add(out *simcoder.Outcome, part float64) {
	s.Served += part * out.Throughput()
	s.Asked += part * float64(out.Tasks) / float64(out.Requests)
	s.Mean += part * out.Mean
	s.SD += part * out.SD
	s.P50 += part * out.P50
	s.P90 += part * out.P90
	s.P99 += part * out.P99
	for k := 1; k <= kMax && k < len(out.K); k++ {
		s.K[k-1] += part * float64(out.K[k]) / float64(out.Requests)
	}
}

package coding

import (
	"context"
	"fmt"

	decided "penstock/consumers/decider/coding"
	"penstock/consumers/executor/coder/codes"
	"penstock/consumers/executor/coder/queue"
	"penstock/pipeline/experiment/coding/delays"
	"penstock/pipeline/experiment/coding/simcoder"
	"penstock/schemas/control"
)

// simulated is how many reads the simulation counts at a load.
const simulated = 20_000

// gains are how many times longer reads take under (1,1) than under tofec by the
// simulation of each light load, with the true delays; 0 for other phases.
func (s *show) gains(ctx context.Context) ([]float64, error) {
	out := make([]float64, len(s.phases))
	for i := range s.phases {
		p := &s.phases[i]
		if p.Slower || p.Percent > lightest {
			continue
		}
		var means [2]float64
		for k, policy := range []control.CodingPolicy{control.CodingStatic, control.CodingTOFEC} {
			mean, err := s.simulate(ctx, policy, float64(p.Percent)/100*s.capacity(1, 1))
			if err != nil {
				return nil, fmt.Errorf("simulation of %s: %w", p.Name, err)
			}
			means[k] = mean
		}
		out[i] = means[0] / means[1]
	}
	return out, nil
}

// simulate is the mean delay of reads at a rate, ms.
func (s *show) simulate(ctx context.Context, policy control.CodingPolicy, rate float64) (float64, error) {
	m, _ := s.truth(false)
	table, _, err := decided.Default(decided.Config{
		Policy: policy, Coders: []decided.Coder{{Name: "simulated", Read: &m}}, Connections: connections, KMax: kMax, RMax: rMax, SizeMB: sizeMB,
	}, "simulated")
	if err != nil {
		return 0, err
	}
	chooser, err := codes.New(codes.Options{Default: table})
	if err != nil {
		return 0, err
	}
	out, err := simcoder.Run(ctx, simcoder.Options{
		Seed: s.Seed, Connections: connections, Chooser: chooser, Op: queue.Read, Bytes: []int64{objectBytes},
		Law:  delays.Law{Kind: delays.Exponential, Delta: m.Delta, DeltaPerMB: m.DeltaPerMB, Psi: m.Psi, PsiPerMB: m.PsiPerMB},
		Rate: simcoder.Steady(rate), Warm: 500, Requests: simulated,
	})
	if err != nil {
		return 0, err
	}
	return out.Mean, nil
}

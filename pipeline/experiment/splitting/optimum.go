package splitting

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"penstock/consumers/decider/split/solve/instances"
)

// Optimum is greedy against the exact optimum on random instances.
type Optimum struct {
	Instances int `json:"instances"`
	// Worse is how many of the optimum's plans cost more than greedy's: none may.
	Worse int `json:"optimum_worse"`
	// Proved is how many optima meet their bound.
	Proved int `json:"proved"`
	// Constant is of instances with constant delays, Curved of those in which
	// delays rise with load, which greedy does not know.
	Constant Ratios `json:"constant_delays"`
	Curved   Ratios `json:"delays_that_rise_with_load"`
	All      Ratios `json:"all"`
}

// Ratios is the distribution of greedy's cost over the optimum's.
type Ratios struct {
	Instances int `json:"instances"`
	// Same is how many cost the same.
	Same   int     `json:"same"`
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	Most   float64 `json:"max"`
}

// same is the difference that counts as none: the optimum's numbers are exact to
// about so much.
const same = 1e-6

// against compares the two on all instances.
func (p *Instances) against(ctx context.Context) (Optimum, error) {
	r := rand.New(rand.NewPCG(5, p.Seed))
	var constant, curved []float64
	var out Optimum
	for i := range p.Count {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		s := instances.Small(r, i)
		in := instances.Draw(r, s)
		best, err := in.Optimal()
		if err != nil {
			return out, fmt.Errorf("instance %d: %w", i, err)
		}
		g, o := in.Cost(in.Greedy()), in.Cost(best)
		if o > g*(1+same) {
			out.Worse++
		}
		if best.Exact {
			out.Proved++
		}
		if s.Curved {
			curved = append(curved, g/o)
		} else {
			constant = append(constant, g/o)
		}
	}
	out.Instances = p.Count
	out.Constant, out.Curved, out.All = ratios(constant), ratios(curved), ratios(slices.Concat(constant, curved))
	return out, nil
}

func ratios(of []float64) Ratios {
	out := Ratios{Instances: len(of)}
	if len(of) == 0 {
		return out
	}
	slices.Sort(of)
	at := func(q float64) float64 { return math.Round(of[int(math.Ceil(q*float64(len(of))))-1]*1e4) / 1e4 }
	out.Same, _ = slices.BinarySearch(of, 1+same)
	out.Median, out.P90, out.P99, out.Most = at(0.5), at(0.9), at(0.99), at(1)
	return out
}

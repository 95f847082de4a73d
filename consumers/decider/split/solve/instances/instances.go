// Package instances draws random instances of package solve: what greedy and the
// optimum are compared on, in tests and in the experiment. The same generator gives
// the same instances. It has no state and no failures: what is drawn is an
// instance.
package instances

import (
	"math"
	"math/rand/v2"

	"penstock/consumers/decider/split/solve"
)

// Shape of a random instance.
type Shape struct {
	Components, Sites int
	// Tree: no component has two callers.
	Tree bool
	// Curved: three of four replicas get slower with load.
	Curved bool
	// Slack is the capacity of all replicas of a component over its calls; below
	// one it is overloaded.
	Slack float64
	// Missing is the share of replicas and links that are not there.
	Missing float64
}

// Draw makes an instance. Component 0 is where most sources enter.
func Draw(r *rand.Rand, s Shape) *solve.Instance {
	m := s.Sites
	in := &solve.Instance{Sites: m, Components: s.Components}
	for c := range s.Components * m {
		in.Service = append(in.Service, 1_000+r.Float64()*50_000)
		in.Capacity = append(in.Capacity, math.Inf(1))
		if c%m != 0 && r.Float64() < s.Missing {
			in.Service[c] = math.Inf(1)
		}
	}
	link := func(from, to int) float64 {
		switch {
		case from == to:
			return 200 + r.Float64()*500
		case from != 0 && to != 0 && r.Float64() < s.Missing:
			return math.Inf(1)
		}
		return 5_000 + r.Float64()*60_000
	}
	for n := range m {
		var cost []float64
		for p := range m {
			cost = append(cost, link(n, p))
		}
		in.Choices = append(in.Choices, solve.Choice{From: solve.Source, Site: n, Rate: 1 + r.Float64()*100, Legs: []solve.Leg{{To: 0, Ratio: 1, Cost: cost}}})
	}
	call := func(from, to int) {
		var cost []float64
		for n := range m {
			for p := range m {
				cost = append(cost, link(n, p))
			}
		}
		in.Choices = append(in.Choices, solve.Choice{From: from, Legs: []solve.Leg{{To: to, Ratio: 0.2 + 2*r.Float64(), Cost: cost}}})
	}
	for to := 1; to < s.Components; to++ {
		from := r.IntN(to)
		call(from, to)
		if other := r.IntN(to); !s.Tree && other != from && r.IntN(2) == 0 {
			call(other, to)
		}
	}
	if err := in.Prepare(); err != nil {
		panic(err)
	}
	for j := range s.Components {
		var sum float64
		for n := range m {
			w := 0.2 + r.Float64()
			in.Capacity[j*m+n] = w
			if !math.IsInf(in.Service[j*m+n], 1) {
				sum += w
			}
		}
		for n := range m {
			in.Capacity[j*m+n] *= in.Demand(j) * s.Slack / sum
		}
	}
	if s.Curved {
		in.Curves = make([]solve.Curve, s.Components*m)
		for c := range in.Curves {
			if math.IsInf(in.Service[c], 1) || r.IntN(4) == 0 {
				continue
			}
			power := []int{1, 2, 4}[r.IntN(3)]
			in.Curves[c] = solve.Curve{
				Base: in.Service[c], Power: power,
				Factor: in.Service[c] * 2 * r.Float64() / math.Pow(in.Demand(c/m)/float64(m), float64(power)),
			}
		}
	}
	if err := in.Prepare(); err != nil {
		panic(err)
	}
	return in
}

// Small draws the shape of the i-th of many small instances: 2 to 6 components at 2
// to 4 sites, trees and graphs, with 0.7 to 2.2 times the capacity that their calls
// need, every fourth with delays that rise with load.
func Small(r *rand.Rand, i int) Shape {
	return Shape{Components: 2 + r.IntN(5), Sites: 2 + r.IntN(3), Tree: r.IntN(2) == 0, Curved: i%4 == 3, Slack: 0.7 + r.Float64()*1.5}
}

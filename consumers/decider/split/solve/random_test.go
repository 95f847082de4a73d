package solve_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"penstock/consumers/decider/split/solve"
)

// shape of a random instance.
type shape struct {
	components, sites int
	tree              bool
	curved            bool
	// slack is the capacity of all replicas of a component over its calls; below
	// one it is overloaded.
	slack float64
	// missing is the share of replicas and links that are not there.
	missing float64
}

// random makes an instance. Component 0 is where most sources enter.
func random(r *rand.Rand, s shape) *solve.Instance {
	m := s.sites
	in := &solve.Instance{Sites: m, Components: s.components}
	for c := range s.components * m {
		in.Service = append(in.Service, 1_000+r.Float64()*50_000)
		in.Capacity = append(in.Capacity, math.Inf(1))
		if c%m != 0 && r.Float64() < s.missing {
			in.Service[c] = math.Inf(1)
		}
	}
	link := func(from, to int) float64 {
		switch {
		case from == to:
			return 200 + r.Float64()*500
		case from != 0 && to != 0 && r.Float64() < s.missing:
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
	for to := 1; to < s.components; to++ {
		from := r.IntN(to)
		call(from, to)
		if other := r.IntN(to); !s.tree && other != from && r.IntN(2) == 0 {
			call(other, to)
		}
	}
	if err := in.Prepare(); err != nil {
		panic(err)
	}
	for j := range s.components {
		var sum float64
		for n := range m {
			w := 0.2 + r.Float64()
			in.Capacity[j*m+n] = w
			if !math.IsInf(in.Service[j*m+n], 1) {
				sum += w
			}
		}
		for n := range m {
			in.Capacity[j*m+n] *= in.Demand(j) * s.slack / sum
		}
	}
	if s.curved {
		in.Curves = make([]solve.Curve, s.components*m)
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

// feasible checks that a plan sends every call somewhere and goes over no
// capacity but by overload.
func feasible(t *testing.T, in *solve.Instance, p *solve.Plan, over bool) {
	t.Helper()
	const eps = 1e-6
	m := in.Sites
	load := make([]float64, len(in.Service))
	for c := range in.Choices {
		ch := &in.Choices[c]
		for i, x := range p.Flow[c] {
			if !(x >= -eps) {
				t.Fatalf("choice %d: flow %v", c, x)
			}
			for _, l := range ch.Legs {
				if x > eps && math.IsInf(l.Cost[i], 1) {
					t.Fatalf("choice %d: %v on a link that is not allowed", c, x)
				}
				load[l.To*m+i%m] += x * l.Ratio
			}
		}
	}
	for r := range load {
		size := 1 + in.Demand(r/m)
		if math.Abs(load[r]-p.Load[r]) > eps*size {
			t.Fatalf("replica %d: load %v, calls %v", r, p.Load[r], load[r])
		}
		if load[r] > eps*size && math.IsInf(in.Service[r], 1) {
			t.Fatalf("replica %d is not there and gets %v", r, load[r])
		}
		if most := in.Capacity[r] * p.Overload[r/m]; !over && load[r] > most+eps*size {
			t.Fatalf("replica %d: load %v, capacity %v", r, load[r], most)
		}
	}
	for c := range in.Choices {
		ch := &in.Choices[c]
		if ch.From == solve.Source {
			var sum float64
			for _, x := range p.Flow[c] {
				sum += x
			}
			if math.Abs(sum+p.Unplaced[c]-ch.Rate) > eps*(1+ch.Rate) {
				t.Fatalf("source %d: %v of %v", c, sum, ch.Rate)
			}
			continue
		}
		for n := range m {
			var sum float64
			for q := range m {
				sum += p.Flow[c][n*m+q]
			}
			if x := p.Load[ch.From*m+n]; math.Abs(sum-x) > eps*(1+x) {
				t.Fatalf("choice %d at %d: %v leave, %v arrive", c, n, sum, x)
			}
		}
	}
}

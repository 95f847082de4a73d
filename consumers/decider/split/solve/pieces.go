package solve

import "math"

// segments is into how many pieces the curve of a replica is cut.
const segments = 8

// pieces is what a replica costs a second against its load: convex, linear
// between the ends, slope[k] from ends[k] to ends[k+1]. The last piece has no end.
type pieces struct {
	ends  []float64 // ends[0] is 0
	slope []float64
}

// at returns the cost (µs a second) of a load.
func (p *pieces) at(load float64) float64 {
	var sum float64
	for k, s := range p.slope {
		upto := load
		if k+1 < len(p.ends) && p.ends[k+1] < load {
			upto = p.ends[k+1]
		}
		sum += float64(s * (upto - p.ends[k]))
		if upto == load {
			break
		}
	}
	return sum
}

// of returns the piece in which a load lies, the lower one at an end.
func (p *pieces) of(load float64) int {
	k := 0
	for k+1 < len(p.ends) && load > p.ends[k+1] {
		k++
	}
	return k
}

// Penalty is the cost of a call over a capacity, in µs: so much that no way
// around is dearer.
func (in *Instance) Penalty() float64 {
	m := in.Sites
	worst := make([]float64, len(in.Service))
	most := 1.0
	for k := len(in.order) - 1; k >= 0; k-- {
		j := in.order[k]
		for n := range m {
			r := j*m + n
			if worst[r] = in.Service[r]; math.IsInf(worst[r], 1) {
				worst[r] = 0
				continue
			}
			if in.curved(r) {
				worst[r] = max(worst[r], in.Curves[r].marginal(in.load[j]))
			}
			for _, c := range in.outs[j] {
				worst[r] += worstLeg(in, &in.Choices[c], n, worst)
			}
			most = max(most, worst[r])
		}
	}
	least := 1.0
	for c := range in.Choices {
		if ch := &in.Choices[c]; ch.From == Source {
			most = max(most, worstLeg(in, ch, 0, worst))
		}
		for _, l := range in.Choices[c].Legs {
			least = min(least, l.Ratio)
		}
	}
	return 100 * most / least
}

// worstLeg is the dearest that a choice from site n can be.
func worstLeg(in *Instance, ch *Choice, n int, worst []float64) float64 {
	var most float64
	for p := range in.Sites {
		var v float64
		for _, l := range ch.Legs {
			if x := l.Cost[n*in.Sites+p]; !math.IsInf(x, 1) {
				v += float64(l.Ratio * (x + worst[l.To*in.Sites+p]))
			}
		}
		most = max(most, v)
	}
	return most
}

func (in *Instance) curved(r int) bool { return in.Curves != nil && in.Curves[r].Power > 0 }

// total is load × delay, in µs a second.
func (c *Curve) total(load float64) float64 {
	x := load
	for range c.Power {
		x *= load
	}
	return float64(c.Base*load) + float64(c.Factor*x)
}

// marginal is what one more call adds to the total at a load.
func (c *Curve) marginal(load float64) float64 {
	x := 1.0
	for range c.Power {
		x *= load
	}
	return c.Base + float64(float64(c.Power+1)*c.Factor*x)
}

// pieces cuts all replicas' costs. Capacities are the scaled ones.
func (in *Instance) pieces(capacity []float64) []pieces {
	out := make([]pieces, len(in.Service))
	penalty := in.Penalty()
	for r := range out {
		p := &out[r]
		p.ends, p.slope = []float64{0}, []float64{in.Service[r]}
		demand := in.load[r/in.Sites]
		if demand == 0 || math.IsInf(in.Service[r], 1) {
			continue
		}
		most := min(capacity[r], demand)
		if in.curved(r) && most > 0 {
			p.slope = p.slope[:0]
			for k := range segments {
				from, to := most*float64(k)/segments, most*float64(k+1)/segments
				p.slope = append(p.slope, (in.Curves[r].total(to)-in.Curves[r].total(from))/(to-from))
				if k > 0 {
					p.ends = append(p.ends, from)
				}
			}
		}
		if capacity[r] >= demand {
			continue
		}
		last := p.slope[len(p.slope)-1]
		if most == 0 {
			p.slope[0] += penalty
			continue
		}
		p.ends, p.slope = append(p.ends, most), append(p.slope, last+penalty)
	}
	return out
}

// Cost is what a plan costs a second: µs of delay of all calls, service by the
// curves, and Penalty for each call over a capacity.
func (in *Instance) Cost(plan *Plan) float64 {
	ps := in.pieces(in.scaled(in.newPlan()))
	var sum float64
	for r, x := range plan.Load {
		if x > 0 {
			sum += ps[r].at(x)
		}
	}
	for c := range in.Choices {
		for i, x := range plan.Flow[c] {
			if x == 0 {
				continue
			}
			for _, l := range in.Choices[c].Legs {
				sum += float64(float64(x*l.Ratio) * l.Cost[i])
			}
		}
	}
	return sum
}

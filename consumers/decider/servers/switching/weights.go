package switching

import (
	"cmp"
	"math"
	"slices"
)

// Resolution is into how many parts the weights of zones are cut: they add up to 1
// exactly, and a zone with a server on has at least one part (P33).
const Resolution = 1000

// fastest is how many times as fast as the slowest zone another is taken for at most.
const fastest = 4.0

// weigh brings the weights of zones on towards the places that are on, times the speed that
// was measured; by at most WeightStep each.
func (r *Rule) weigh(o *Observation) {
	target := r.target(o)
	first, gone := true, false
	for z := range r.m.zones {
		first = first && r.m.zones[z].weight == 0
		gone = gone || target[z] == 0 && r.m.zones[z].weight > 0
	}
	var sum float64
	for z := range r.m.zones {
		w := &r.m.zones[z].weight
		switch step := r.opts.WeightStep; {
		case first || target[z] == 0:
			*w = target[z]
		case gone:
			// The others take over what a zone had whose last server went.
			*w = max(*w, min(target[z], *w+step))
		default:
			*w = min(max(target[z], *w-step), *w+step)
		}
		sum += *w
	}
	for z := range r.m.zones {
		if sum > 0 {
			r.m.zones[z].weight = nano(r.m.zones[z].weight / sum)
		}
	}
}

// without is the weights once some servers get no more requests, which is at once.
func (r *Rule) without(o *Observation, off []int) []float64 {
	if len(off) == 0 {
		return r.shares()
	}
	then := *o
	then.Servers = slices.Clone(o.Servers)
	for _, i := range off {
		then.Servers[i] = Draining
	}
	after := Rule{opts: r.opts, zones: r.zones, m: Memory{zones: slices.Clone(r.m.zones)}}
	after.weigh(&then)
	return after.shares()
}

// target is the shares that the zones should have. Where no server is on, those that are
// starting count, else all: there is always a zone with a weight (P31).
func (r *Rule) target(o *Observation) []float64 {
	out := make([]float64, r.zones)
	for _, counts := range [...]func(State) bool{
		func(s State) bool { return s == On },
		func(s State) bool { return s == Starting },
		func(State) bool { return true },
	} {
		var sum float64
		for i, s := range o.Servers {
			if counts(s) {
				x := &r.opts.Servers[i]
				part := float64(x.Slots) * r.speed(x.Zone)
				out[x.Zone] += part
				sum += part
			}
		}
		if sum > 0 {
			for z := range out {
				out[z] /= sum
			}
			return out
		}
	}
	return out
}

// speed is how fast a zone's places are, 1 if it is not known of each zone: a place whose
// requests take half as long gives twice as many.
func (r *Rule) speed(zone int) float64 {
	slowest := 0.0
	for _, z := range r.m.zones {
		if z.service == 0 {
			return 1
		}
		slowest = max(slowest, z.service)
	}
	return min(fastest, slowest/r.m.zones[zone].service)
}

// shares cuts the weights into parts of Resolution by largest remainder.
func (r *Rule) shares() []float64 {
	out := make([]float64, r.zones)
	parts := make([]int, r.zones)
	order := make([]int, 0, r.zones)
	left := Resolution
	for z := range parts {
		w := r.m.zones[z].weight
		if order = append(order, z); !(w > 0) {
			continue
		}
		parts[z] = max(1, int(math.Floor(w*Resolution)))
		left -= parts[z]
	}
	over := func(z int) float64 { return r.m.zones[z].weight*Resolution - float64(parts[z]) }
	for ; left != 0 && r.weighted(); left -= sign(left) {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(over(b), over(a)) })
		z := order[0]
		if left < 0 {
			// The zones that got a part for nothing take it from the one with the most.
			z = slices.MaxFunc(order, func(a, b int) int { return cmp.Compare(parts[a], parts[b]) })
		}
		parts[z] += sign(left)
	}
	for z := range out {
		out[z] = float64(parts[z]) / Resolution
	}
	return out
}

func (r *Rule) weighted() bool {
	return slices.ContainsFunc(r.m.zones, func(z zoneMemory) bool { return z.weight > 0 })
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

// nano is v to a billionth, so that the last bits of a sum decide nothing.
func nano(v float64) float64 { return math.Round(v*1e9) / 1e9 }

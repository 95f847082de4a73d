package assign

import "math"

// coarse solves a problem whose total load doesn't fit 61 bits in units of so
// many bytes that it does. Loads are rounded down and rooms up, so that the bound
// holds for the bytes as well.
func (p *Problem) coarse(total wide, o Options) *Solution {
	var k uint
	for !total.down(k).less(wideOf(1 << 60)) {
		k++
	}
	q := *p
	q.Load = make([]int64, len(p.Load))
	for i, w := range p.Load {
		q.Load[i] = w >> k
	}
	q.Room = make([]int64, p.Sites)
	for j, r := range p.Room {
		q.Room[j] = r >> k
		if q.Room[j]<<k != r {
			q.Room[j]++
		}
	}
	q.Overload = min(math.Ldexp(p.Overload, int(k)), maxOverload)
	o.Prices = scaled(o.Prices, int(k))
	s := Solve(&q, o)
	s.Prices = scaled(s.Prices, -int(k))
	s.Cost, s.Weight, s.Over = p.Evaluate(s.Site)
	s.Bound = min(s.Bound, s.Cost)
	s.Exact = s.Bound == s.Cost && s.Cost < math.MaxInt64
	return s
}

func scaled(prices []float64, exp int) []float64 {
	out := make([]float64, len(prices))
	for j, v := range prices {
		out[j] = math.Ldexp(v, exp)
	}
	return out
}

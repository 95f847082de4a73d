package assign

import "math"

// Lots of one item for different things have nothing to do with each other.
const (
	drawn    = 0x70656e73746f636b // into the sample
	repicked = 0x6173736967e2b1c5 // from the bucket at a threshold
	thinned  = 0x1f83d9abfb41bd6b // out of too many candidates
)

// sample finds prices with some of the items: half of them drawn evenly, half by
// load, each standing for as many bytes as it had little chance to be drawn
// [Poisson sampling, Horvitz-Thompson weights]. So the heaviest are all in it. It
// is solved exactly. Jitter is the cost a byte below which sites are as good.
func (p *Problem) sample(o Options, total int64) (prices []float64, jitter float64) {
	n, m := len(p.Load), p.Sites
	even, heavy := float64(o.Sample)/2/float64(n), float64(o.Sample)/2/max(float64(total), 1)
	odds := func(i int) float64 { return min(1, even+float64(heavy*float64(p.Load[i]))) }
	picked := gather(p.Workers, n, func(i int) bool {
		return p.Load[i] > 0 && chance(drawn^uint64(i)) < odds(i)
	})
	var stands float64
	for _, i := range picked {
		stands += float64(p.Load[i]) / odds(int(i))
	}
	scale := float64(total) / max(stands, 1)

	rows := make([]int64, len(picked)*m)
	inBlocks(p.Workers, len(picked), func(worker, lo, hi int) {
		for k := lo; k < hi; k++ {
			i := int(picked[k])
			p.Rows(worker, i, i+1, rows[k*m:(k+1)*m])
		}
	})
	jitter = p.jitter(picked, rows, odds, stands)
	f := &flow{
		sites: m, off: []int32{0}, last: p.Overload,
		first: make([]int64, m), second: make([]int64, m), middle: make([]float64, m),
	}
	for k, i := range picked {
		lo, w := len(f.site), float64(p.Load[i])
		for j, c := range rows[k*m : (k+1)*m] {
			if c != Forbidden {
				lot := jitter * chance(uint64(i)*uint64(m)+uint64(j))
				f.site, f.unit = append(f.site, uint16(j)), append(f.unit, float64(c)/w+lot)
			}
		}
		if len(f.site) == lo {
			continue
		}
		f.off = append(f.off, int32(len(f.site)))
		f.load = append(f.load, max(1, int64(math.Round(w/odds(int(i))*scale))))
	}
	for j, r := range p.Room {
		f.first[j], f.second[j] = min(r, 1<<61), min(r, 1<<61)
	}
	warm := make([]float64, m)
	copy(warm, o.Prices)
	f.solve(warm)
	return f.price[:m:m], jitter
}

// jitter is a small part of what a byte loses on average at its second site, or
// of overload if that is nothing.
func (p *Problem) jitter(picked []int32, rows []int64, odds func(int) float64, stands float64) float64 {
	m := p.Sites
	var sum float64
	for k, i := range picked {
		best, next := int64(Forbidden), int64(Forbidden)
		for _, c := range rows[k*m : (k+1)*m] {
			switch {
			case c < best:
				best, next = c, best
			case c < next:
				next = c
			}
		}
		if next != Forbidden {
			sum += float64(next-best) / odds(int(i))
		}
	}
	return max(sum/max(stands, 1)*0x1p-16, float64(p.Overload*0x1p-30))
}

package assign

import (
	"math"
	"slices"
)

// Lots of one item for different things have nothing to do with each other.
const (
	drawn    = 0x70656e73746f636b // into the sample
	repicked = 0x6173736967e2b1c5 // from the bucket at a threshold
	thinned  = 0x1f83d9abfb41bd6b // out of too many candidates
)

// lot is what an item draws for a site, of [0, 1).
func lot(i, j, sites int) float64 { return chance(uint64(i)*uint64(sites) + uint64(j)) }

// sample finds prices with some of the items: half of them drawn evenly, half by
// load, each standing for as many bytes as it had little chance to be drawn
// [Poisson sampling, Horvitz-Thompson weights]. So the heaviest are all in it. It
// is solved exactly, after a sixteenth of it that gives it prices to begin with.
// Jitter is the cost a byte below which sites are as good.
func (p *Problem) sample(o Options, total int64) (prices []float64, jitter float64) {
	m := p.Sites
	odds := p.odds(o.Sample, total)
	picked := gather(p.Workers, len(p.Load), func(i int) bool {
		return p.Load[i] > 0 && chance(drawn^uint64(i)) < odds(i)
	})
	rows := make([]int64, len(picked)*m)
	inBlocks(p.Workers, len(picked), func(worker, lo, hi int) {
		for k := lo; k < hi; k++ {
			i := int(picked[k])
			p.Rows(worker, i, i+1, rows[k*m:(k+1)*m])
		}
	})
	jitter = p.jitter(picked, rows, odds)
	prices = make([]float64, m)
	copy(prices, o.Prices)
	if few := o.Sample / 16; few >= 256 && len(o.Prices) == 0 {
		prices = p.solveSample(picked, rows, p.odds(few, total), jitter, total, prices)
	}
	return p.solveSample(picked, rows, odds, jitter, total, prices), jitter
}

// odds are the items' chances to be in a sample of some size.
func (p *Problem) odds(size int, total int64) func(i int) float64 {
	half := float64(size) / 2
	even, heavy := half/float64(max(len(p.Load), 1)), half/max(float64(total), 1)
	return func(i int) float64 { return min(1, even+float64(heavy*float64(p.Load[i]))) }
}

// solveSample returns the prices of the picked items that are drawn with odds. What they
// stand for is made to add up to the total load.
func (p *Problem) solveSample(
	picked []int32, rows []int64, odds func(i int) float64, jitter float64, total int64, prices []float64,
) []float64 {
	m := p.Sites
	f := &flow{
		sites: m, off: []int32{0}, last: p.Overload,
		first: make([]int64, m), second: make([]int64, m), middle: make([]float64, m),
	}
	var stands float64
	for _, i := range picked {
		if chance(drawn^uint64(i)) < odds(int(i)) {
			stands += float64(p.Load[i]) / odds(int(i))
		}
	}
	scale := float64(total) / max(stands, 1)
	most := float64(slices.Max(p.Room))
	for k, i := range picked {
		if chance(drawn^uint64(i)) >= odds(int(i)) {
			continue
		}
		lo, w := len(f.site), float64(p.Load[i])
		for j, c := range rows[k*m : (k+1)*m] {
			if c != Forbidden {
				f.site = append(f.site, uint16(j))
				f.unit = append(f.unit, float64(c)/w+float64(jitter*lot(int(i), j, m)))
			}
		}
		if len(f.site) > lo {
			f.off = append(f.off, int32(len(f.site)))
			if odds(int(i)) == 1 && most > 0 {
				w = min(w, most) // More than that is over anywhere, and takes no room.
			}
			f.load = append(f.load, max(1, int64(math.Round(w/odds(int(i))*scale))))
		}
	}
	for j, r := range p.Room {
		f.first[j], f.second[j] = min(r, 1<<61), min(r, 1<<61)
	}
	f.solve(prices)
	return f.price[:m:m]
}

// jitter is a small part of what a byte loses on average at its second site, or
// of overload if that is nothing.
func (p *Problem) jitter(picked []int32, rows []int64, odds func(int) float64) float64 {
	m := p.Sites
	var sum, stands float64
	for k, i := range picked {
		stands += float64(p.Load[i]) / odds(int(i))
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

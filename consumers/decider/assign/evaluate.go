package assign

import "math/big"

// Evaluate is what an assignment costs, by the same count as Solution's: weight
// is the sum of the items' costs, over the bytes at each site beyond its room,
// and cost both together. A forbidden site costs all there is.
func (p *Problem) Evaluate(site []uint16) (cost, weight int64, over []int64) {
	q := p.clean()
	type sums struct {
		weight wide
		out    []int64
		_      [64]byte // Workers don't share a cache line.
	}
	by := make([]sums, q.Workers)
	inBlocks(q.Workers, len(site), func(worker, lo, hi int) {
		b := &by[worker]
		if b.out == nil {
			b.out = make([]int64, min(block, len(site))*q.Sites)
		}
		out := b.out[:(hi-lo)*q.Sites]
		q.Rows(worker, lo, hi, out)
		for i := lo; i < hi; i++ {
			if site[i] != NoSite {
				v := out[(i-lo)*q.Sites+int(site[i])]
				if v == Forbidden {
					b.weight = b.weight.plus(wide{1 << 20, 0})
					continue
				}
				b.weight = b.weight.plus(wideOf(v))
			}
		}
	})
	var sum wide
	for _, b := range by {
		sum = sum.plus(b.weight)
	}
	over = make([]int64, q.Sites)
	var beyond wide
	for j, w := range q.used(site) {
		v := w.minus(wideOf(q.Room[j])).greatest(wide{})
		over[j] = v.int64()
		beyond = beyond.plus(v)
	}
	return sum.plus(q.price(beyond)).int64(), sum.int64(), over
}

// used is the load at each site.
func (p *Problem) used(site []uint16) []wide {
	used := make([]wide, p.Sites)
	for i, j := range site {
		if j != NoSite {
			used[j] = used[j].plus(wideOf(p.Load[i]))
		}
	}
	return used
}

// price is what bytes beyond all room cost, rounded up.
func (p *Problem) price(beyond wide) wide {
	if beyond.hi == 0 && beyond.lo < 1<<62 {
		return priceUp(p.Overload, beyond.int64())
	}
	bytes := new(big.Int).SetUint64(uint64(beyond.hi))
	bytes.Lsh(bytes, 64).Add(bytes, new(big.Int).SetUint64(beyond.lo))
	exact := new(big.Rat).SetFloat64(p.Overload)
	exact.Mul(exact, new(big.Rat).SetInt(bytes))
	up, rest := new(big.Int).QuoRem(exact.Num(), exact.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		up.Add(up, big.NewInt(1))
	}
	if !up.IsInt64() {
		return wide{1 << 40, 0} // More than fits a cost, whatever is added.
	}
	return wideOf(up.Int64())
}

// fits reports whether no site is over its room.
func (p *Problem) fits(site []uint16) bool {
	for j, w := range p.used(site) {
		if wideOf(p.Room[j]).less(w) {
			return false
		}
	}
	return true
}

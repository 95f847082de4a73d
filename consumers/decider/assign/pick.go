package assign

import "math"

// buckets of regrets: by their exponent and three bits after it.
const (
	buckets     = 1 << 11
	bucketShift = 20
)

func bucketOf(regret float32) int { return int(math.Float32bits(regret) >> bucketShift) }

// pick returns the items to be looked at again, ascending: at each site that is
// over, those that lose least by their second one until they have so many times the load that has
// to go; for each site that has a price but isn't full, those that would lose
// least by coming; and some at all others, for chains of moves.
func (p *Problem) pick(r *pass, prices []float64, times float64) []int32 {
	out, in := p.quotas(r, prices, times)
	if out == nil {
		return nil
	}
	byOut, byIn := p.histograms(r)
	from, to := thresholds(byOut, out), thresholds(byIn, in)
	picked := gather(p.Workers, len(p.Load), func(i int) bool {
		if r.second[i] == NoSite {
			return false
		}
		b, lot := bucketOf(r.regret[i]), chance(repicked^uint64(i))
		return from[r.site[i]].has(b, lot) || to[r.second[i]].has(b, lot)
	})
	if len(picked) <= candidates {
		return picked
	}
	// Too many, as may be after a bad sample. The next round has better prices.
	share := float64(candidates) / float64(len(picked))
	k := 0
	for _, i := range picked {
		if k < candidates && chance(thinned^uint64(i)) < share {
			picked[k] = i
			k++
		}
	}
	return picked[:k]
}

// quotas are the bytes to look at by site, of items that are there and of those
// that may come; nil if all is as it should be.
func (p *Problem) quotas(r *pass, prices []float64, times float64) (out, in []float64) {
	out, in = make([]float64, p.Sites), make([]float64, p.Sites)
	var most, load float64
	for j, used := range r.used {
		load += float64(used)
		switch over := float64(used - p.Room[j]); {
		case over > 0:
			out[j] = times * over
		case prices[j] > 0:
			in[j] = -times * over
		}
		most = max(most, out[j], in[j])
	}
	if most == 0 {
		return nil, nil
	}
	// At least as much as some hundred items, so that there are some of all sizes.
	base := max(most/4, 64*times*load/float64(max(len(p.Load), 1)))
	for j := range out {
		out[j] = max(out[j], base)
		if in[j] > 0 {
			in[j] = max(in[j], base)
		}
	}
	return out, in
}

// histograms are loads by site and bucket of regret, of items at a site and of
// items whose second one it is.
func (p *Problem) histograms(r *pass) (out, in []int64) {
	size := p.Sites * buckets
	type pair struct{ out, in []int64 }
	by := make([]pair, p.Workers)
	inBlocks(p.Workers, len(p.Load), func(worker, lo, hi int) {
		t := &by[worker]
		if t.out == nil {
			t.out, t.in = make([]int64, size), make([]int64, size)
		}
		for i := lo; i < hi; i++ {
			if r.second[i] == NoSite {
				continue
			}
			b := bucketOf(r.regret[i])
			t.out[int(r.site[i])*buckets+b] += p.Load[i]
			t.in[int(r.second[i])*buckets+b] += p.Load[i]
		}
	})
	out, in = make([]int64, size), make([]int64, size)
	for _, t := range by {
		for k, v := range t.out {
			out[k] += v
			in[k] += t.in[k]
		}
	}
	return out, in
}

// threshold takes all of the buckets below one, and a share of that one.
type threshold struct {
	bucket int
	share  float64
}

func (t threshold) has(bucket int, lot float64) bool {
	return bucket < t.bucket || bucket == t.bucket && lot < t.share
}

func thresholds(histogram []int64, quotas []float64) []threshold {
	t := make([]threshold, len(quotas))
	for j, quota := range quotas {
		t[j] = threshold{bucket: buckets}
		var sum float64
		for b, v := range histogram[j*buckets : (j+1)*buckets] {
			if v > 0 && sum+float64(v) >= quota {
				t[j] = threshold{b, (quota - sum) / float64(v)}
				break
			}
			sum += float64(v)
		}
	}
	return t
}

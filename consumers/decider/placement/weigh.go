package placement

import (
	"math"

	"penstock/schemas/sphere"
)

// unit is how weights are compared: rounded to 1e-9 (DESIGN §3.3), and held as
// whole numbers of it.
const unit = 1e9

// weights are the weights of one owner's edges, by site in config order.
type weights struct {
	placed        bool      // the owner's own place is known
	friends       int64     // friends whose place is known
	km, social    []float64 // DW and SW before normalisation
	ndw, nsw, sum []int64   // NDW, NSW and E in units of 1e-9
	scratch       []float64
}

func newWeights(sites int) *weights {
	f, n := make([]float64, 3*sites), make([]int64, 3*sites)
	return &weights{
		km: f[:sites], social: f[sites : 2*sites], scratch: f[2*sites:],
		ndw: n[:sites], nsw: n[sites : 2*sites], sum: n[2*sites:],
	}
}

// weigh computes the weights of an owner's edges to all sites, allowed or not:
// residency removes edges, it doesn't change the weights of the others.
//
//	DW_j  = d(owner, j)                              0 if the owner has no place
//	SW_j  = Σ over friends f of SL(owner, f)·d(f, j) friends without a place left out
//	NDW_j = (DW_j − min DW) / (max DW − min DW)      0 if all are equal
//	E_j   = alpha·NDW_j + beta·NSW_j
//
// (PAPERS §1.2, formulas 1 to 3; DESIGN §4.1.) The sum runs over friends in
// ascending id, and no product is fused into it.
func (t *Policy) weigh(id int32, w *weights) {
	s := t.state
	clear(w.km)
	clear(w.social)
	own, ok := s.place(id, t.mean)
	if w.placed = ok; ok {
		for j, v := range t.vectors {
			w.km[j] = sphere.Distance(own, v)
		}
	}
	w.friends = 0
	lo, hi := s.social.of(id)
	for i := lo; i < hi; i++ {
		f, ok := s.place(s.social.list[i].user, t.mean)
		if !ok {
			continue
		}
		w.friends++
		level := float64(s.social.at(id, i))
		for j, v := range t.vectors {
			w.social[j] += float64(level * sphere.Distance(f, v))
		}
	}
	normalise(w.km, w.scratch)
	for j, v := range w.scratch {
		w.ndw[j] = rounded(v)
		w.sum[j] = 0
	}
	// E is of the values before they are rounded: keep NDW until NSW is there.
	alpha := t.config.Alpha
	for j := range w.scratch {
		w.scratch[j] = float64(alpha * w.scratch[j])
	}
	lowest, span := bounds(w.social)
	for j, v := range w.social {
		n := share(v, lowest, span)
		w.nsw[j] = rounded(n)
		w.sum[j] = rounded(w.scratch[j] + float64(t.config.Beta*n))
	}
}

func rounded(v float64) int64 { return int64(math.Round(v * unit)) }

// bounds returns the least value and how far the greatest is above it.
func bounds(values []float64) (lowest, span float64) {
	lowest, highest := values[0], values[0]
	for _, v := range values[1:] {
		lowest, highest = min(lowest, v), max(highest, v)
	}
	return lowest, highest - lowest
}

// share is a value's place between the least and the greatest, 0 to 1.
func share(v, lowest, span float64) float64 {
	if span == 0 {
		return 0
	}
	return (v - lowest) / span
}

// normalise writes the values' places between the least and the greatest.
func normalise(values, out []float64) {
	lowest, span := bounds(values)
	for j, v := range values {
		out[j] = share(v, lowest, span)
	}
}

// keepLeast keeps the sites whose value is at most tolerance above the least of
// those kept, in their order.
func keepLeast(sites []int, values []int64, tolerance int64) []int {
	if len(sites) < 2 {
		return sites
	}
	least := values[sites[0]]
	for _, j := range sites[1:] {
		least = min(least, values[j])
	}
	out := sites[:0]
	for _, j := range sites {
		if values[j]-least <= tolerance {
			out = append(out, j)
		}
	}
	return out
}

// nearest applies the three weights in their order: social and distance,
// social, distance. What is left ties, and the first of it is the match.
func (t *Policy) nearest(sites []int, w *weights) []int {
	sites = keepLeast(sites, w.sum, t.tolerance)
	sites = keepLeast(sites, w.nsw, t.tolerance)
	return keepLeast(sites, w.ndw, t.tolerance)
}

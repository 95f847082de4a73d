package placement

import (
	"math"

	"penstock/schemas/sphere"
)

// The L-match of ten million owners and twenty sites takes a distance for each
// of a thousand million (friend, site). It is therefore computed twice: first
// with distances in steps of 300 m that are computed once a user and kept in
// two bytes each, with a bound on the error; then, for the few owners for which
// the bound doesn't tell the sites apart, exactly. The result is always the
// exact one.

const (
	// step is the km of one unit of a kept distance: half a circumference is the
	// greatest distance.
	step = math.Pi * sphere.Radius / 65534
	// roughError bounds, in km, how far a kept distance is from the exact one:
	// half a step and the error of roughKm.
	roughError = step/2 + 0.02
	// sumLimit bounds Σ SL for which sums of kept distances stay inside 64 bits.
	sumLimit = 1 << 46
	// farAway marks a row of kept distances of a user without a place.
	farAway = math.MaxUint16
)

// roughKm is sphere.Distance within 0.02 km at a third of its cost: the sine of
// half the angle from the scalar product, its arc by a polynomial (Cephes).
func roughKm(a, b sphere.Vector) float64 {
	h := (1 - (a.X*b.X + a.Y*b.Y + a.Z*b.Z)) / 2
	x := math.Sqrt(max(0, min(1, h)))
	if x <= 0.5 {
		return 2 * sphere.Radius * arcSine(x)
	}
	return 2 * sphere.Radius * (math.Pi/2 - 2*arcSine(math.Sqrt((1-x)/2)))
}

// arcSine is the arc sine of 0 to 0.5 within 1e-7.
func arcSine(x float64) float64 {
	z := x * x
	p := (((4.2163199048e-2*z+2.4181311049e-2)*z+4.5470025998e-2)*z+7.4953002686e-2)*z + 1.6666752422e-1
	return x + x*z*p
}

// near holds the kept distances, a row of t.width a user. They follow from
// places and sites and are in no snapshot.
func (t *TMatch) keepDistances(id int32) {
	row := t.near[int(id)*t.width : (int(id)+1)*t.width]
	v, ok := t.state.place(id, t.mean)
	if !ok {
		row[0] = farAway
		return
	}
	for j, site := range t.corners {
		row[j] = uint16(math.Round(roughKm(v, site) / step))
	}
}

// matcher is a worker's memory for L-matches.
type matcher struct {
	sums  []uint64  // Σ SL·kept distance by corner
	km    []float64 // rough DW or SW and its normal form, by site
	dist  rough
	soc   rough
	sites []int
	// allowed are the sites that the owner at hand may be at.
	allowed []int
	exact   *weights
	// exactly counts owners for which the bound did not do.
	exactly int64
}

func (t *TMatch) newMatcher() *matcher {
	n := len(t.config.Sites)
	return &matcher{
		sums: make([]uint64, t.width), km: make([]float64, t.width), sites: make([]int, 0, n), exact: newWeights(n),
		dist: rough{value: make([]float64, t.width)}, soc: rough{value: make([]float64, t.width)},
	}
}

// rough is a normalised weight by corner, and by how much two of its values
// may be wrong against each other.
type rough struct {
	value []float64
	error float64 // of a difference of two, less than 1; 0: exact
}

// set normalises values that are each within e of the exact ones; false if that
// tells nothing.
func (r *rough) set(values []float64, e float64) bool {
	normaliseRough(values, r.value)
	if e == 0 || len(values) == 1 {
		r.error = 0
		return true
	}
	_, span := bounds(values)
	r.error = 2 * e / span
	return r.error < 0.1
}

func normaliseRough(values, out []float64) {
	lowest, span := bounds(values)
	if span == 0 {
		clear(out)
		return
	}
	inverse := 1 / span
	for j, v := range values {
		out[j] = (v - lowest) * inverse
	}
}

// bound returns by how much the difference of two corners' values may be wrong:
// of (a−b)/span, the numerator by 2e and the span by 2e.
func (r *rough) bound(a, b int) float64 {
	return r.error * (1 + math.Abs(r.value[a]-r.value[b]) + 2*r.error)
}

// match returns the L-match of an owner over the given sites (not empty), and
// whether site standing (−1: none) ties with it.
func (t *TMatch) match(id int32, allowed []int, standing int, m *matcher) (best int, tie bool) {
	if len(allowed) == 1 {
		return allowed[0], allowed[0] == standing
	}
	left, ok := t.matchRoughly(id, allowed, m)
	if !ok {
		m.exactly++
		t.weigh(id, m.exact)
		m.sites = append(m.sites[:0], allowed...)
		left = t.nearest(m.sites, m.exact)
	}
	for _, j := range left {
		if j == standing {
			tie = true
		}
	}
	return left[0], tie
}

// matchRoughly is nearest with kept distances, false if they don't tell.
func (t *TMatch) matchRoughly(id int32, allowed []int, m *matcher) ([]int, bool) {
	s := t.state
	clear(m.km)
	row := t.near[int(id)*t.width : (int(id)+1)*t.width]
	var e float64
	if row[0] != farAway {
		e = roughError
		for j, q := range row {
			m.km[j] = float64(q) * step
		}
	}
	if !m.dist.set(m.km, e) {
		return nil, false
	}
	total, ok := t.sumRoughly(s.social.start[id], s.social.start[id+1], m.sums)
	if !ok {
		return nil, false
	}
	for j, v := range m.sums {
		m.km[j] = float64(v) * step
	}
	if !m.soc.set(m.km, float64(total)*roughError) {
		return nil, false
	}
	left := append(m.sites[:0], allowed...)
	for _, f := range [3][2]float64{{t.config.Alpha, t.config.Beta}, {0, 1}, {1, 0}} {
		if left, ok = t.keepRoughly(left, m, f[0], f[1]); !ok {
			return nil, false
		}
	}
	return left, true
}

// sumRoughly adds up SL·kept distance over friends and returns Σ SL of those
// whose place is known.
func (t *TMatch) sumRoughly(lo, hi int64, sums []uint64) (total uint64, ok bool) {
	clear(sums)
	s := &t.state.social
	users, levels := s.user[lo:hi], s.level[lo:hi]
	width := t.width
	for i, u := range users {
		row := t.near[int(u)*width : (int(u)+1)*width]
		if row[0] == farAway {
			continue
		}
		level := uint64(levels[i])
		if total += level; level == escaped || total > sumLimit {
			return 0, false
		}
		for j, q := range row[:len(sums)] {
			sums[j] += level * uint64(q)
		}
	}
	return total, true
}

// keepRoughly is keepLeast over a·NDW + b·NSW, false where the bound doesn't
// tell whether a site is kept. Sites of one corner have equal exact values.
func (t *TMatch) keepRoughly(sites []int, m *matcher, a, b float64) ([]int, bool) {
	if len(sites) < 2 {
		return sites, true
	}
	value := func(c int) float64 { return a*m.dist.value[c] + b*m.soc.value[c] }
	least := t.corner[sites[0]]
	lowest := value(least)
	for _, j := range sites[1:] {
		if v := value(t.corner[j]); v < lowest {
			least, lowest = t.corner[j], v
		}
	}
	tolerance := float64(t.tolerance) / unit
	// roundings of the exact values, and of the arithmetic here
	const slack = 4 / unit
	var widest float64
	if t.tolerance > 0 {
		// The exact least may be another site, by at most what the bound lets it be.
		for _, j := range sites {
			widest = max(widest, a*m.dist.bound(t.corner[j], least)+b*m.soc.bound(t.corner[j], least))
		}
	}
	exact := (a == 0 || m.dist.error == 0) && (b == 0 || m.soc.error == 0)
	out := sites[:0]
	for _, j := range sites {
		c := t.corner[j]
		if c == least || exact && value(c) == lowest {
			out = append(out, j)
			continue
		}
		over := value(c) - lowest - tolerance
		e := a*m.dist.bound(c, least) + b*m.soc.bound(c, least) + widest + slack*(1+a+b)
		switch {
		case over > e:
		case over < -e:
			out = append(out, j)
		default:
			return nil, false
		}
	}
	return out, true
}

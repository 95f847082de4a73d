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
	// farAway in the first place marks the row of a user without a place.
	farAway = math.MaxUint16
	// lanes are every other of the four distances in a word: a level times both
	// is one multiplication, exact while the levels add up to laneLimit.
	lanes     = 0x0000ffff0000ffff
	laneLimit = 1 << 16
)

// roughKm is sphere.Distance within 0.02 km at a third of its cost: the sine of
// half the angle from the scalar product, its arc by a polynomial (Cephes).
func roughKm(a, b sphere.Vector) float64 {
	h := (1 - (float64(a.X*b.X) + float64(a.Y*b.Y) + float64(a.Z*b.Z))) / 2
	x := math.Sqrt(max(0, min(1, h)))
	if x <= 0.5 {
		return 2 * sphere.Radius * arcSine(x)
	}
	return 2 * sphere.Radius * (math.Pi/2 - float64(2*arcSine(math.Sqrt((1-x)/2))))
}

// arcSine is the arc sine of 0 to 0.5 within 1e-7. Nothing in it is fused: what
// is decided by kept distances must be the same on any machine.
func arcSine(x float64) float64 {
	z := float64(x * x)
	p := 4.2163199048e-2
	for _, c := range [...]float64{2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1} {
		p = float64(p*z) + c
	}
	return x + float64(x*z*p)
}

// keepDistances writes a user's row of t.near: its kept distances by corner,
// four in a word. They follow from places and sites and are in no snapshot.
func (t *Policy) keepDistances(id int32) {
	row := t.near[int(id)*t.words : (int(id)+1)*t.words]
	v, ok := t.state.place(id, t.mean)
	if !ok {
		row[0] = farAway
		return
	}
	clear(row)
	for j, site := range t.corners {
		row[j/4] |= kept(v, site) << (16 * (j % 4))
	}
}

// kept is a distance in whole steps.
func kept(a, b sphere.Vector) uint64 { return uint64(float64(roughKm(a, b)*(1/step)) + 0.5) }

// matcher is a worker's memory for L-matches.
type matcher struct {
	row     []uint64  // kept distances of the owner by corner
	sums    []uint64  // Σ SL·kept distance by corner
	even    []uint64  // the same for lanes 0 and 2 of each word, not yet in sums
	odd     []uint64  // for lanes 1 and 3
	value   []float64 // a weight by corner
	dist    rough
	soc     rough
	sites   []int
	allowed []int // the sites that the owner at hand may be at
	exact   *weights
	exactly int64 // owners for which the bound did not do
	touched uint64
}

func (t *Policy) newMatcher() *matcher {
	n := len(t.config.Sites)
	return &matcher{
		row: make([]uint64, t.width), sums: make([]uint64, t.width),
		even: make([]uint64, t.words), odd: make([]uint64, t.words), value: make([]float64, t.width), sites: make([]int, 0, n), exact: newWeights(n),
		dist: rough{value: make([]float64, t.width)}, soc: rough{value: make([]float64, t.width)},
	}
}

// rough is a normalised weight by corner, and by how much two of its values
// may be wrong against each other.
type rough struct {
	value []float64
	error float64 // of a difference of two, but for a factor near 1; 0: exact
}

// set normalises whole numbers of step that are each within e km of the exact
// values; false if that tells nothing.
func (r *rough) set(values []uint64, e float64) bool {
	lowest, highest := values[0], values[0]
	for _, v := range values[1:] {
		lowest, highest = min(lowest, v), max(highest, v)
	}
	span := float64(highest - lowest)
	r.error = 2 * e / (span * step)
	if len(values) == 1 {
		r.error, span = 0, 1
	}
	if !(r.error < 0.1) {
		return false
	}
	inverse := 1 / span
	out := r.value[:len(values)]
	for j, v := range values {
		out[j] = float64(v-lowest) * inverse
	}
	return true
}

// unknown makes all values exactly 0.
func (r *rough) unknown() {
	clear(r.value)
	r.error = 0
}

// bound returns by how much the difference of two corners' values may be wrong:
// of (a−b)/span, the numerator by 2e and the span by 2e.
func (r *rough) bound(a, b int) float64 {
	return r.error * (1 + math.Abs(r.value[a]-r.value[b]) + 2*r.error)
}

// touch reads the first and the last of the kept distances that the L-matches
// of owners lo to hi need. The reads don't wait for each other, as those of
// sumRoughly would: memory answers many of them in the time of one.
func (t *Policy) touch(lo, hi int, m *matcher) {
	s := t.state
	var got uint64
	for _, e := range s.social.list[s.social.start[lo]:s.social.start[hi]] {
		i := int(e.user) * t.words
		got ^= t.near[i] ^ t.near[i+t.words-1]
	}
	m.touched = got
}

// match returns the L-match of an owner over m.allowed (not empty), and whether
// site standing (−1: none) ties with it.
func (t *Policy) match(id int32, standing int, m *matcher) (best int, tie bool) {
	if len(m.allowed) == 1 {
		return m.allowed[0], m.allowed[0] == standing
	}
	left, ok := t.matchRoughly(id, m)
	if !ok {
		m.exactly++
		t.weigh(id, m.exact)
		m.sites = append(m.sites[:0], m.allowed...)
		left = t.nearest(m.sites, m.exact)
	}
	for _, j := range left {
		if j == standing {
			tie = true
		}
	}
	return left[0], tie
}

// setRoughly computes an owner's normalised weights with kept distances, false if
// these don't tell.
func (t *Policy) setRoughly(id int32, m *matcher) bool {
	s := t.state
	row := t.near[int(id)*t.words : (int(id)+1)*t.words]
	if row[0]&farAway == farAway {
		m.dist.unknown()
	} else {
		for j := range m.row {
			m.row[j] = row[j/4] >> (16 * (j % 4)) & math.MaxUint16
		}
		if !m.dist.set(m.row, roughError) {
			return false
		}
	}
	total, ok := t.sumRoughly(s.social.list[s.social.start[id]:s.social.start[id+1]], m)
	if !ok {
		return false
	}
	if total == 0 {
		m.soc.unknown()
		return true
	}
	return m.soc.set(m.sums, float64(total)*roughError)
}

// matchRoughly is nearest with kept distances, false if they don't tell.
func (t *Policy) matchRoughly(id int32, m *matcher) (left []int, ok bool) {
	if !t.setRoughly(id, m) {
		return nil, false
	}
	left = append(m.sites[:0], m.allowed...)
	for _, f := range [3][2]float64{{t.config.Alpha, t.config.Beta}, {0, 1}, {1, 0}} {
		if left, ok = t.keepRoughly(left, m, f[0], f[1]); !ok || len(left) == 1 {
			return left, ok
		}
	}
	return left, true
}

// sumRoughly adds up SL·kept distance over friends into m.sums and returns Σ SL
// of those whose place is known; false if that is too much for the sums.
func (t *Policy) sumRoughly(friends []edge, m *matcher) (total uint64, ok bool) {
	clear(m.sums)
	words, inLanes := t.words, uint64(0)
	even, odd := m.even[:words], m.odd[:words]
	for _, e := range friends {
		row := t.near[int(e.user)*words : (int(e.user)+1)*words]
		if row[0]&farAway == farAway {
			continue
		}
		level := uint64(e.level)
		if total += level; level == escaped || total > sumLimit {
			clear(even)
			clear(odd)
			return 0, false
		}
		if inLanes += level; inLanes > laneLimit {
			m.unload()
			inLanes = level
		}
		if level > laneLimit {
			for j := range m.sums {
				m.sums[j] += level * (row[j/4] >> (16 * (j % 4)) & math.MaxUint16)
			}
			inLanes = 0
			continue
		}
		for w, x := range row {
			even[w] += level * (x & lanes)
			odd[w] += level * (x >> 16 & lanes)
		}
	}
	m.unload()
	return total, true
}

// unload moves what is in the lanes to the sums.
func (m *matcher) unload() {
	for j := range m.sums {
		x := m.even[j/4]
		if j%2 == 1 {
			x = m.odd[j/4]
		}
		m.sums[j] += x >> (32 * (j % 4 / 2)) & math.MaxUint32
	}
	clear(m.even)
	clear(m.odd)
}

// keepRoughly is keepLeast over a·NDW + b·NSW, false where the bound doesn't
// tell whether a site is kept. Sites of one corner have equal exact values.
func (t *Policy) keepRoughly(sites []int, m *matcher, a, b float64) ([]int, bool) {
	if len(sites) < 2 {
		return sites, true
	}
	value, soc := m.value, m.soc.value[:len(m.value)]
	for c, d := range m.dist.value[:len(m.value)] {
		value[c] = a*d + b*soc[c]
	}
	least := t.corner[sites[0]]
	for _, j := range sites[1:] {
		if c := t.corner[j]; value[c] < value[least] {
			least = c
		}
	}
	bound := func(c int) float64 { return a*m.dist.bound(c, least) + b*m.soc.bound(c, least) }
	tolerance := float64(t.tolerance) / unit
	var widest float64
	if t.tolerance > 0 {
		// The exact least may be another site, by at most what the bound lets it be.
		for _, j := range sites {
			widest = max(widest, bound(t.corner[j]))
		}
	}
	// Roundings of the exact values, and of the arithmetic here.
	slack := widest + 4/unit*(1+a+b)
	exact := (a == 0 || m.dist.error == 0) && (b == 0 || m.soc.error == 0)
	out := sites[:0]
	for _, j := range sites {
		c := t.corner[j]
		if c == least || exact && value[c] == value[least] {
			out = append(out, j)
			continue
		}
		over := value[c] - value[least] - tolerance
		e := bound(c) + slack
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

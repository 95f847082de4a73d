package workload

import "math/rand/v2"

// The streams of random numbers are apart, so that a change of one part of the
// model leaves what the others draw as it was.
const (
	streamPlaces = iota + 1
	streamActivity
	streamFriends
	streamTies
	streamWrites
	streamReads
)

// source draws numbers. Only the generator's 64 bits are the library's; what
// is made of them stands here, so that no version of it changes a row.
type source struct{ pcg *rand.PCG }

func newSource(seed uint64, stream uint64) source {
	return source{rand.NewPCG(seed, stream)}
}

// float returns a number in [0, 1).
func (s source) float() float64 { return float64(s.pcg.Uint64()>>11) / (1 << 53) }

// intn returns a number in [0, n), n < 2^32; its bias is below n/2^32.
func (s source) intn(n int) int { return int(s.pcg.Uint64() >> 32 * uint64(n) >> 32) }

// shuffle returns the numbers from 0 to n−1 in a random order.
func (s source) shuffle(n int) []int {
	p := make([]int, n)
	for i := range p {
		j := s.intn(i + 1)
		p[i] = p[j]
		p[j] = i
	}
	return p
}

// alias draws from a discrete distribution in constant time (Walker, Vose).
// Many of them share the two slices of one aliases.
type aliases struct {
	from   []int32 // of each distribution, one more at the end
	keep   []uint32
	other  []int32
	small  []int32
	large  []int32
	scaled []float64
}

// add appends a distribution in proportion to the weights, which are not all 0.
func (a *aliases) add(weights []float64) {
	if a.from == nil {
		a.from = []int32{0}
	}
	n, sum := len(weights), 0.0
	for _, w := range weights {
		sum += w
	}
	base := len(a.keep)
	a.small, a.large, a.scaled = a.small[:0], a.large[:0], a.scaled[:0]
	for i, w := range weights {
		a.scaled = append(a.scaled, w*float64(n)/sum)
		a.keep, a.other = append(a.keep, ^uint32(0)), append(a.other, int32(i))
		if a.scaled[i] < 1 {
			a.small = append(a.small, int32(i))
		} else {
			a.large = append(a.large, int32(i))
		}
	}
	for len(a.small) > 0 && len(a.large) > 0 {
		s, l := a.small[len(a.small)-1], a.large[len(a.large)-1]
		a.small = a.small[:len(a.small)-1]
		a.keep[base+int(s)] = uint32(a.scaled[s] * (1 << 32))
		a.other[base+int(s)] = l
		if a.scaled[l] += a.scaled[s] - 1; a.scaled[l] < 1 {
			a.large = a.large[:len(a.large)-1]
			a.small = append(a.small, l)
		}
	}
	a.from = append(a.from, int32(len(a.keep)))
}

// draw returns an index of distribution d for 64 random bits.
func (a *aliases) draw(d int, bits uint64) int {
	from := int(a.from[d])
	n := uint64(int(a.from[d+1]) - from)
	i := int(bits >> 32 * n >> 32)
	if uint32(bits) <= a.keep[from+i] {
		return i
	}
	return int(a.other[from+i])
}

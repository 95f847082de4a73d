package pool

import "math/bits"

// draws is a generator of numbers (SplitMix64), seeded for each decision by the pool's
// seed and the decision's number.
type draws struct{ state uint64 }

const odd = 0x9e3779b97f4a7c15

func (d *draws) seed(seed, number uint64) {
	d.state = seed
	d.state = d.next() ^ number*odd
}

func (d *draws) next() uint64 {
	d.state += odd
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number in [0, n), n > 0. That it is 2⁻⁶⁴·n off even is no matter.
func (d *draws) below(n int) int {
	high, _ := bits.Mul64(d.next(), uint64(n))
	return int(high)
}

// misses is how often a drawn server that may not be chosen is drawn anew before all
// are looked at.
const misses = 8

// drawTwo draws two different servers that may have a job; the second is nil if there is
// only one, both if there is none.
func (p *Pool) drawTwo(j *job) (a, b *server) {
	if n := len(p.live); n >= 2 {
		if a = p.drawOne(j, nil); a != nil {
			if b = p.drawOne(j, a); b != nil {
				return a, b
			}
		}
	}
	// Few may: a sample of two of all that may (Vitter's algorithm R).
	a, b = nil, nil
	seen := 0
	for _, s := range p.live {
		if !p.may(s, j) {
			continue
		}
		seen++
		switch seen {
		case 1:
			a = s
		case 2:
			b = s
		default:
			switch p.draws.below(seen) {
			case 0:
				a = s
			case 1:
				b = s
			}
		}
	}
	if b != nil && p.draws.below(2) == 1 {
		a, b = b, a
	}
	return a, b
}

// drawOne draws a server that may have a job and isn't the other, nil after too many
// misses.
func (p *Pool) drawOne(j *job, other *server) *server {
	for range misses {
		if s := p.live[p.draws.below(len(p.live))]; s != other && p.may(s, j) {
			return s
		}
	}
	return nil
}

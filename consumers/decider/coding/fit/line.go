package fit

import "math"

// line is base + slope·B, in ms and ms a MB.
type line struct{ base, slope float64 }

func (l line) at(mb float64) float64 { return l.base + float64(l.slope*mb) }

func (l line) near(o line) bool {
	return math.Abs(l.base-o.base) <= converged*(1+l.base) && math.Abs(l.slope-o.slope) <= converged*(1+l.slope)
}

// system is a weighted least square of a line, with a prior around another one. The
// matrix is kept without the prior, which is diagonal. Products that are added are
// rounded first, so that no machine fuses them (DESIGN §3.3).
type system struct {
	prior  line
	weight line // of the prior: 1/variance
	aa, ab, bb,
	ra, rb float64
}

// leastDeviation is of a parameter of the prior that is next to nothing, in ms or ms a
// MB: it must be able to grow.
const leastDeviation = 1.0

func newSystem(prior line) system {
	w := func(v float64) float64 {
		d := max(v, leastDeviation)
		return 1 / (d * d)
	}
	return system{prior: prior, weight: line{w(prior.base), w(prior.slope)}}
}

// add notes that the line is y at mb, with that weight.
func (s *system) add(mb, y, weight float64) {
	s.aa += weight
	s.ab += float64(weight * mb)
	s.bb += float64(weight * mb * mb)
	s.ra += float64(weight * y)
	s.rb += float64(weight * mb * y)
}

// solve returns the best line with both parameters 0 or more.
func (s *system) solve() line {
	aa, bb := s.aa+s.weight.base, s.bb+s.weight.slope
	ra, rb := s.ra+float64(s.weight.base*s.prior.base), s.rb+float64(s.weight.slope*s.prior.slope)
	det := float64(aa*bb) - float64(s.ab*s.ab)
	l := line{(float64(ra*bb) - float64(rb*s.ab)) / det, (float64(rb*aa) - float64(ra*s.ab)) / det}
	switch {
	case l.base < 0:
		return line{0, max(0, rb/bb)}
	case l.slope < 0:
		return line{max(0, ra/aa), 0}
	}
	return l
}

// deviations are the standard deviations of both parameters, with the prior or by the
// samples alone: then they may be infinite.
func (s *system) deviations(prior bool) (base, slope float64) {
	aa, bb := s.aa, s.bb
	if prior {
		aa, bb = aa+s.weight.base, bb+s.weight.slope
	}
	det := float64(aa*bb) - float64(s.ab*s.ab)
	if !(det > 1e-12*aa*bb) {
		return math.Inf(1), math.Inf(1)
	}
	return math.Sqrt(bb / det), math.Sqrt(aa / det)
}

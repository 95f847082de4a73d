package loads

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"time"
)

// Bursts are times of another load, drawn: exponential of these means.
type Bursts struct {
	Calm  time.Duration `yaml:"calm"`
	Burst time.Duration `yaml:"burst"`
	Load  float64       `yaml:"load"` // per cent
}

// Mix is other shares of pages for a time.
type Mix struct {
	From   time.Duration `yaml:"from"`
	To     time.Duration `yaml:"to"`
	Shares []float64     `yaml:"shares"`
}

// Fits reports whether it has a share of each of n pages, 1 in sum.
func (m *Mix) Fits(n int) bool {
	sum := 0.0
	for _, s := range m.Shares {
		if !(s >= 0) {
			return false
		}
		sum += s
	}
	return len(m.Shares) == n && math.Abs(sum-1) < 1e-9 && 0 <= m.From && m.From < m.To
}

// CheckCourse reports what is wrong with a course; the error wraps ErrCourse.
func CheckCourse(course [][2]float64) error {
	if len(course) == 0 {
		return fmt.Errorf("%w: no points, expected at least one", ErrCourse)
	}
	for i, x := range course {
		if i > 0 && !(x[0] > course[i-1][0]) {
			return fmt.Errorf("%w: got second %v after %v, expected them in order", ErrCourse, x[0], course[i-1][0])
		}
		if !(x[0] >= 0) || !(x[1] >= 0) || math.IsInf(x[1], 0) {
			return fmt.Errorf("%w: got %v per cent at second %v, expected 0 or more", ErrCourse, x[1], x[0])
		}
	}
	return nil
}

// at is the load at a second: straight between points, level beyond the ends.
func at(course [][2]float64, second float64) float64 {
	i := sort.Search(len(course), func(i int) bool { return course[i][0] > second })
	switch {
	case i == 0:
		return course[0][1]
	case i == len(course):
		return course[i-1][1]
	}
	a, b := course[i-1], course[i]
	return a[1] + float64((b[1]-a[1])*(second-a[0])/(b[0]-a[0]))
}

// Made is a load that is made up.
type Made struct {
	Course   [][2]float64 // second, per cent of Capacity
	Capacity float64      // requests a second
	Length   time.Duration
	Bursts   *Bursts
	Mix      *Mix
	Pages    []Page
	Stations *Stations
}

// Draw draws the requests of a seed, in order of their coming: a Poisson process whose
// rate follows the course, by thinning.
func (m *Made) Draw(seed uint64) []Request {
	arrive, what := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	in := m.bursts(seed)
	most := 0.0
	for _, x := range m.Course {
		most = max(most, x[1])
	}
	if m.Bursts != nil {
		most = max(most, m.Bursts.Load)
	}
	var out []Request
	for s, end := 0.0, m.Length.Seconds(); most > 0; {
		s += arrive.ExpFloat64() / (most / 100 * m.Capacity)
		if s >= end {
			break
		}
		load := at(m.Course, s)
		if in(s) {
			load = m.Bursts.Load
		}
		if arrive.Float64()*most >= load {
			continue
		}
		out = append(out, m.request(what, s))
	}
	return out
}

// request draws what a request is.
func (m *Made) request(draw *rand.Rand, second float64) Request {
	mix := m.Mix
	if mix != nil && (second < mix.From.Seconds() || second >= mix.To.Seconds()) {
		mix = nil
	}
	r := Request{At: int64(second * 1e9), Page: page(draw, m.Pages, mix)}
	p := &m.Pages[r.Page]
	r.KB = p.KB * factor(draw, p.Sigma)
	r.Dynamic = draw.Float64() < p.Dynamic
	m.Stations.times(&r, draw)
	return r
}

// page draws one by the shares.
func page(draw *rand.Rand, pages []Page, mix *Mix) uint8 {
	u := draw.Float64()
	for i := range pages {
		share := pages[i].Share
		if mix != nil {
			share = mix.Shares[i]
		}
		if u -= share; u < 0 {
			return uint8(i)
		}
	}
	return uint8(len(pages) - 1)
}

// bursts tells of a second whether it lies in a burst; seconds are asked in order.
func (m *Made) bursts(seed uint64) func(second float64) bool {
	if m.Bursts == nil {
		return func(float64) bool { return false }
	}
	draw := rand.New(rand.NewPCG(seed, 3))
	in, until := false, draw.ExpFloat64()*m.Bursts.Calm.Seconds()
	return func(second float64) bool {
		for second >= until {
			mean := m.Bursts.Calm
			if in = !in; in {
				mean = m.Bursts.Burst
			}
			until += draw.ExpFloat64() * mean.Seconds()
		}
		return in
	}
}

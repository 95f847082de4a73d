package multitier

import (
	"math"
	"math/rand/v2"
	"time"
)

// Arrivals says when requests enter at the sites.
type Arrivals struct {
	// Rate a second by site, Day the length of one swing, Swing its height as a
	// share of the rate. The swing of each site is as far behind that of the first
	// as Phase says, as a part of the day.
	Rate  []float64
	Day   time.Duration
	Swing float64
	Phase []float64
	// Bursts come every Every on average, last Burst on average and multiply by
	// Factor; Every 0: none.
	Every, Burst time.Duration
	Factor       float64
	// Recorded, by site, are times since the beginning, ascending, in place of all
	// of that.
	Recorded [][]int64
}

// source is the arrivals of one site.
type source struct {
	random   *rand.Rand
	of       *Arrivals
	site     int
	most     float64 // the greatest rate
	bursts   [][2]int64
	floods   []Change // of this site that multiply arrivals
	recorded []int64
}

func (a *Arrivals) source(site int, seed uint64, length int64, changes []Change) *source {
	s := &source{random: rand.New(rand.NewPCG(seed, 1_000+uint64(site))), of: a, site: site}
	if a.Recorded != nil {
		s.recorded = a.Recorded[site]
		return s
	}
	s.most = a.Rate[site] * (1 + a.Swing)
	if a.Every > 0 {
		s.most *= max(1, a.Factor)
		for at := int64(0); ; {
			at += int64(s.random.ExpFloat64() * float64(a.Every.Microseconds()))
			if at >= length {
				break
			}
			end := at + int64(s.random.ExpFloat64()*float64(a.Burst.Microseconds()))
			s.bursts = append(s.bursts, [2]int64{at, end})
			at = end
		}
	}
	flood := 1.0
	for _, c := range changes {
		if c.Arrivals > 0 && c.Site == site {
			s.floods = append(s.floods, c)
			flood = max(flood, c.Arrivals)
		}
	}
	s.most *= flood
	return s
}

// next is the time of the next request after at, below 0 if there is none: a
// Poisson process at the greatest rate, of which a part is left out (thinning).
func (s *source) next(at int64) int64 {
	if s.of.Recorded != nil {
		if len(s.recorded) == 0 {
			return -1
		}
		first := s.recorded[0]
		s.recorded = s.recorded[1:]
		return first
	}
	for t := float64(at); ; {
		t += s.random.ExpFloat64() / s.most * 1e6
		if s.random.Float64()*s.most <= s.rate(int64(t)) {
			return int64(t)
		}
	}
}

// rate is that of a time, a second.
func (s *source) rate(at int64) float64 {
	a := s.of
	phase := 0.0
	if a.Phase != nil {
		phase = a.Phase[s.site]
	}
	out := a.Rate[s.site] * (1 + a.Swing*math.Sin(2*math.Pi*(float64(at)/float64(a.Day.Microseconds())-phase)))
	for len(s.bursts) > 0 && at >= s.bursts[0][1] {
		s.bursts = s.bursts[1:]
	}
	if len(s.bursts) > 0 && at >= s.bursts[0][0] {
		out *= a.Factor
	}
	for i := range s.floods {
		if us := s.floods[i]; at >= us.From.Microseconds() && at < us.To.Microseconds() {
			out *= us.Arrivals
		}
	}
	return out
}

package simcoder

import (
	"math"
	"math/rand/v2"
	"time"
)

// Point is a rate of requests at a time.
type Point struct {
	At        time.Duration
	PerSecond float64
}

// Rate is requests a second over time: linear between points, which are in order of
// time, and level before the first and after the last. Two points of one time are a
// step.
type Rate []Point

// Steady is one rate at all times.
func Steady(perSecond float64) Rate { return Rate{{PerSecond: perSecond}} }

// At is the rate (requests a second) at a time.
func (r Rate) At(t time.Duration) float64 { return r.at(int64(t)) * 1e9 }

// at is the rate (requests a ns) at a time (ns).
func (r Rate) at(t int64) float64 {
	i := 0
	for i < len(r) && int64(r[i].At) <= t {
		i++
	}
	switch {
	case i == 0:
		return r[0].PerSecond / 1e9
	case i == len(r):
		return r[i-1].PerSecond / 1e9
	}
	a, b := &r[i-1], &r[i]
	part := float64(t-int64(a.At)) / float64(b.At-a.At)
	return (a.PerSecond + float64(part*(b.PerSecond-a.PerSecond))) / 1e9
}

// most is the greatest rate (requests a ns).
func (r Rate) most() float64 {
	var most float64
	for _, p := range r {
		most = max(most, p.PerSecond)
	}
	return most / 1e9
}

// arrivals are those of a Poisson process of a rate: of one with the greatest rate
// arrivals are kept with the chance that the rate is of the greatest.
type arrivals struct {
	rate Rate
	most float64
	rng  *rand.Rand
	now  int64
}

func newArrivals(r Rate, seed uint64) arrivals {
	return arrivals{rate: r, most: r.most(), rng: rand.New(rand.NewPCG(seed, streamArrivals))}
}

// next is the time (ns) of the next arrival.
func (a *arrivals) next() int64 {
	for {
		a.now += 1 + int64(math.Round(a.rng.ExpFloat64()/a.most))
		if len(a.rate) == 1 || a.rng.Float64()*a.most < a.rate.at(a.now) {
			return a.now
		}
	}
}

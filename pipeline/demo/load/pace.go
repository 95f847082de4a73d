package load

import (
	"math/rand/v2"
	"time"
)

// Pace is a plan: the instants at which requests are due, from the start,
// ascending. It is not safe for concurrent use.
type Pace interface {
	// Next is the next instant; false at the end of the plan.
	Next() (time.Duration, bool)
}

// Even returns n instants a second, equally far apart, the first at 0.
func Even(rate float64) Pace { return &even{rate: rate} }

type even struct {
	rate float64
	n    float64
}

func (e *even) Next() (time.Duration, bool) {
	at := time.Duration(e.n / e.rate * float64(time.Second))
	e.n++
	return at, true
}

// Poisson returns instants as of many who don't know of each other: n a second on
// average, with exponential gaps drawn from rng.
func Poisson(rate float64, rng *rand.Rand) Pace { return &poisson{rate: rate, rng: rng} }

type poisson struct {
	rate float64
	rng  *rand.Rand
	at   float64 // seconds
}

func (p *poisson) Next() (time.Duration, bool) {
	p.at += p.rng.ExpFloat64() / p.rate
	return time.Duration(p.at * float64(time.Second)), true
}

// Until ends a plan before an instant.
func Until(p Pace, end time.Duration) Pace { return &until{p, end} }

type until struct {
	pace Pace
	end  time.Duration
}

func (u *until) Next() (time.Duration, bool) {
	at, ok := u.pace.Next()
	return at, ok && at < u.end
}

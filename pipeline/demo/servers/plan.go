package servers

import (
	"math/rand/v2"
	"time"
)

// Phase is a part of the day, in which the load goes from one rate to another.
type Phase struct {
	Name string  `json:"name"`
	From float64 `json:"from"` // rates, as parts of the one at day
	To   float64 `json:"to"`
	Part float64 `json:"part"` // of the day's length

	from, to time.Duration // since requests began
}

// night is the load at night, crowd that of a flash crowd, as parts of the day's.
const night, crowd = 0.13, 1.6

// day lays the phases out over a length.
func day(length time.Duration) []Phase {
	list := []Phase{
		{Name: "night", From: night, To: night, Part: 0.12},
		{Name: "rising", From: night, To: 1, Part: 0.20},
		{Name: "day", From: 1, To: 1, Part: 0.23},
		{Name: "flash crowd", From: crowd, To: crowd, Part: 0.12},
		{Name: "falling", From: 1, To: night, Part: 0.20},
		{Name: "night again", From: night, To: night, Part: 0.13},
	}
	at := time.Duration(0)
	for i := range list {
		list[i].from = at
		at += time.Duration(list[i].Part * float64(length))
		list[i].to = at
	}
	list[len(list)-1].to = length
	return list
}

// Faults, as parts of the day: one server is ten times slower from slowFrom to slowTo, and
// another is killed at killAt, in the flash crowd.
const (
	slowFrom, slowTo, killAt = 0.38, 0.48, 0.59
	slowTimes                = 10
)

// part is an instant of a day of a length.
func part(of float64, length time.Duration) time.Duration {
	return time.Duration(of * float64(length))
}

// phaseAt is the number of the phase at an instant.
func phaseAt(phases []Phase, at time.Duration) int {
	for i := range phases {
		if at < phases[i].to {
			return i
		}
	}
	return len(phases) - 1
}

// rate is the rate at an instant, as a part of the day's.
func (p *Phase) rate(at time.Duration) float64 {
	return p.From + (p.To-p.From)*float64(at-p.from)/float64(max(1, p.to-p.from))
}

// instants is when requests are due.
type instants []time.Duration

// course draws a Poisson process whose rate follows the phases: one of the greatest rate,
// thinned.
func course(phases []Phase, rate float64, rng *rand.Rand) *instants {
	var out instants
	end := phases[len(phases)-1].to
	for at := time.Duration(0); ; {
		at += time.Duration(rng.ExpFloat64() / (rate * crowd) * float64(time.Second))
		if at >= end {
			return &out
		}
		if p := &phases[phaseAt(phases, at)]; rng.Float64()*crowd < p.rate(at) {
			out = append(out, at)
		}
	}
}

// Next implements load.Pace.
func (p *instants) Next() (time.Duration, bool) {
	if len(*p) == 0 {
		return 0, false
	}
	at := (*p)[0]
	*p = (*p)[1:]
	return at, true
}

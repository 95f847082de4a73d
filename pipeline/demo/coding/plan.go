package coding

import (
	"math/rand/v2"
	"time"
)

// Phase is a time of one load.
type Phase struct {
	Name    string        `json:"name"`
	Percent int           `json:"percent"` // of the reads that (1,1) carries at first
	For     time.Duration `json:"-"`
	// Slower: stores are slower from its beginning on.
	Slower bool `json:"slower,omitempty"`

	from, to time.Duration // since requests began
}

// settling is the time of a phase in which the one before it still shows.
const settling = 6 * time.Second

// timetable is the phases of the demonstration. Both lights are longer than windows of 10 s and
// what the decider needs to close them.
func (d *Demo) timetable() []Phase {
	list := []Phase{
		{Name: "light", Percent: 6, For: 60 * time.Second},
		{Name: "rising", Percent: 40, For: 30 * time.Second},
		{Name: "heavy", Percent: 85, For: 40 * time.Second},
		{Name: "falling", Percent: 40, For: 25 * time.Second},
		{Name: "light again", Percent: 6, For: 45 * time.Second},
		{Name: "slower stores", Percent: 40, For: 75 * time.Second, Slower: true},
		{Name: "slower and light", Percent: 6, For: 25 * time.Second, Slower: true},
	}
	if d.Fast {
		list = []Phase{{Name: "light", Percent: 6, For: 24 * time.Second}, {Name: "heavy", Percent: 85, For: 17 * time.Second}}
	}
	at := time.Duration(0)
	for i := range list {
		list[i].from, list[i].to = at, at+list[i].For
		at = list[i].to
	}
	return list
}

// instants is when requests are due: a Poisson process of the rates of phases.
type instants []time.Duration

func (d *Demo) instants(list []Phase, rng *rand.Rand) *instants {
	var out instants
	for _, p := range list {
		rate := float64(p.Percent) / 100 * d.capacity(1, 1)
		for at := p.from; ; {
			at += time.Duration(rng.ExpFloat64() / rate * float64(time.Second))
			if at >= p.to {
				break
			}
			out = append(out, at)
		}
	}
	return &out
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

package split

import (
	"math/rand/v2"
	"time"
)

// width is that of windows: the least that split.window can be.
const width = 10 * time.Second

// Plan says when what happens.
type Plan struct {
	Start  time.Time // requests begin
	Faults []Fault
	End    time.Time // requests end
}

// Fault is a time in which the replica is slow.
type Fault struct{ From, To time.Time }

// durations are what a plan is made of.
type durations struct {
	faults                    int
	warm, fault, pause, phase time.Duration
}

// newPlan lays out faults: each begins in the first window after the warming or
// the pause is over, at a time within its first phase drawn from rng.
func newPlan(start time.Time, d durations, rng *rand.Rand) Plan {
	p := Plan{Start: start}
	at := start.Add(d.warm)
	for range d.faults {
		from := windowAfter(at)
		if d.phase > 0 {
			from = from.Add(time.Duration(rng.Int64N(int64(d.phase))))
		}
		f := Fault{From: from, To: from.Add(d.fault)}
		p.Faults = append(p.Faults, f)
		at = f.To.Add(d.pause)
	}
	p.End = at
	return p
}

// windowAfter is the beginning of the first window that begins at an instant or
// after it.
func windowAfter(at time.Time) time.Time {
	if start := at.Truncate(width); start.Equal(at) {
		return start
	}
	return at.Truncate(width).Add(width)
}

// closing is the end of the nth window, from 1, that ends after the fault began.
func (f Fault) closing(n int) time.Time {
	return f.From.Truncate(width).Add(time.Duration(n) * width)
}

// seeded draws what a seed says.
func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

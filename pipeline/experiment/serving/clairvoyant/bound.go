package clairvoyant

import (
	"math"
	"slices"
)

// Job is the work of a request at the station.
type Job struct {
	At      float64 // s; it cannot be worked on before
	Due     float64 // s; work is late beyond it
	Work    float64 // s of a station of speed 1
	Penalty float64 // for each second of lateness, of the whole
}

// Machine is the pooled station, in slots of time.
type Machine struct {
	Slot float64 // s
	// Free and Bought are work by slot, of one length; beyond it work is free.
	Free, Bought []float64
	// Price of a unit of bought work.
	Price float64
}

// steps of the search for prices.
const steps = 60

// Bound is what lateness and bought work cost at least.
func Bound(jobs []Job, m *Machine) float64 {
	if len(jobs) == 0 || len(m.Free) == 0 {
		return 0
	}
	d := newDual(jobs, m)
	upper := d.begin()
	best := 0.0
	scale, since := 1.0, 0
	kept := slices.Clone(d.prices)
	for range steps {
		value := d.value()
		if value > best+1e-12 {
			if value > best*(1+1e-4) {
				since = 0
			}
			best = value
			copy(kept, d.prices)
		}
		if since++; since > 6 {
			scale, since = scale/2, 0
			copy(d.prices, kept)
			d.value()
		}
		if !d.climb(scale * max(upper-best, 1e-3*upper)) {
			break
		}
	}
	return best
}

// dual is the search.
type dual struct {
	jobs   []Job
	m      *Machine
	first  []int // slot of each job
	prices []float64
	load   []float64 // work by slot at these prices
}

func newDual(jobs []Job, m *Machine) *dual {
	n := len(m.Free)
	d := &dual{jobs: slices.Clone(jobs), m: m, prices: make([]float64, n), load: make([]float64, n)}
	slices.SortStableFunc(d.jobs, func(a, b Job) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	d.first = make([]int, len(d.jobs))
	for i := range d.jobs {
		d.first[i] = max(0, int(math.Floor(d.jobs[i].At/m.Slot)))
	}
	return d
}

// value is the bound at the prices; it finds the load on each slot. Slots beyond the last
// have the price 0 and all capacity.
func (d *dual) value() float64 {
	clear(d.load)
	sum, n := 0.0, len(d.prices)
	for i := range d.jobs {
		j := &d.jobs[i]
		best, at := math.Inf(1), -1
		for t := d.first[i]; ; t++ {
			late := j.Penalty * max(0, float64(float64(t)*d.m.Slot)-j.Due)
			if late >= best {
				break
			}
			if t >= n {
				best, at = late, -1
				break
			}
			if c := late + float64(j.Work*d.prices[t]); c < best {
				best, at = c, t
			}
			if best == 0 {
				break
			}
		}
		sum += best
		if at >= 0 {
			d.load[at] += j.Work
		}
	}
	for t, v := range d.prices {
		sum -= float64(d.m.Free[t]*v) + float64(d.m.Bought[t]*max(0, v-d.m.Price))
	}
	return sum
}

// climb steps along the subgradient, as far as would gain this much were the bound linear.
func (d *dual) climb(gain float64) bool {
	norm := 0.0
	for t := range d.prices {
		g := d.slope(t)
		if d.prices[t] == 0 && g < 0 {
			g = 0
		}
		d.load[t] = g
		norm += float64(g * g)
	}
	if norm == 0 || !(gain > 0) {
		return false
	}
	for t := range d.prices {
		d.prices[t] = max(0, d.prices[t]+float64(gain/norm*d.load[t]))
	}
	return true
}

// slope is the subgradient at a slot: its load beyond its capacity.
func (d *dual) slope(t int) float64 {
	g := d.load[t] - d.m.Free[t]
	if d.prices[t] > d.m.Price {
		g -= d.m.Bought[t]
	}
	return g
}

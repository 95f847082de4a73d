package perceptron

import (
	"math"
	"slices"
)

const (
	// paceLast is how many requests must all be off to one side for a change of pace; by
	// chance that is so once in 128 times.
	paceLast = 8
	// paceOff is the least factor that each must be off by.
	paceOff = 1.1
	// paceLeast is the least factor of a change of pace; the neurons follow less by themselves.
	paceLeast = 1.25
	// paceApart is the greatest factor between the second and the last but one of them: a
	// change of pace is the same for all requests, else it is no change of pace.
	paceApart = 1.5
	// paceKeep is after how many requests the neurons are kept for a later comparison.
	paceKeep = 16
)

// pace notices that a server has become faster or slower with all it does. Its neurons would
// learn that one class after the other, and a class that few requests belong to long after
// the others. The last few requests, of all classes, are compared with what the neurons
// estimated before them; if they are all off by one factor, the neurons become what they
// were, times this factor.
type pace struct {
	last  [paceLast]observed
	count int // since the last change of pace
	// old and older are the neurons as they were up to paceKeep, and up to twice as many,
	// requests ago.
	old, older []Neuron
}

// observed is a request whose service time was learned.
type observed struct {
	class     int
	x1, x2, t float64
	side      int8 // 1: took longer than estimated, −1: less, 0: about as long
}

func newPace(neurons []Neuron) pace {
	return pace{old: slices.Clone(neurons), older: slices.Clone(neurons)}
}

// add notes a request and what had been estimated for it. It returns the factor by which all
// times have changed, 1 if they haven't.
func (p *pace) add(o observed, estimate float64, neurons []Neuron) float64 {
	if !(o.t > 0) {
		return 1
	}
	switch {
	case o.t > paceOff*estimate:
		o.side = 1
	case o.t*paceOff < estimate:
		o.side = -1
	}
	p.last[p.count%paceLast] = o
	if p.count%paceKeep == 0 {
		p.old, p.older = p.older, p.old
		copy(p.old, neurons)
	}
	p.count++
	if p.count < 2*paceKeep || o.side == 0 {
		return 1
	}
	var ratios [paceLast]float64
	for i, l := range p.last {
		if l.side != o.side {
			return 1
		}
		if p.older[l.class].Learned() < young {
			return 1
		}
		ratios[i] = l.t / max(p.older[l.class].Estimate(l.x1, l.x2), 1e-12)
	}
	slices.Sort(ratios[:])
	f := math.Sqrt(ratios[paceLast/2-1] * ratios[paceLast/2])
	if ratios[paceLast-2] > paceApart*ratios[1] || f < paceLeast && f*paceLeast > 1 {
		return 1
	}
	return f
}

// change makes the neurons what they were, times f. One that had hardly learned then goes
// on as it is.
func (p *pace) change(f float64, neurons []Neuron) {
	for i := range neurons {
		if p.older[i].Learned() >= young {
			neurons[i] = p.older[i]
			neurons[i].quicken(f)
		}
	}
	p.count = 0
}

// quicken follows a change of all estimates by f that was noticed otherwise.
func (p *pace) quicken(f float64) {
	for i := range p.old {
		p.old[i].quicken(f)
		p.older[i].quicken(f)
	}
	p.count = 0
}

// rescale follows a change of the unit of x1 in a class.
func (p *pace) rescale(class int, f float64) {
	p.old[class].rescale(f, 1)
	p.older[class].rescale(f, 1)
	for i := range p.last {
		if p.last[i].class == class {
			p.last[i].x1 *= f
		}
	}
}

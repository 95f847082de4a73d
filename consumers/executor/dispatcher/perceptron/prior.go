package perceptron

import (
	"math"
	"slices"
)

// Prior is what a new server's model starts from. The zero value says nothing.
type Prior struct {
	classes []float64
	service []point
	wait    point
	ahead   float64 // bytes ahead at which waits are compared
	begun   bool    // some had bytes ahead
}

// point holds the median estimates at three inputs, which determine a neuron.
type point struct {
	known bool
	at    [3]float64
}

// Pool returns what the models have in common: at three inputs of every neuron the median
// of the estimates of those that have learned there. Medians of weights would not do, for
// two servers of equal times may have other slopes and constants. The models are only read.
// Those with other size classes than the first are left out.
func Pool(models []*Model) Prior {
	if len(models) == 0 {
		return Prior{}
	}
	first := models[0]
	p := Prior{classes: first.o.Classes, service: make([]point, len(first.service))}
	like := make([]*Model, 0, len(models))
	for _, m := range models {
		if slices.Equal(m.o.Classes, p.classes) {
			like = append(like, m)
		}
	}
	values := make([]float64, 0, len(like))
	median := func(has func(*Model) bool, of func(*Model) float64) (float64, bool) {
		values = values[:0]
		for _, m := range like {
			if has(m) {
				values = append(values, of(m))
			}
		}
		if len(values) == 0 {
			return 0, false
		}
		slices.Sort(values)
		half := len(values) / 2
		if len(values)%2 == 1 {
			return values[half], true
		}
		return (values[half-1] + values[half]) / 2, true
	}
	for c := range p.service {
		for i, x := range p.inputs(c) {
			p.service[c].at[i], p.service[c].known = median(
				func(m *Model) bool { return m.service[c].Learned() > 0 },
				func(m *Model) float64 { return m.service[c].Estimate(x[0]/m.scale[c], x[1]) })
		}
	}
	waited := func(m *Model) bool { return m.wait.Learned() > 0 }
	p.ahead, p.begun = median(func(m *Model) bool { return m.begun }, func(m *Model) float64 { return m.ahead })
	for i, x := range [3][2]float64{{0, 0}, {p.ahead, 0}, {0, p.ahead}} {
		p.wait.at[i], p.wait.known = median(waited,
			func(m *Model) float64 { a, b, c := m.WaitWeights(); return a*x[0] + b*x[1] + c })
	}
	return p
}

// inputs are the sizes in bytes and kinds at which estimates of a class are compared.
func (p *Prior) inputs(c int) [3][2]float64 {
	low := 0.0
	var high float64
	if c > 0 {
		low = p.classes[c-1]
	}
	switch {
	case c < len(p.classes):
		high = p.classes[c]
	case c > 0:
		high = 4 * low
	default:
		high = 1 << 20
	}
	return [3][2]float64{{low, 0}, {high, 0}, {high, 1}}
}

// begin starts the neurons that the prior says something of.
func (m *Model) begin(p Prior) {
	if len(p.service) == 0 || !slices.Equal(p.classes, m.o.Classes) {
		return
	}
	for c := range p.service {
		if !p.service[c].known {
			continue
		}
		in := p.inputs(c)
		m.service[c].start(&m.o, m.o.through(in[0][0]/m.scale[c], p.service[c].at), informed)
		m.known[c], m.given[c] = true, true
	}
	if p.wait.known {
		at := p.wait.at
		if m.begun = p.begun; m.begun {
			m.ahead = p.ahead
		}
		m.wait.start(&m.o, [3]float64{max(0, at[1]-at[0]), max(0, at[2]-at[0]), at[0]}, informed)
		// So that what others have learned is within the bound.
		m.wait.largest, m.wait.longest = 1, max(at[1]-at[0], at[2]-at[0], math.Abs(at[0]))
	}
}

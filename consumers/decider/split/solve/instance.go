package solve

import (
	"fmt"
	"math"
)

// Source is the From of a choice whose calls begin outside the graph.
const Source = -1

// Instance is what is to be shared out. Replica (j, n) has the number
// j·Sites + n.
type Instance struct {
	Sites      int
	Components int
	Choices    []Choice
	// Service is µs a call takes at a replica, without the calls it makes; +Inf: no
	// replica there.
	Service []float64
	// Capacity is the calls a second that a replica takes; +Inf: any.
	Capacity []float64
	// Curves say how the service of replicas rises with their load, for Optimal and
	// Cost; nil, or a zero Curve: it doesn't.
	Curves []Curve
	// MaxWork bounds Optimal, in multiplications; 0: about a second.
	MaxWork int

	order []int   // components, callers first
	outs  [][]int // choices by component
	load  []float64
}

// Choice is a decision of one component, or of a source, where to send calls.
type Choice struct {
	From int // component, or Source
	// Site and Rate are a source's: where its calls begin, and calls a second.
	Site int
	Rate float64
	// Legs go to the same site: one call, or those of colocated components.
	Legs []Leg
}

// Leg is one call of a choice.
type Leg struct {
	To int
	// Ratio is how many of these calls a call of From makes, greater than 0.
	Ratio float64
	// Cost of the link in µs by from site · Sites + to site; of a source by to
	// site. +Inf: not allowed.
	Cost []float64
}

// Curve is the delay of a replica against its load (calls a second):
// Base + Factor·load^Power in µs. A Power of 0 is no curve: Service counts.
type Curve struct {
	Base, Factor float64
	Power        int
}

// Prepare checks the instance and orders its components. It must be called
// before anything else, and again after a change. The error wraps ErrInstance or
// ErrCycle.
func (in *Instance) Prepare() error {
	if err := in.check(); err != nil {
		return err
	}
	in.outs = make([][]int, in.Components)
	callers := make([]int, in.Components)
	for c := range in.Choices {
		ch := &in.Choices[c]
		if ch.From == Source {
			continue
		}
		in.outs[ch.From] = append(in.outs[ch.From], c)
		for _, l := range ch.Legs {
			callers[l.To]++
		}
	}
	in.order = in.order[:0]
	for j := range callers {
		if callers[j] == 0 {
			in.order = append(in.order, j)
		}
	}
	for k := 0; k < len(in.order); k++ {
		for _, c := range in.outs[in.order[k]] {
			for _, l := range in.Choices[c].Legs {
				if callers[l.To]--; callers[l.To] == 0 {
					in.order = append(in.order, l.To)
				}
			}
		}
	}
	if len(in.order) < in.Components {
		return fmt.Errorf("%d of %d components: %w", in.Components-len(in.order), in.Components, ErrCycle)
	}
	in.demand()
	return nil
}

func (in *Instance) check() error {
	replicas := in.Components * in.Sites
	if in.Sites < 1 || in.Components < 1 || len(in.Service) != replicas || len(in.Capacity) != replicas || in.Curves != nil && len(in.Curves) != replicas {
		return fmt.Errorf("%d components, %d sites, %d services, %d capacities, %d curves: %w",
			in.Components, in.Sites, len(in.Service), len(in.Capacity), len(in.Curves), ErrInstance)
	}
	for r := range in.Service {
		if !(in.Service[r] >= 0) || !(in.Capacity[r] >= 0) {
			return fmt.Errorf("replica %d: service %v, capacity %v: %w", r, in.Service[r], in.Capacity[r], ErrInstance)
		}
	}
	for c := range in.Choices {
		if err := in.checkChoice(&in.Choices[c]); err != nil {
			return fmt.Errorf("choice %d: %w", c, err)
		}
	}
	return nil
}

func (in *Instance) checkChoice(ch *Choice) error {
	costs := in.Sites * in.Sites
	if ch.From == Source {
		costs = in.Sites
		if !(ch.Rate >= 0) || math.IsInf(ch.Rate, 1) || ch.Site < 0 || ch.Site >= in.Sites {
			return fmt.Errorf("rate %v at site %d: %w", ch.Rate, ch.Site, ErrInstance)
		}
	} else if ch.From < 0 || ch.From >= in.Components {
		return fmt.Errorf("from component %d: %w", ch.From, ErrInstance)
	}
	if len(ch.Legs) == 0 {
		return fmt.Errorf("without legs: %w", ErrInstance)
	}
	for _, l := range ch.Legs {
		if l.To < 0 || l.To >= in.Components || !(l.Ratio > 0) || math.IsInf(l.Ratio, 1) || len(l.Cost) != costs {
			return fmt.Errorf("leg to %d, ratio %v, %d costs: %w", l.To, l.Ratio, len(l.Cost), ErrInstance)
		}
		for _, x := range l.Cost {
			if !(x >= 0) {
				return fmt.Errorf("leg to %d: cost %v: %w", l.To, x, ErrInstance)
			}
		}
	}
	return nil
}

// demand computes how many calls a second each component gets, wherever they go.
func (in *Instance) demand() {
	in.load = make([]float64, in.Components)
	for c := range in.Choices {
		if ch := &in.Choices[c]; ch.From == Source {
			for _, l := range ch.Legs {
				in.load[l.To] += float64(ch.Rate * l.Ratio)
			}
		}
	}
	for _, j := range in.order {
		for _, c := range in.outs[j] {
			for _, l := range in.Choices[c].Legs {
				in.load[l.To] += float64(in.load[j] * l.Ratio)
			}
		}
	}
}

// Demand is the calls a second that component j gets at all its sites together.
func (in *Instance) Demand(j int) float64 { return in.load[j] }

// Plan is how the calls are shared out.
type Plan struct {
	// Flow is, by choice, the calls of From a second that go from site m to site p
	// (at m·Sites + p; of a source at p).
	Flow [][]float64
	// Load is the calls a second that replicas get.
	Load []float64
	// Best is, by choice, the best site from each site (of a source: one) in what
	// the plan leaves free, or if nothing is free of all; −1: none is allowed. It
	// serves where a choice has no flow.
	Best [][]int
	// Value is what a call costs at a replica, calls that it makes included, if no
	// capacity binds.
	Value []float64
	// Overload is, by component, what its capacities were multiplied by, 1 if its
	// replicas take all calls together.
	Overload []float64
	// Unplaced is, by choice, the rate of a source for which no way is allowed.
	Unplaced []float64
	// Spread is the rate of sources that had to go over a capacity because
	// constraints leave no other way.
	Spread float64
	// Bound is a proven lower bound of the cost, of Optimal only; Exact whether the
	// plan meets it; Steps how many changes of the basis it took.
	Bound float64
	Exact bool
	Steps int
}

func (in *Instance) newPlan() *Plan {
	p := &Plan{
		Flow: make([][]float64, len(in.Choices)), Best: make([][]int, len(in.Choices)), Load: make([]float64, len(in.Service)),
		Overload: make([]float64, in.Components), Unplaced: make([]float64, len(in.Choices)),
	}
	for c := range in.Choices {
		n := in.Sites
		if in.Choices[c].From != Source {
			n *= in.Sites
		}
		p.Flow[c] = make([]float64, n)
	}
	return p
}

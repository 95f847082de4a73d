package whatif

import (
	"math"

	"penstock/consumers/decider/assign"
)

// unit is one unit of weight in whole costs of package assign.
const unit = 1e9

// Least finds the placement of least objective for a frame, from where owners
// were, by itself: weights and costs are those of [Objective.Value], nothing is
// taken from a policy. It returns it with what is known of it; Solution.Exact
// says whether none is better.
func (o *Objective) Least(f *Frame, was Placement, s *Stage, capacity []int64, opts assign.Options) (Placement, *assign.Solution) {
	load, overload := o.demand(f, len(was))
	items := make([]int32, 0, len(f.all))
	for _, id := range f.all {
		if was[id] != NoSite {
			items = append(items, id)
		}
	}
	p := assign.Problem{
		Sites: len(capacity), Load: make([]int64, len(items)), Room: make([]int64, len(capacity)), Overload: overload * unit, Workers: 1,
		Rows: func(_, lo, hi int, out []int64) {
			for i := lo; i < hi; i++ {
				id := items[i]
				move := int64(math.Round(o.move(was[id], s.Stored[id], s.Settled[id]) * unit))
				row := out[(i-lo)*len(capacity) : (i-lo+1)*len(capacity)]
				for j := range row {
					row[j] = int64(math.Round(f.weight.edge(id, int16(j), o.Alpha, o.Beta) * unit))
					if int16(j) != was[id] {
						row[j] += move
					}
				}
			}
		},
	}
	for i, id := range items {
		p.Load[i] = load[id]
	}
	for j, ca := range capacity {
		p.Room[j] = math.MaxInt64 / 4
		if ca > 0 {
			p.Room[j] = o.usable(ca)
		}
	}
	solution := assign.Solve(&p, opts)
	to := append(Placement(nil), was...)
	for i, id := range items {
		if j := solution.Site[i]; j != assign.NoSite {
			to[id] = int16(j)
		}
	}
	return to, solution
}

// demand is the frame's traffic by id and the weight of a byte over capacity.
func (o *Objective) demand(f *Frame, ids int) (load []int64, overload float64) {
	load = make([]int64, ids)
	total, owners := int64(0), 0
	for i := range f.owners {
		w := &f.owners[i]
		load[w.id] = w.bytes
		if w.bytes > 0 {
			total += w.bytes
			owners++
		}
	}
	if total > 0 {
		overload = o.Overload * float64(owners) / float64(total)
	}
	return load, overload
}

// Clairvoyant is the strategy that no other can beat on the objective of single
// frames: before each it knows the frame's requests and places by the least
// objective for them. It shows what is to be had, and cannot be built.
type Clairvoyant struct {
	objective *Objective
	capacity  []int64
	options   assign.Options
	// Inexact is how many frames were not solved to the end.
	Inexact int
}

// NewClairvoyant makes the strategy. Frames have weights.
func NewClairvoyant(o *Objective, capacity []int64, options assign.Options) *Clairvoyant {
	return &Clairvoyant{objective: o, capacity: capacity, options: options}
}

// Name says what it is.
func (*Clairvoyant) Name() string { return "clairvoyant" }

// Before places for what is about to be asked.
func (c *Clairvoyant) Before(f *Frame, s *Stage) {
	to, solution := c.objective.Least(f, s.At, s, c.capacity, c.options)
	if !solution.Exact {
		c.Inexact++
	}
	copy(s.At, to)
}

// After does nothing.
func (*Clairvoyant) After(*Frame, *Stage) {}

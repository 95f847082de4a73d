package whatif

// Objective is what placement is judged by, whichever strategy placed
// (DESIGN §4.1, policy optimal): Σ E of all owners, the cost of what was moved,
// and what is over capacity.
type Objective struct {
	Alpha, Beta float64
	Headroom    float64
	// Overload is the weight of one mean owner's traffic over a capacity; PerGB
	// that of moving 1e9 bytes; PerUSD that of a dollar of egress; Margin that of
	// a move as such, of an owner that was placed before.
	Overload, PerGB, PerUSD, Margin float64
	Egress                          []float64 // US dollars a GB that leaves a site; nil: nothing
}

// Value is the objective of one frame's plan, by its terms.
type Value struct {
	Weight, Moving, Over float64
	OverBytes            int64 // Σ bytes over capacity if the frame came again
}

// Total is the sum of the terms.
func (v *Value) Total() float64 { return v.Weight + v.Moving + v.Over }

// Value is what a plan for a frame is worth: owners were at was and stand where
// the stage has them, if the frame's traffic came again. Owners that are not
// settled pay no margin: they have never been placed. The frame has weights.
func (o *Objective) Value(f *Frame, was Placement, s *Stage, capacity []int64) Value {
	at := s.At
	var v Value
	for _, id := range f.all {
		if at[id] == NoSite {
			continue
		}
		v.Weight += f.weight.edge(id, at[id], o.Alpha, o.Beta)
		if was[id] != at[id] && was[id] != NoSite {
			v.Moving += o.move(was[id], s.Stored[id], s.Settled[id])
		}
	}
	demand, overload := o.demand(f, len(at))
	load := make([]int64, len(capacity))
	for _, id := range f.all {
		if j := at[id]; j != NoSite {
			load[j] += demand[id]
		}
	}
	for j, ca := range capacity {
		if usable := o.usable(ca); ca > 0 && load[j] > usable {
			v.OverBytes += load[j] - usable
		}
	}
	v.Over = overload * float64(v.OverBytes)
	return v
}

// move is the cost of moving an owner's bytes from a site.
func (o *Objective) move(from int16, bytes int64, settled bool) float64 {
	gb := float64(bytes) / 1e9
	c := float64(o.PerGB * gb)
	if settled {
		c += o.Margin
	}
	if o.Egress != nil {
		c += float64(o.PerUSD * o.Egress[from] * gb)
	}
	return c
}

// usable is what the headroom leaves of a capacity, in whole bytes.
func (o *Objective) usable(capacity int64) int64 {
	if o.Headroom == 0 {
		return capacity
	}
	return int64(float64(capacity) * (1 - o.Headroom))
}

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

// Value is what a plan for a frame is worth: owners were at was and will be at
// at, if the frame's traffic came again. Owners that are not settled pay no
// margin: they have never been placed. The frame has weights.
func (o *Objective) Value(f *Frame, was, at Placement, stored []int64, settled []bool, capacity []int64) Value {
	var v Value
	for _, id := range f.all {
		if at[id] == NoSite {
			continue
		}
		v.Weight += f.weight.edge(id, at[id], o.Alpha, o.Beta)
		if was[id] != at[id] && was[id] != NoSite {
			v.Moving += o.move(was[id], stored[id], settled[id])
		}
	}
	load := make([]int64, len(capacity))
	total, owners := int64(0), 0
	for i := range f.owners {
		w := &f.owners[i]
		if w.bytes > 0 {
			total += w.bytes
			owners++
		}
		if s := at[w.id]; s != NoSite {
			load[s] += w.bytes
		}
	}
	for s, ca := range capacity {
		usable := int64(float64(ca) * (1 - o.Headroom))
		if ca > 0 && load[s] > usable {
			v.OverBytes += load[s] - usable
		}
	}
	if total > 0 {
		v.Over = o.Overload * float64(v.OverBytes) * float64(owners) / float64(total)
	}
	return v
}

// move is the cost of moving an owner's bytes from a site.
func (o *Objective) move(from int16, bytes int64, settled bool) float64 {
	gb := float64(bytes) / 1e9
	c := o.PerGB * gb
	if settled {
		c += o.Margin
	}
	if o.Egress != nil {
		c += o.PerUSD * o.Egress[from] * gb
	}
	return c
}

package placement

import "math"

// Plan is what a window's plan is worth on the one objective of Config.Objective,
// whichever policy made it.
type Plan struct {
	Owners int64 // whose data is at a site of the configuration, or on its way there
	// Weight is Σ E of owners at the sites that the plan gives them, Moving what
	// moving them there costs, Overload that of traffic over capacities, Total the
	// sum, all in units of weight.
	Weight, Moving, Overload, Total float64
	// Bound is what no plan for the same owners costs less than, limits and a
	// freeze left aside; NaN of tmatch, and of a plan that leaves somebody at a site
	// where it may not be, which costs less than it should.
	Bound float64
	// Exact: the least total was found, and nothing was held back from it.
	Exact bool
	// Gap is (Total − Bound) ÷ Bound, of at least one unit of weight: what isn't
	// known to be the least, and what limits and a freeze cost. NaN without a bound.
	Gap        float64
	Moves      int64
	MovedBytes int64   // stored bytes of owners that are moved
	USD        float64 // egress of moving them
	OverBytes  int64   // bytes a window over capacity × (1 − headroom)
}

// lastPlan is what LastPlan is answered from besides the state: it isn't part of
// it, and gone after a restart.
type lastPlan struct {
	planned   int // ids below were planned; 0: there is no plan
	moves     []pick
	bound     float64 // of owners that may be moved
	exact     bool
	fixedOver int64 // bytes over capacity that owners bring who may not be moved
}

// fixedFor are the reasons of owners that no plan may move.
var fixedFor = [codes]bool{
	LocationUnknown: true, UnknownSite: true, MoveUnderWay: true, NoAllowedSite: true, Pinned: true, Cooldown: true,
	BackingOff: true,
}

// heldFor are the reasons of owners that the plan would have moved.
var heldFor = [codes]bool{Frozen: true, MoveLimit: true, ByteLimit: true}

// LastPlan tells what the plan of the last window is worth, weights exact. It
// takes as long as the distances of all owners and their friends do. If that
// window had no plan (it was thin, incomplete, only observed or a rollback), or
// nothing was decided since the state was restored, all is 0 and Bound and Gap
// are NaN.
func (t *Policy) LastPlan() Plan {
	s, l := t.state, &t.last
	out := Plan{Bound: math.NaN(), Gap: math.NaN()}
	if l.planned == 0 {
		return out
	}
	sum := t.planWeights(l.planned)
	out.Owners, out.Weight = sum.owners, sum.weight.float()/unit
	for _, m := range l.moves {
		stored := s.stored[m.id]
		out.Moves++
		out.MovedBytes += stored
		out.USD += float64(t.egress[m.at] * (float64(stored) / 1e9))
		out.Moving += float64(t.movingCost(stored, m.at, !m.new)) / unit
	}
	for j := range t.config.Sites {
		out.OverBytes += max(0, sum.loads[j+1]-t.limit[j+1])
	}
	perByte := t.objective.Overload
	if sum.traffic > 0 {
		perByte *= float64(sum.busy) / float64(sum.traffic)
	}
	out.Overload = float64(perByte * float64(out.OverBytes))
	out.Total = out.Weight + out.Moving + out.Overload
	if t.config.Policy == Optimal && !sum.closed {
		out.Bound = l.bound + sum.fixed.float()/unit + float64(perByte*float64(l.fixedOver))
		out.Exact = l.exact && !sum.held
		out.Gap = max(0, out.Total-out.Bound) / max(1, math.Abs(out.Bound))
	}
	return out
}

// planSum is what all owners of a plan come to.
type planSum struct {
	owners, traffic, busy int64
	weight, fixed         total
	loads                 []int64
	held                  bool
	closed                bool // somebody that could leave is planned where it may not be
}

func (t *Policy) planWeights(n int) planSum {
	s := t.state
	parts := make([]planSum, t.workers)
	inParts(t.workers, n, func(worker, lo, hi int) {
		part, w := &parts[worker], newWeights(len(t.config.Sites))
		part.loads = make([]int64, len(t.config.Sites)+1)
		for id := int32(lo); id < int32(hi); id++ {
			if s.flags[id]&isOwner == 0 {
				continue
			}
			part.traffic += s.traffic[id]
			if s.traffic[id] > 0 {
				part.busy++
			}
			to, why := t.want[id], s.why[id]
			if to == 0 {
				continue
			}
			t.weigh(id, w)
			part.owners++
			part.weight.add(w.sum[to-1])
			part.loads[to] += s.traffic[id]
			if fixedFor[why] {
				part.fixed.add(w.sum[to-1])
			}
			part.held = part.held || heldFor[why]
			part.closed = part.closed || !fixedFor[why] && (!t.allowed(id)[to-1] || t.evacuated[to-1])
		}
	})
	out := planSum{loads: make([]int64, len(t.config.Sites)+1)}
	for _, part := range parts {
		out.owners, out.traffic, out.busy = out.owners+part.owners, out.traffic+part.traffic, out.busy+part.busy
		out.weight.join(part.weight)
		out.fixed.join(part.fixed)
		out.held, out.closed = out.held || part.held, out.closed || part.closed
		for j, v := range part.loads {
			out.loads[j] += v
		}
	}
	return out
}

package placement

import (
	"math"
	"slices"

	"penstock/consumers/decider/assign"
)

// The plan of policy optimal. Owners that may be moved are items, sites have
// soft capacities, and the total of the objective is made least:
//
//	cost(i, j) = E(i, j) + [j is not where i stands]·(Margin + PerGB·GB(i) + PerUSD·Egress[from]·GB(i))
//	total      = Σ cost + Overload ÷ t̄ · Σ bytes over capacity
//
// with t̄ = all traffic ÷ owners with traffic. Owners that may not be moved fill
// capacity where they stand.

// smallCells is up to how many cells (owners × sites) an instance is solved
// exactly, with exact weights; beyond, with kept distances and a bound.
const smallCells = 1 << 18

// mostCost bounds the cost of moving an owner, in units of weight, so that a cost
// of a row stays far inside 64 bits; sums of rows have 128.
const mostCost = 1e6 * unit

// freeItem marks an owner in want that the plan may move.
const freeItem = math.MaxUint16

// optimiser makes the plan of one window.
type optimiser struct {
	p *plan
	// ids are the owners that may be moved, in order of their names; nil: all ids
	// below count are, and they are in that order.
	ids   []int32
	count int
	load  []int64 // t(u) by item
	small bool
	open  [][]bool // by residency rule: sites that it and evacuations allow
	// fixed is the traffic of owners that may not be moved, by site number, and
	// stay that of all owners where they stand.
	fixed, stay []int64
	perByte     float64 // cost of a byte over capacity
	// Of large instances, by item: how wrong its row is, in steps of errorStep, and
	// by how much less its best site costs than where it stands.
	error []uint8
	gain  []float32

	matchers []*matcher
	solution *assign.Solution
	cost     float64 // of the plan, in units of weight
	moved    int     // items that the plan moves
	taken    bool    // some were taken back for the others' room, see keepWithinRoom
	kept     int     // of them, those that stay at a site that is being emptied
}

// optimise plans one window.
func (p *plan) optimise() {
	o := &optimiser{p: p}
	o.sort()
	o.solve()
	o.adopt()
	o.keepWithinRoom()
	o.guard()
}

// optimalPart is what one worker finds in sort.
type optimalPart struct {
	fixed, stay, remains []int64
	traffic, busy        int64
}

// sort tells the owners that may be moved from the others, which stand where
// they are, a move under way counted as done.
func (o *optimiser) sort() {
	p, t, s := o.p, o.p.t, o.p.t.state
	numbers := len(s.siteNames) + 1
	o.openSites()
	parts := make([]optimalPart, t.workers)
	inParts(t.workers, s.names.len(), func(w, lo, hi int) {
		part := &parts[w]
		part.fixed, part.stay, part.remains = make([]int64, numbers), make([]int64, numbers), make([]int64, numbers)
		for id := int32(lo); id < int32(hi); id++ {
			if s.flags[id]&isOwner == 0 {
				t.want[id], s.why[id] = 0, noReason
				continue
			}
			volume := s.traffic[id]
			to, why := o.fixedAt(id)
			t.want[id], s.why[id] = to, why
			part.remains[s.site[id]]++
			part.traffic += volume
			if volume > 0 {
				part.busy++
			}
			if to == freeItem {
				part.stay[s.site[id]] += volume
				continue
			}
			part.fixed[to] += volume
			part.stay[to] += volume
		}
	})
	o.fixed, o.stay, p.remains = make([]int64, numbers), make([]int64, numbers), make([]int64, numbers)
	var traffic, busy int64
	for _, part := range parts {
		for i := range part.fixed {
			o.fixed[i] += part.fixed[i]
			o.stay[i] += part.stay[i]
			p.remains[i] += part.remains[i]
		}
		traffic, busy = traffic+part.traffic, busy+part.busy
	}
	o.fixed, o.stay = o.fixed[:len(t.config.Sites)+1], o.stay[:len(t.config.Sites)+1]
	o.fixed[0], o.stay[0] = 0, 0
	o.perByte = t.objective.Overload * unit
	if traffic > 0 {
		o.perByte *= float64(busy) / float64(traffic)
	}
	o.list()
}

// openSites finds the sites that residency and evacuations leave, by rule.
func (o *optimiser) openSites() {
	t := o.p.t
	o.open = make([][]bool, len(t.residency.allowed))
	for r, allowed := range t.residency.allowed {
		o.open[r] = make([]bool, len(allowed))
		for j, ok := range allowed {
			o.open[r][j] = ok && !t.evacuated[j]
		}
	}
}

// ruleOf is the residency rule of an owner.
func (t *Policy) ruleOf(id int32) uint16 {
	if len(t.rule) == 0 {
		return 0
	}
	return t.rule[id]
}

// fixedAt returns the site of an owner that may not be moved and why, freeItem
// of one that may.
func (o *optimiser) fixedAt(id int32) (uint16, Code) {
	t := o.p.t
	if to, why := t.unsettled(id); why != noReason {
		return to, why
	}
	site, rule := t.state.site[id], t.ruleOf(id)
	if !o.open[rule][site-1] && !o.hasOther(id, rule) {
		return site, NoAllowedSite
	}
	if why := o.p.held(id); why != noReason {
		return site, why
	}
	return freeItem, noReason
}

// hasOther reports whether a site is open to an owner to which it wasn't refused.
func (o *optimiser) hasOther(id int32, rule uint16) bool {
	for j, ok := range o.open[rule] {
		if ok && !o.p.t.rejected(id, uint16(j+1)) {
			return true
		}
	}
	return false
}

// list lists the items and their loads, by name: an id is no more than when an
// owner was first seen.
func (o *optimiser) list() {
	t, s := o.p.t, o.p.t.state
	n := s.names.len()
	at, unordered := make([]int, t.workers), make([]bool, t.workers)
	inParts(t.workers, n, func(w, lo, hi int) {
		for rank, id := range s.names.sorted[lo:hi] {
			if t.want[id] == freeItem {
				at[w]++
			}
			unordered[w] = unordered[w] || int(id) != lo+rank
		}
	})
	for w := range at {
		at[w], o.count = o.count, o.count+at[w]
	}
	o.small = o.count*len(t.config.Sites) <= t.cells
	if o.count == n && !slices.Contains(unordered, true) {
		o.load = s.traffic[:n]
		return
	}
	o.ids, o.load = make([]int32, o.count), make([]int64, o.count)
	inParts(t.workers, n, func(w, lo, hi int) {
		k := at[w]
		for _, id := range s.names.sorted[lo:hi] {
			if t.want[id] == freeItem {
				o.ids[k], o.load[k] = id, s.traffic[id]
				k++
			}
		}
	})
}

func (o *optimiser) id(item int) int32 {
	if o.ids == nil {
		return int32(item)
	}
	return o.ids[item]
}

// solve finds the sites of the items.
func (o *optimiser) solve() {
	if o.count == 0 {
		o.solution = &assign.Solution{Exact: true, Method: "none", Prices: make([]float64, len(o.p.t.config.Sites))}
		return
	}
	t := o.p.t
	o.matchers = make([]*matcher, t.workers)
	for w := range o.matchers {
		o.matchers[w] = t.newMatcher()
	}
	problem := &assign.Problem{
		Sites: len(t.config.Sites), Load: o.load, Overload: o.perByte, Rows: o.rows, Workers: t.workers,
	}
	for j := range t.config.Sites {
		problem.Room = append(problem.Room, t.limit[j+1]-o.fixed[j+1])
	}
	if !o.small {
		o.error, o.gain = make([]uint8, o.count), make([]float32, o.count)
	}
	o.solution = assign.Solve(problem, assign.Options{Cells: t.cells, Nodes: t.nodes})
	o.cost = float64(o.solution.Cost)
}

// adopt makes the solution the match of the plan, and says why owners stay: no
// site costs them less, or one would but refused them or has no room.
func (o *optimiser) adopt() {
	p, t, s := o.p, o.p.t, o.p.t.state
	p.expected = append([]int64(nil), o.fixed...)
	parts := make([][]int64, t.workers)
	moved := make([]int, t.workers)
	inParts(t.workers, o.count, func(w, lo, hi int) {
		expected := make([]int64, len(p.expected))
		for i := lo; i < hi; i++ {
			id := o.id(i)
			to, site := o.solution.Site[i]+1, s.site[id]
			t.want[id], s.why[id] = to, noReason
			expected[to] += o.load[i]
			switch {
			case to != site:
				moved[w]++
			case s.best[id] == site:
				s.why[id] = NoImprovement
			case t.rejected(id, s.best[id]):
				s.why[id] = Rejected
			default:
				s.why[id] = NoRoom
			}
		}
		parts[w] = expected
	})
	for w, part := range parts {
		o.moved += moved[w]
		for j, v := range part {
			p.expected[j] += v
		}
	}
}

// wrong is by how much all rows together may be wrong, in units of weight.
func (o *optimiser) wrong() float64 {
	parts := make([]int64, o.p.t.workers)
	inParts(o.p.t.workers, len(o.error), func(w, lo, hi int) {
		for _, e := range o.error[lo:hi] {
			parts[w] += int64(e)
		}
	})
	var steps int64
	for _, n := range parts {
		steps += n
	}
	return float64(steps) * errorStep
}

// report says what was over its capacity, and what the plan is worth.
func (o *optimiser) report() {
	p, t, s := o.p, o.p.t, o.p.t.state
	count, volume := make([][]int64, t.workers), make([][]int64, t.workers)
	inParts(t.workers, o.count, func(w, lo, hi int) {
		count[w], volume[w] = make([]int64, len(p.expected)), make([]int64, len(p.expected))
		for i := lo; i < hi; i++ {
			if id := o.id(i); o.leaves(id) {
				count[w][s.site[id]]++
				volume[w][s.site[id]] += o.load[i]
			}
		}
	})
	within := 0
	for j, site := range t.config.Sites {
		excess := o.above(uint16(j+1), o.stay[j+1])
		if excess == 0 {
			within++
			continue
		}
		var leave, relieved int64
		for w, c := range count {
			if c != nil {
				leave, relieved = leave+c[j+1], relieved+volume[w][j+1]
			}
		}
		p.reasons.add(OverCapacity, site.Name, leave, map[string]any{
			"load": o.stay[j+1], "limit": t.limit[j+1], "excess": excess, "relieved": relieved,
		}, "load %d B is %d B above what the site takes; owners with %d B are to leave it", o.stay[j+1], excess, relieved)
	}
	if within > 0 {
		p.reasons.add(WithinCapacity, "", int64(within), nil, "sites whose load is within their capacity")
	}
	o.optimised()
}

// optimised reports the plan before limits and a freeze, and keeps what later
// questions are answered from. What rows may be wrong by is taken off the bound
// and added to the gap. The bound is of plans in which all leave the sites that
// are being emptied: it says nothing of one in which some stay there.
func (o *optimiser) optimised() {
	t := o.p.t
	wrong := o.wrong()
	bound := float64(o.solution.Bound) - wrong
	gap := max(0, o.cost+wrong-bound) / max(math.Abs(bound), unit)
	exact := o.solution.Exact && o.error == nil && !o.taken
	for j, price := range o.solution.Prices {
		t.state.prices[j+1] = price / unit
	}
	t.last = lastPlan{bound: bound / unit, exact: exact, fixedOver: o.aboveAll(o.fixed)}
	evidence := map[string]any{"total": math.Round(o.cost) / unit, "exact": exact, "method": o.solution.Method}
	if o.kept > 0 {
		o.p.reasons.add(Optimised, "", int64(o.count), evidence,
			"owners that may be moved; %d of them stay at sites that are being emptied, for want of room", o.kept)
		return
	}
	evidence["bound"], evidence["gap"] = math.Round(bound)/unit, gap
	o.p.reasons.add(Optimised, "", int64(o.count), evidence, "owners that may be moved; the plan is within %.3g %% of the least total", 100*gap)
}

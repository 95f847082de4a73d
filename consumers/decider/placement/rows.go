package placement

import (
	"math"

	"penstock/consumers/decider/assign"
)

// errorStep is the unit in which the error of a row is kept, in units of weight;
// a row that could be more than mostError steps wrong is computed exactly.
const (
	errorStep = 2000
	mostError = 255
)

// rows writes the costs of items lo to hi−1: assign.Problem.Rows. It also notes,
// of each, the site that costs least and how wrong the row may be: the same
// whenever it is asked.
func (o *optimiser) rows(worker, lo, hi int, out []int64) {
	n, m := len(o.p.t.config.Sites), o.matchers[worker]
	for i := lo; i < hi; i++ {
		if !o.small && (i-lo)%touchAhead == 0 {
			o.touch(i, min(i+touchAhead, hi), m)
		}
		o.row(i, m, out[(i-lo)*n:(i-lo+1)*n])
	}
}

// row writes the costs of one item.
func (o *optimiser) row(item int, m *matcher, row []int64) {
	t, id, wrong := o.p.t, o.id(item), uint8(0)
	if o.small || !t.weighRoughly(id, m, row, &wrong) {
		t.weigh(id, m.exact)
		copy(row, m.exact.sum)
	}
	if o.error != nil {
		o.error[item] = wrong
	}
	best := o.charge(id, row)
	t.state.best[id] = best
	if o.gain == nil || best == 0 {
		return
	}
	// Most movers go to their best site: their gain needs no second look.
	o.gain[item] = 0
	if stay := row[t.state.site[id]-1]; stay != assign.Forbidden {
		o.gain[item] = float32(stay - row[best-1])
	}
}

func (o *optimiser) touch(lo, hi int, m *matcher) {
	if o.ids == nil {
		o.p.t.touch(lo, hi, m)
		return
	}
	for _, id := range o.ids[lo:hi] {
		o.p.t.touch(int(id), int(id)+1, m)
	}
}

// charge adds what a move costs to the sites where an owner doesn't stand, closes
// those where it may not be, and returns the number of the one that would cost
// least, one that refused the owner included: where it stands, if that is one.
func (o *optimiser) charge(id int32, row []int64) uint16 {
	t, s := o.p.t, o.p.t.state
	site := int(s.site[id]) - 1
	move := t.movingCost(s.stored[id], s.site[id], s.flags[id]&matched != 0 && !t.evacuated[site])
	refused := -1
	if m := s.move[id]; m >= 0 && s.moves[m].status == moveRefused && s.moves[m].from == s.site[id] {
		refused = int(s.moves[m].to) - 1
	}
	open := o.open[t.ruleOf(id)]
	best, least := -1, int64(assign.Forbidden)
	if open[site] {
		best, least = site, row[site]
	}
	for j := range row {
		if !open[j] {
			row[j] = assign.Forbidden
			continue
		}
		if j != site {
			row[j] += move
		}
		if row[j] < least {
			best, least = j, row[j]
		}
		if j == refused {
			row[j] = assign.Forbidden
		}
	}
	return uint16(best + 1)
}

// movingCost is what moving an owner's data costs, in units of weight. It is never
// nothing: of sites that are as good, an owner's own is better, or owners of whom
// nothing is known would gather at the first site.
func (t *Policy) movingCost(stored int64, from uint16, margin bool) int64 {
	gb := float64(stored) / 1e9
	cost := float64(t.objective.PerGB*gb) + float64(t.objective.PerUSD*float64(t.egress[from]*gb))
	if margin {
		cost += t.objective.Margin
	}
	return int64(max(1, min(math.Round(cost*unit), mostCost)))
}

// weighRoughly writes an owner's weights by kept distances and by how many steps
// of errorStep one of them may be wrong; false if that is too much.
func (t *Policy) weighRoughly(id int32, m *matcher, row []int64, wrong *uint8) bool {
	if !t.setRoughly(id, m) {
		return false
	}
	a, b := t.config.Alpha, t.config.Beta
	// A normalised value of at most 1 is wrong by its error twice: by that of the
	// numerator and by that of the span (see bound).
	twice := func(e float64) float64 { return float64(2 * e * (1 + float64(2*e))) }
	e := float64(a*twice(m.dist.error)) + float64(b*twice(m.soc.error)) + float64(4/unit*(1+a+b))
	steps := math.Ceil(e * unit / errorStep)
	if steps > mostError {
		return false
	}
	*wrong = uint8(steps)
	value, soc := m.value, m.soc.value[:len(m.value)]
	for c, d := range m.dist.value[:len(m.value)] {
		value[c] = float64((float64(a*d)+float64(b*soc[c]))*unit) + 0.5
	}
	for j, c := range t.corner {
		row[j] = int64(value[c])
	}
	return true
}

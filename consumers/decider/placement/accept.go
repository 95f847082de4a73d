package placement

import (
	"math"
	"slices"
)

// total adds up whole numbers without leaving 64 bits, in any order.
type total struct{ high, low int64 }

const lowBits = 24

func (t *total) add(v int64)   { t.high += v >> lowBits; t.low += v & (1<<lowBits - 1) }
func (t *total) join(o total)  { t.high += o.high; t.low += o.low }
func (t total) float() float64 { return float64(t.high)*(1<<lowBits) + float64(t.low) }

// rate orders owners by a number per stored byte: one that has none stored comes
// by the number itself. Its order is that of the numbers.
func rate(v float64, stored int64) int64 {
	bits := int64(math.Float64bits(v / float64(stored+1)))
	if bits < 0 {
		bits ^= math.MaxInt64
	}
	return bits
}

// above is by how much a load is above the usable capacity of a site.
func (o *optimiser) above(site uint16, load int64) int64 {
	return max(0, load-o.p.t.limit[site])
}

// aboveAll is Σ bytes over capacity of sites with such loads.
func (o *optimiser) aboveAll(loads []int64) (sum int64) {
	for j := range o.p.t.config.Sites {
		sum += o.above(uint16(j+1), loads[j+1])
	}
	return sum
}

// leaves reports whether the plan moves an item.
func (o *optimiser) leaves(id int32) bool {
	t, s := o.p.t, o.p.t.state
	return t.want[id] != s.site[id] && t.want[id] != 0 && s.why[id] == noReason
}

// forced reports whether an owner may not be where it stands.
func (o *optimiser) forced(id int32) bool {
	t := o.p.t
	return !o.open[t.ruleOf(id)][t.state.site[id]-1]
}

// moverPart is what one worker finds in movers.
type moverPart struct {
	relief, rest int // how many; then where the worker's begin
	gain         total
	stay         []int64
}

// movers lists the owners that the plan moves: those that leave a site that is
// over its capacity or that they may not be at, by traffic relieved a stored
// byte, and the others by gain a stored byte. It returns by how much less all of
// them cost than where they stand, and the loads of sites if those that may had
// stayed. The lists are long and made once: owners are counted first.
func (o *optimiser) movers() (relief, rest []entry, gain total, stay []int64) {
	t := o.p.t
	parts := make([]moverPart, t.workers)
	inParts(t.workers, o.count, func(w, lo, hi int) {
		part := moverPart{stay: make([]int64, len(o.p.expected))}
		for i := lo; i < hi; i++ {
			switch id := o.id(i); {
			case !o.leaves(id):
			case o.relieves(id):
				part.relief++
			default:
				part.rest++
			}
		}
		parts[w] = part
	})
	var first, second int
	for w := range parts {
		p := &parts[w]
		p.relief, first = first, first+p.relief
		p.rest, second = second, second+p.rest
	}
	relief, rest = make([]entry, first), make([]entry, second)
	inParts(t.workers, o.count, func(w, lo, hi int) { o.listMovers(w, lo, hi, &parts[w], relief, rest) })
	stay = slices.Clone(o.p.expected)
	for _, part := range parts {
		gain.join(part.gain)
		for j, v := range part.stay {
			stay[j] += v
		}
	}
	return relief, rest, gain, stay
}

// relieves reports whether an owner that the plan moves leaves a site that is
// over its capacity, or at which it may not be.
func (o *optimiser) relieves(id int32) bool {
	site := o.p.t.state.site[id]
	return o.above(site, o.stay[site]) > 0 || o.forced(id)
}

// listMovers writes the movers among items lo to hi−1.
func (o *optimiser) listMovers(w, lo, hi int, part *moverPart, relief, rest []entry) {
	t, s, row := o.p.t, o.p.t.state, make([]int64, len(o.p.t.config.Sites))
	for i := lo; i < hi; i++ {
		id := o.id(i)
		if !o.leaves(id) {
			continue
		}
		less := int64(0)
		if !o.forced(id) {
			if o.gain != nil && t.want[id] == s.best[id] {
				less = int64(o.gain[i])
			} else {
				o.row(i, o.matchers[w], row)
				less = row[s.site[id]-1] - row[t.want[id]-1]
			}
			part.gain.add(less)
			part.stay[t.want[id]] -= o.load[i]
			part.stay[s.site[id]] += o.load[i]
		}
		e := entry{rank: s.names.rank[id], id: id}
		if o.relieves(id) {
			e.key = rate(float64(o.load[i]), s.stored[id])
			relief[part.relief] = e
			part.relief++
		} else {
			e.key = rate(float64(less), s.stored[id])
			rest[part.rest] = e
			part.rest++
		}
	}
}

// guard holds back what the guardrails don't let through, and lists the rest. A
// plan that isn't proved the best and is worth less than to move nobody (but who
// must) is dropped.
func (o *optimiser) guard() {
	p := o.p
	moves, volume := p.t.limits()
	beyond := func() bool { return int64(o.moved) > moves || o.volume() > volume }
	limited := !p.in.Operator.Frozen && beyond()
	if o.moved > 0 && (limited || !o.solution.Exact) {
		relief, rest, gain, stay := o.movers()
		lost := gain.float() + float64(o.perByte*float64(o.aboveAll(stay)-o.aboveAll(p.expected)))
		if !o.solution.Exact && lost < 0 {
			o.drop(relief, rest)
			o.cost += lost
			// Those who must leave are under the limits like any.
			relief, rest = o.leaving(relief), o.leaving(rest)
			limited = limited && beyond()
		}
		if limited {
			o.limit(relief, rest, moves, volume)
		}
	}
	o.report()
	if p.in.Operator.Frozen {
		p.holdAll(p.gather(o.leaves), Frozen)
		return
	}
	o.pick()
}

// volume is how many stored bytes the plan moves, as far as 64 bits hold it.
func (o *optimiser) volume() int64 {
	t := o.p.t
	if t.config.Limits.Bytes == 0 {
		return 0
	}
	parts := make([]total, t.workers)
	inParts(t.workers, o.count, func(w, lo, hi int) {
		for i := lo; i < hi; i++ {
			if id := o.id(i); o.leaves(id) {
				parts[w].add(t.state.stored[id])
			}
		}
	})
	for _, part := range parts[1:] {
		parts[0].join(part)
	}
	if v := parts[0].float(); v < math.MaxInt64/2 {
		return int64(v)
	}
	return math.MaxInt64
}

// drop lets all movers stay that may.
func (o *optimiser) drop(lists ...[]entry) {
	for _, list := range lists {
		for _, e := range list {
			if !o.forced(e.id) {
				o.p.hold(e.id, NoImprovement, o.p.expected)
				o.moved--
			}
		}
	}
}

// leaving are the entries of those whom the plan still moves.
func (o *optimiser) leaving(list []entry) []entry {
	return slices.DeleteFunc(list, func(e entry) bool { return !o.leaves(e.id) })
}

// pick lists what is moved, and why.
func (o *optimiser) pick() {
	p, t, s := o.p, o.p.t, o.p.t.state
	for _, e := range p.gather(o.leaves) {
		site, why := s.site[e.id], Improved
		switch {
		case p.evac[site-1]:
			why = Evacuating
		case o.above(site, o.stay[site]) > 0:
			why = OverCapacity
		}
		s.why[e.id] = why
		p.picks = append(p.picks, pick{id: e.id, from: site, to: t.want[e.id], why: why})
	}
}

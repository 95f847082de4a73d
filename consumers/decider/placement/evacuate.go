package placement

import (
	"slices"

	"penstock/consumers/decider/assign"
)

// keepWithinRoom lets owners leave a site that is being emptied within the
// others' room only (DESIGN §4.1). Where their new site would be over its
// capacity they are taken back, most traffic first; then each of them in turn
// goes to the cheapest site that has room for all of its traffic, or stays. The
// cost of the plan follows; that it was the least is no longer known.
func (o *optimiser) keepWithinRoom() {
	p, t, s := o.p, o.p.t, o.p.t.state
	if !slices.Contains(p.evac, true) {
		return
	}
	over := func(id int32) bool { return o.above(t.want[id], p.expected[t.want[id]]) > 0 }
	q := queue{entries: p.gather(func(id int32) bool {
		return o.leaves(id) && p.evac[s.site[id]-1] && s.traffic[id] > 0 && over(id)
	})}
	type taken struct {
		entry
		to uint16 // where the solution has it
	}
	var back []taken
	before := o.aboveAll(p.expected)
	for {
		e, ok := q.next()
		if !ok {
			break
		}
		if over(e.id) {
			back = append(back, taken{e, t.want[e.id]})
			p.hold(e.id, NoRoom, p.expected)
			o.moved--
		}
	}
	w, row := newWeights(len(t.config.Sites)), make([]int64, len(t.config.Sites))
	var more total
	for _, e := range back {
		t.weigh(e.id, w)
		copy(row, w.sum)
		o.charge(e.id, row)
		more.add(-row[e.to-1])
		o.fit(e.id, row)
		if to := t.want[e.id]; to != s.site[e.id] {
			more.add(row[to-1])
		} else {
			more.add(w.sum[to-1])
			o.kept++
		}
	}
	o.taken = len(back) > 0
	o.cost += more.float() + float64(o.perByte*float64(o.aboveAll(p.expected)-before))
}

// fit moves an owner to the site of least cost among those with room for it.
func (o *optimiser) fit(id int32, row []int64) {
	p, t, s := o.p, o.p.t, o.p.t.state
	to, least, volume := uint16(0), int64(assign.Forbidden), s.traffic[id]
	for j, cost := range row {
		if cost < least && p.expected[j+1]+volume <= t.limit[j+1] {
			to, least = uint16(j+1), cost
		}
	}
	if to == 0 {
		return
	}
	t.want[id], s.why[id] = to, noReason
	p.expected[s.site[id]] -= volume
	p.expected[to] += volume
	o.moved++
}

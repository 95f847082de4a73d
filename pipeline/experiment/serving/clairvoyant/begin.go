package clairvoyant

import "math"

// begin sets first prices and returns the cost of a schedule of the relaxation, which no
// bound can be above by more than the width of slots.
//
// The schedule works in each slot on those that have come, by what waiting costs them:
// penalty for each unit of work, less the more time they have. The price of a slot is what
// the work behind it in the same busy time loses by being a slot later.
func (d *dual) begin() float64 {
	m, n := d.m, len(d.prices)
	left := make([]float64, len(d.jobs))
	for i := range d.jobs {
		left[i] = d.jobs[i].Work
	}
	lost := make([]float64, n) // of each slot, for each unit of work and second
	full := make([]bool, n)
	cost, next := 0.0, 0
	var open []int
	for t := range n {
		now := float64(t) * m.Slot
		for next < len(d.jobs) && d.first[next] <= t {
			open = append(open, next)
			next++
		}
		room := m.Free[t] + m.Bought[t]
		all := room
		for room > 1e-12 && len(open) > 0 {
			k := d.urgent(open, now)
			i := open[k]
			w := min(room, left[i])
			j := &d.jobs[i]
			if now > j.Due {
				rate := j.Penalty / j.Work
				lost[t] = rate
				cost += float64(rate*w) * (now - j.Due)
			} else {
				lost[t] = 0
			}
			room -= w
			if left[i] -= w; left[i] <= 1e-12 {
				open[k] = open[len(open)-1]
				open = open[:len(open)-1]
			}
		}
		full[t] = room <= 1e-12
		if used := all - room - m.Free[t]; used > 0 {
			cost += float64(m.Price * used)
		}
	}
	for _, i := range open {
		j := &d.jobs[i]
		cost += j.Penalty / j.Work * left[i] * max(0, float64(n)*m.Slot-j.Due)
	}
	v := 0.0
	for t := n - 1; t >= 0; t-- {
		if !full[t] {
			v = 0
			continue
		}
		v += float64(lost[t] * m.Slot)
		if d.prices[t] = v; m.Bought[t] > 0 {
			d.prices[t] = v + m.Price
		}
	}
	return cost
}

// urgent is the open job to work on: that with the greatest penalty for a unit of work,
// less the more time it has.
func (d *dual) urgent(open []int, now float64) int {
	best, most := 0, -1.0
	for k, i := range open {
		j := &d.jobs[i]
		if index := j.Penalty / j.Work * math.Exp(-max(0, j.Due-now)/2); index > most {
			best, most = k, index
		}
	}
	return best
}

package shares

import "math"

// mostOwed bounds what a site is owed beside the order, in requests: more can't be
// but for requests that were picking while the tables changed.
const mostOwed = 2

// follow lets a choice go on where another one for the same link stops. A round
// that began anew with each table would favour the sites that come first in it, as
// much as tables change often and requests are few. So it begins at the place at
// which sites are owed, as nearly as there is one, what the old one owes them; what
// is left is kept for the next.
func (c *choice) follow(old *choice) {
	turn := c.turn.Load()
	debts := make([]float64, len(c.owed))
	if old != nil {
		owed := old.owing(turn)
		for i, ratio := range c.row.Ratios {
			if j := old.index(ratio.Site); j >= 0 && c.chosen(i) {
				debts[i] = max(-mostOwed, min(mostOwed, owed[j]))
			}
		}
	}
	place, left := c.matching(debts)
	c.start = (place + Units - turn%Units) % Units
	c.owed = left
}

// owing returns how many requests sites are owed at a turn: their exact part less
// what they got.
func (c *choice) owing(turn uint64) []float64 {
	owed := append([]float64(nil), c.owed...)
	lag := c.lags()
	for at := range (turn + c.start) % Units {
		lag.step(at)
	}
	for i := range owed {
		owed[i] += float64(lag.of[i]) / Units
	}
	return owed
}

// matching finds the place of the order at which what sites are owed is nearest
// to some debts, and returns what is left of these.
func (c *choice) matching(debts []float64) (place uint64, left []float64) {
	least := math.Inf(1)
	lag := c.lags()
	for at := range uint64(Units) {
		sum := 0.0
		for i, d := range debts {
			off := d - float64(lag.of[i])/Units
			sum += float64(off * off)
		}
		if sum < least {
			place, least = at, sum
		}
		lag.step(at)
	}
	lag = c.lags()
	for at := range place {
		lag.step(at)
	}
	left = make([]float64, len(debts))
	for i, d := range debts {
		left[i] = d - float64(lag.of[i])/Units
	}
	return place, left
}

// lags walks along an order.
type lags struct {
	c     *choice
	units []int64
	of    []int64 // what each site is owed, in 1/Units requests
}

func (c *choice) lags() *lags {
	l := &lags{c: c, units: make([]int64, len(c.owed)), of: make([]int64, len(c.owed))}
	for _, i := range c.order {
		l.units[i]++
	}
	return l
}

func (l *lags) step(at uint64) {
	for i, u := range l.units {
		l.of[i] += u
	}
	l.of[l.c.order[at]] -= Units
}

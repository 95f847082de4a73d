package line

import (
	"math"
	"slices"
)

// Plain is a line as the paper describes it: a list, walked through at every
// question. It is what [Line] is tested against, and what golden scripts show.
// Its methods are those of Line and return the same.
type Plain struct {
	discipline Discipline
	decay      float64
	abreast    int64
	items      []Item
}

// NewPlain returns an empty line.
func NewPlain(d Discipline) *Plain { return &Plain{discipline: d, decay: 1, abreast: 1} }

// SetDecay is [Line.SetDecay].
func (p *Plain) SetDecay(perSecond float64) { p.decay = decayOf(perSecond) }

// SetAbreast is [Line.SetAbreast].
func (p *Plain) SetAbreast(n int) { p.abreast = int64(max(1, n)) }

// Insert is [Line.Insert].
func (p *Plain) Insert(now int64, it Item) Place {
	p.Remove(it.ID)
	it = it.clean()
	place := p.at(p.place(instant(now), &it))
	p.items = slices.Insert(p.items, place.Index, it)
	return place
}

// Place is [Line.Place].
func (p *Plain) Place(now int64, it Item) Place {
	it = it.clean()
	return p.at(p.place(instant(now), &it))
}

// Peek is [Line.Peek].
func (p *Plain) Peek(now int64) (Item, bool) {
	if len(p.items) == 0 {
		return Item{}, false
	}
	return p.items[p.next(instant(now))], true
}

// Pop is [Line.Pop].
func (p *Plain) Pop(now int64) (Item, bool) {
	if len(p.items) == 0 {
		return Item{}, false
	}
	return p.take(p.next(instant(now))), true
}

// Remove is [Line.Remove].
func (p *Plain) Remove(id uint64) (Item, bool) {
	k := slices.IndexFunc(p.items, func(it Item) bool { return it.ID == id })
	if k < 0 {
		return Item{}, false
	}
	return p.take(k), true
}

// Len is [Line.Len].
func (p *Plain) Len() int { return len(p.items) }

// Sums is [Line.Sums].
func (p *Plain) Sums() (static, dynamic, service float64, nStatic, nDynamic int) {
	var ns int64
	for i := range p.items {
		it := &p.items[i]
		static += it.Static
		dynamic += it.Dynamic
		ns += it.serviceNs()
		if it.Dynamic > 0 {
			nDynamic++
		} else {
			nStatic++
		}
	}
	return static, dynamic, seconds(ns), nStatic, nDynamic
}

// Each is [Line.Each].
func (p *Plain) Each(fn func(Item) bool) {
	for _, it := range p.items {
		if !fn(it) {
			return
		}
	}
}

// Increase is [Line.Increase]: the penalties of x_i and of everyone behind it,
// with x_i at its place and without.
func (p *Plain) Increase(now int64, it Item, w Wait) (after, before float64) {
	now, it, w = instant(now), it.clean(), w.clean()
	k := p.place(now, &it)
	at := p.at(k)
	static, dynamic := at.Static, at.Dynamic
	after = it.penalty(now, w.of(static, dynamic))
	for i := k; i < len(p.items); i++ {
		x := &p.items[i]
		before += x.penalty(now, w.of(static, dynamic))
		after += x.penalty(now, w.of(static+it.Static, dynamic+it.Dynamic))
		static += x.Static
		dynamic += x.Dynamic
	}
	return after, before
}

// Potential is [Line.Potential].
func (p *Plain) Potential(now int64, w Wait) float64 {
	now, w = instant(now), w.clean()
	var sum, static, dynamic float64
	for i := range p.items {
		x := &p.items[i]
		sum += x.penalty(now, w.of(static, dynamic))
		static += x.Static
		dynamic += x.Dynamic
	}
	return sum
}

// Spread is [Line.Spread].
func (p *Plain) Spread(now int64, it Item) float64 {
	now, it = instant(now), it.clean()
	slacks := make([]float64, 0, len(p.items)+1)
	for _, x := range append(p.items[:len(p.items):len(p.items)], it) {
		if x.Deadline >= now {
			slacks = append(slacks, seconds(x.Deadline-now))
		}
	}
	if len(slacks) == 0 {
		return 0
	}
	var mean, squares float64
	for _, s := range slacks {
		mean += s / float64(len(slacks))
	}
	for _, s := range slacks {
		squares += (s - mean) * (s - mean)
	}
	return math.Sqrt(squares/float64(len(slacks))) / float64(len(p.items)+1)
}

// place returns the index at which the item goes in.
func (p *Plain) place(now int64, it *Item) int {
	if p.discipline == FIFO {
		return len(p.items)
	}
	k := slices.IndexFunc(p.items, func(x Item) bool { return x.Deadline > it.Deadline })
	if k < 0 {
		return len(p.items)
	}
	if p.discipline == Cheapest {
		return p.walk(now, it, k)
	}
	return k
}

// walk is A2's, from the tail to the place k by deadline: it returns the index
// behind the first x_j that would lose more by letting x_i pass than x_i loses
// by waiting for it.
func (p *Plain) walk(now int64, it *Item, k int) int {
	var ahead int64 // Σ t̂_l, l ≤ j
	for l := range p.items {
		ahead += p.items[l].serviceNs()
	}
	for j := len(p.items); j > k; j-- {
		x := &p.items[j-1]
		behind := later(now, ahead/p.abreast, it)
		ahead -= x.serviceNs()
		front := later(now, (ahead+it.serviceNs())/p.abreast, x)
		if front > behind {
			return j
		}
	}
	return k
}

// later returns the penalty of a request that waits for ns of service.
func later(now, ns int64, x *Item) float64 {
	return x.Penalty * max(0, seconds(plus(now-x.Deadline, ns)))
}

// plus returns a + b, b ≥ 0, at most what fits.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// next returns the index of whom the discipline takes from a line that is not empty.
func (p *Plain) next(now int64) int {
	best, most := 0, math.Inf(-1)
	for i := range p.items {
		x := &p.items[i]
		var worth float64
		switch p.discipline {
		case Lateness:
			worth = x.penalty(now, 0)
		case Cost:
			worth = score(x.worth(), now, x.Deadline, p.decay)
		case FIFO, Deadline, Cheapest:
			return 0
		}
		if worth > most {
			best, most = i, worth
		}
	}
	return best
}

func (p *Plain) take(k int) Item {
	it := p.items[k]
	p.items = slices.Delete(p.items, k, k+1)
	return it
}

// at returns the place of that index.
func (p *Plain) at(k int) Place {
	place := Place{Index: k}
	for i := range k {
		place.Static += p.items[i].Static
		place.Dynamic += p.items[i].Dynamic
	}
	return place
}

// decayOf returns a decay that can be: 1/s for one that cannot.
func decayOf(perSecond float64) float64 {
	if perSecond > 0 && perSecond <= mostAmount {
		return perSecond
	}
	return 1
}

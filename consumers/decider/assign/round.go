package assign

import (
	"cmp"
	"math"
	"slices"
)

// local is an assignment of a core that is being improved.
type local struct {
	c    *core
	slot []int32 // by item
	left []int64 // by site: room less load, negative if over
}

// rounded makes the flow's assignment whole: items that it splits go, most load
// first, to the slot of theirs that costs least by then.
func (c *core) rounded(f *flow) *local {
	l := &local{c: c, slot: make([]int32, c.items()), left: slices.Clone(c.room)}
	var parts []int32
	for i := range l.slot {
		if f.split(i) {
			parts = append(parts, int32(i))
			continue
		}
		l.slot[i] = f.at[i]
		l.left[c.site[f.at[i]]] -= c.load[i]
	}
	slices.SortStableFunc(parts, func(a, b int32) int { return cmp.Compare(c.load[b], c.load[a]) })
	for _, i := range parts {
		best, value := int32(-1), math.Inf(1)
		for s := c.off[i]; s < c.off[i+1]; s++ {
			// A slot without a share of the item is not one of the relaxation's.
			if f.amount(i, s) == 0 {
				continue
			}
			if v := float64(c.cost[s]) + l.entering(c.site[s], c.load[i]); v < value {
				best, value = s, v
			}
		}
		l.slot[i] = best
		l.left[c.site[best]] -= c.load[i]
	}
	return l
}

// entering is the overload that a load brings to a site, leaving what it takes
// away.
func (l *local) entering(site uint16, load int64) float64 {
	if v := l.left[site]; v < load {
		return float64(l.c.overload * float64(load-max(v, 0)))
	}
	return 0
}

func (l *local) leaving(site uint16, load int64) float64 {
	return float64(l.c.overload * float64(min(load, max(-l.left[site], 0))))
}

func (l *local) move(i, to int32) {
	c := l.c
	l.left[c.site[l.slot[i]]] += c.load[i]
	l.left[c.site[to]] -= c.load[i]
	l.slot[i] = to
}

// worth reports whether a difference of cost is an improvement, rather than the
// rounding of terms of some size.
func worth(gain, size float64) bool { return gain > 0.5+float64(size*1e-12) }

const (
	passes = 12  // over all items at most, of moves
	nearby = 256 // items that are tried in pairs
)

// improve moves items and exchanges pairs of them while that makes the
// assignment cheaper. Items with little to lose by a move come first.
func (l *local) improve(f *flow, prices []float64) {
	order := l.order(f, prices)
	for range passes {
		for n := 0; n < passes && l.moves(order) > 0; n++ {
		}
		if l.exchanges(order[:min(len(order), nearby)]) == 0 {
			return
		}
	}
}

// order is the items by what they lose with their second best slot.
func (l *local) order(f *flow, prices []float64) []int32 {
	c := l.c
	type loss struct {
		v    float64
		item int32
	}
	losses := make([]loss, c.items())
	for i := range losses {
		least, next := math.Inf(1), math.Inf(1)
		for s := c.off[i]; s < c.off[i+1]; s++ {
			v := c.regret(f, i, s, prices)
			if v < least {
				least, next = v, least
			} else {
				next = min(next, v)
			}
		}
		losses[i] = loss{next - least, int32(i)}
	}
	slices.SortFunc(losses, func(a, b loss) int {
		return cmp.Or(cmp.Compare(a.v, b.v), cmp.Compare(a.item, b.item))
	})
	out := make([]int32, len(losses))
	for k, e := range losses {
		out[k] = e.item
	}
	return out
}

// moves gives every item its best slot in turn, and returns how many moved.
func (l *local) moves(order []int32) (moved int) {
	c := l.c
	for _, i := range order {
		from := l.slot[i]
		out := float64(c.cost[from]) + l.leaving(c.site[from], c.load[i])
		best, value := from, out
		for s := c.off[i]; s < c.off[i+1]; s++ {
			if s == from {
				continue
			}
			if v := float64(c.cost[s]) + l.entering(c.site[s], c.load[i]); v < value {
				best, value = s, v
			}
		}
		if best != from && worth(out-value, out+value) {
			l.move(i, best)
			moved++
		}
	}
	return moved
}

// exchanges tries all pairs of items at different sites for each other's.
func (l *local) exchanges(items []int32) (changed int) {
	for k, a := range items {
		for _, b := range items[k+1:] {
			if l.exchange(a, b) {
				changed++
			}
		}
	}
	return changed
}

func (l *local) exchange(a, b int32) bool {
	c := l.c
	fromA, fromB := l.slot[a], l.slot[b]
	if c.site[fromA] == c.site[fromB] {
		return false
	}
	toA, toB := c.slotAt(a, c.site[fromB]), c.slotAt(b, c.site[fromA])
	if toA < 0 || toB < 0 {
		return false
	}
	x, y := c.site[fromA], c.site[fromB]
	d := c.load[a] - c.load[b] // that y takes from x
	before := float64(max(-l.left[x], 0)) + float64(max(-l.left[y], 0))
	after := float64(max(-l.left[x]-d, 0)) + float64(max(-l.left[y]+d, 0))
	gain := float64(c.cost[fromA]-c.cost[toA]) + float64(c.cost[fromB]-c.cost[toB]) + float64(c.overload*(before-after))
	if !worth(gain, float64(c.overload*(before+after))) {
		return false
	}
	l.move(a, toA)
	l.move(b, toB)
	return true
}

// slotAt is an item's slot at a site, or -1.
func (c *core) slotAt(i int32, site uint16) int32 {
	for s := c.off[i]; s < c.off[i+1]; s++ {
		if c.site[s] == site {
			return s
		}
	}
	return -1
}

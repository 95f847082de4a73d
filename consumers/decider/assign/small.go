package assign

// small solves a problem whose rows are held in memory.
func (p *Problem) small(o Options) *Solution {
	n, m := len(p.Load), p.Sites
	q := *p
	costs := make([]int64, n*m)
	inBlocks(p.Workers, n, func(worker, lo, hi int) { p.Rows(worker, lo, hi, costs[lo*m:hi*m]) })
	q.Rows = func(_, lo, hi int, out []int64) { copy(out, costs[lo*m:hi*m]) }

	s := &Solution{Site: make([]uint16, n), Rounds: 1, Method: MethodFlow}
	c := newCore(p.Room, p.Overload)
	c.site, c.cost = make([]uint16, 0, n*m), make([]int64, 0, n*m)
	same := p.same()
	for i, w := range p.Load {
		row := costs[i*m : (i+1)*m]
		s.Site[i] = least(row)
		lo := len(c.site)
		for j, v := range row {
			if v != Forbidden && (w > 0 || j == int(s.Site[i])) {
				c.site, c.cost = append(c.site, uint16(j)), append(c.cost, v)
			}
		}
		// A load of 0 has no say; its least cost is settled.
		if w == 0 {
			if len(c.site) > lo {
				c.settled = c.settled.plus(wideOf(c.cost[lo]))
			}
			c.site, c.cost = c.site[:lo], c.cost[:lo]
			continue
		}
		if !same {
			// What is more than any site can take is over anywhere.
			var most int64
			for _, j := range c.site[lo:] {
				most = max(most, p.Room[j])
			}
			if len(c.site) > lo && most > 0 && w > most {
				c.beyond += w - most
				w = most
			}
		}
		c.add(int32(i), w)
	}
	if p.fits(s.Site) {
		s.Method, s.Prices = MethodLeast, make([]float64, m)
		s.Cost, s.Weight, s.Over = q.Evaluate(s.Site)
		return s.close(wideOf(s.Cost), wideOf(s.Cost))
	}
	if len(o.Prices) == 0 && c.items() > 1<<13 {
		o.Prices, _ = q.sample(Options{Sample: 1 << 12}, p.total().int64())
	}
	a := c.optimise(o.Prices, o.Nodes)
	for k, i := range c.item {
		s.Site[i] = c.site[a.slot[k]]
	}
	if s.Prices, s.Nodes = a.price, a.nodes; a.nodes > 0 {
		s.Method = MethodBranch
	}
	s.Cost, s.Weight, s.Over = q.Evaluate(s.Site)
	return s.close(a.value, a.bound)
}

// least is the first site of least cost in a row, or NoSite.
func least(row []int64) uint16 {
	best, cost := uint16(NoSite), int64(Forbidden)
	for j, v := range row {
		if v < cost {
			best, cost = uint16(j), v
		}
	}
	return best
}

// same reports whether all items have the same load.
func (p *Problem) same() bool {
	for _, w := range p.Load {
		if w != p.Load[0] {
			return false
		}
	}
	return true
}

package claims

import (
	"slices"
	"time"
)

// claimant is the rule of one dispatcher, without bus, clock and locks:
//
//	plan (what was read) ─▶ its limits that fall do so ─▶ row (what is in service then)
//	                    ─▶ compare and set ─▶ written: its limits that rise do so
type claimant struct {
	self    row // name and instance
	servers []Server
	grace   time.Duration
	limits  map[string]int // by server
}

// plan is what a claimant makes of a revision.
type plan struct {
	from   revision
	others []row
	rank   int
	fair   map[string]int
	next   map[string]int // limits once it is written
	free   map[string]int // places that no other claims
	change uint64         // of the servers, as of then
	holds  bool           // more is claimed than is fair, for it is in service still
}

// settled reports whether all shares are fair, and nothing is held beyond.
func (p *plan) settled() bool {
	if p.holds {
		return false
	}
	for name, n := range p.fair {
		if p.next[name] != n {
			return false
		}
	}
	return true
}

func (c *claimant) plan(from revision) plan {
	p := plan{from: from, others: from.others(&c.self), fair: map[string]int{}, next: map[string]int{}, free: map[string]int{}}
	for _, o := range p.others {
		if o.compare(&c.self) < 0 {
			p.rank++
		}
	}
	live, places, turn := len(p.others)+1, 0, int64(0)
	for _, s := range c.servers {
		places += s.M
	}
	if places < live {
		turn = from.at / int64(ttl)
	}
	young := c.grace > 0 && (from.number == 0 || from.at-from.Born < int64(c.grace))
	shares := fair(c.servers, live, p.rank, turn)
	for i, s := range c.servers {
		free := s.M
		for _, o := range p.others {
			free -= o.Servers[s.Name].Claim
		}
		free = max(0, free)
		next := min(shares[i], free)
		if young {
			next = min(next, c.limits[s.Name])
		}
		p.fair[s.Name], p.free[s.Name], p.next[s.Name] = shares[i], free, next
	}
	return p
}

// lower brings down the limits that fall, and reports whether any did.
func (c *claimant) lower(p *plan) (changed bool) {
	for name, n := range c.limits {
		if next := p.next[name]; next < n { // 0 of a server that is there no more
			c.limits[name] = next
			changed = true
		}
	}
	return changed
}

// raise brings up the limits that rise, which is for after the write, and reports whether any
// did.
func (c *claimant) raise(p *plan) (changed bool) {
	for name, next := range p.next {
		if next > c.limits[name] {
			c.limits[name] = next
			changed = true
		}
	}
	return changed
}

// book is the book to be written: the rows that count, and this dispatcher's with what it has
// after lower.
func (c *claimant) book(p *plan, epoch uint64, has map[string]Figures) book {
	self := c.self
	self.Epoch = epoch
	self.Servers = map[string]Figures{}
	for name, f := range has {
		f = f.checked()
		f.Claim = 0
		if _, ok := p.next[name]; !ok {
			f.Claim = f.InService // a server that was taken out has these until they end
		}
		if f != (Figures{}) {
			self.Servers[name] = f
		}
	}
	for name, next := range p.next {
		f := self.Servers[name]
		f.Claim = min(max(next, f.InService), p.free[name])
		p.holds = p.holds || f.Claim > next
		if f != (Figures{}) {
			self.Servers[name] = f
		}
	}
	b := book{Born: p.from.Born, Before: p.from.at, Dispatchers: append(slices.Clone(p.others), self)}
	slices.SortFunc(b.Dispatchers, func(a, b row) int { return a.compare(&b) })
	return b
}

// shared is how a book that was written shares the places of servers out.
func (c *claimant) shared(b *book) map[string]place {
	out := make(map[string]place, len(c.servers))
	for _, s := range c.servers {
		x := place{free: s.M}
		for i := range b.Dispatchers {
			r := &b.Dispatchers[i]
			n := r.Servers[s.Name].Claim
			x.free -= n
			if r.compare(&c.self) == 0 {
				x.claimed = n
			} else {
				x.others += n
			}
		}
		x.free = max(0, x.free)
		out[s.Name] = x
	}
	return out
}

// without is the book that leaves this dispatcher out.
func (c *claimant) without(p *plan) book {
	return book{Born: p.from.Born, Before: p.from.at, Dispatchers: p.others}
}

package dispatcher

import (
	"cmp"
	"slices"
	"time"

	"penstock/consumers/executor/dispatcher/pool"
)

// zone is a pool of servers with what the first level goes by.
type zone struct {
	name    string
	pool    *pool.Pool
	servers []place // those that are on
	former  bool    // it is not configured any more, and has requests

	requests int // that wait or are in service
	// Of the servers that are on and usable: how many there are, the places that they
	// have in all, and those that are this dispatcher's.
	live, places, slots int

	weight float64 // in force; counts if the table has weights
	credit float64 // requests that it is behind its weight; less than 0: ahead
	due    float64 // the same with the request that is being placed
	turn   int     // see Site.turn

	// What is looked at once in figuresFor.
	figures figures
}

// place is a server that is on.
type place struct {
	name          string
	places, share int
}

// figures of a zone, with those of others.
type figures struct {
	at        int64   // when, as instant; 0: never
	potential float64 // penalty of those that wait here
	others    Load
	some      bool // there are others
	fresh     bool // what they say counts
}

// figuresFor is how long figures of a zone count as they were taken: the paper's control
// modules refresh them at intervals too.
const figuresFor = int64(10 * time.Millisecond)

// leastSlack is how many requests a zone may be ahead of its weight however few come.
const leastSlack = 8

// rate counts what arrives in a second.
type rate struct {
	second   int64
	now, was int
}

// count counts an arrival and returns how many there were in the last whole second, or
// are in this one if that is more.
func (r *rate) count(now int64) int {
	if second := now / int64(time.Second); second != r.second {
		r.was = 0
		if second == r.second+1 {
			r.was = r.now
		}
		r.second, r.now = second, 0
	}
	r.now++
	return max(r.was, r.now)
}

// judge sums up what zones have that may be used. The caller holds mu.
func (s *Site) judge() {
	for _, z := range s.zones {
		z.live, z.places, z.slots = 0, 0, 0
		for _, p := range z.servers {
			if s.healthy == nil || s.healthy[p.name] {
				z.live++
				z.places += p.places
				z.slots += p.share
			}
		}
		z.weight = s.force.weights[z.name]
		z.credit, z.due, z.figures.at = 0, 0, 0
	}
}

// figure takes the figures of a zone, unless they were taken a moment ago.
func (s *Site) figure(now int64, z *zone) *figures {
	f := &z.figures
	if f.at != 0 && now-f.at < figuresFor {
		return f
	}
	*f = figures{at: now, potential: z.pool.Potential(now)}
	if f.others, f.some = s.o.Others.Zone(z.name); f.some {
		age := now - s.instant(f.others.At)
		f.fresh = age <= int64(freshFor)
	}
	return f
}

// rank is the order in which zones are asked to take a request. The caller holds mu.
func (s *Site) rank(now int64, t *Ticket, without *zone) []*zone {
	list := s.ranked[:0]
	for _, z := range s.zones {
		if z.live > 0 && z != without {
			list = append(list, z)
		}
	}
	s.ranked = list
	if len(list) < 2 {
		return list
	}
	byPenalty := s.o.Zone == ByPenalty
	for _, z := range list {
		if f := s.figure(now, z); f.some && !f.fresh {
			byPenalty = false // least load decides while others' figures are old
		}
		z.turn = s.turn(z, t)
	}
	if share := weighed(list); share > 0 {
		slack := float64(max(leastSlack, s.rate.was, s.rate.now))
		for _, z := range list {
			z.due = z.credit + z.weight*share
			if z.due-1 < -slack {
				z.turn++
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *zone) int {
		penalty := 0
		if byPenalty {
			penalty = cmp.Compare(a.penalty(), b.penalty())
		}
		return cmp.Or(cmp.Compare(a.turn, b.turn), penalty, cmp.Compare(a.load(), b.load()), cmp.Compare(b.due, a.due))
	})
	return list
}

// turn is by what a zone comes behind others, whatever its figures: first of all if the
// weights in force give it nothing, then if no place in it is this dispatcher's, then if
// the request has tried all its servers. The least bit is left for zones that are ahead
// of their weight.
func (s *Site) turn(z *zone, t *Ticket) int {
	turn := 0
	if s.force.weights != nil && z.weight == 0 {
		turn |= 8
	}
	if z.slots == 0 {
		turn |= 4
	}
	if len(t.request.Avoid) >= z.live && s.tried(z, t.request.Avoid) {
		turn |= 2
	}
	return turn
}

// tried reports whether a request has tried all servers of a zone that may be used.
func (s *Site) tried(z *zone, names []string) bool {
	for _, p := range z.servers {
		if (s.healthy == nil || s.healthy[p.name]) && !slices.Contains(names, p.name) {
			return false
		}
	}
	return true
}

// penalty is the potential penalty per request of a zone, of all dispatchers together; 0
// if it has none (PAPERS §2.5).
func (z *zone) penalty() float64 {
	n, sum := z.requests, z.figures.potential
	if z.figures.fresh {
		n += z.figures.others.Requests
		sum += z.figures.others.Potential
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// load is how many requests a zone has for each place.
func (z *zone) load() float64 {
	n := z.requests
	if z.figures.fresh {
		n += z.figures.others.Requests
	}
	return float64(n) / float64(max(z.places, 1))
}

// weighed is by what the weight of a zone is multiplied to be its share among those that
// can take requests; 0 if no weights are in force.
func weighed(list []*zone) float64 {
	sum := 0.0
	for _, z := range list {
		sum += z.weight
	}
	if sum == 0 {
		return 0
	}
	return 1 / sum
}

// charge notes which of the ranked zones has taken a request: each gains its share of it,
// and the one that has it is one further ahead. One without a weight takes what the others
// can't, and owes nothing.
func charge(list []*zone, taker *zone) {
	share := weighed(list)
	if share == 0 || taker.weight == 0 {
		return
	}
	for _, z := range list {
		z.credit += z.weight * share
	}
	taker.credit--
}

package placement

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"

	"penstock/schemas/window"
)

// learned is what a window's tables say besides what went into the state.
type learned struct {
	requests int64            // of all owners
	unknown  map[string]int64 // requests by sites that the configuration doesn't name
	bad      int64            // rows that cannot be used
}

// learn takes a window's tables into the state: names, places, social levels,
// stored bytes, first locations, the window's traffic by owner and site.
func (t *Policy) learn(tables map[string]*window.Table) learned {
	s := t.state
	l := learned{unknown: make(map[string]int64)}
	traffic, interactions, places := tables[window.Traffic.Name], tables[window.Interactions.Name], tables[window.Places.Name]
	owners := t.internKey(traffic, "owner")
	users := t.internKey(places, "user")
	from, to := t.internKey(interactions, "user"), t.internKey(interactions, "owner")
	s.grow()
	t.follow()
	inParts(t.workers, s.names.len(), func(_, lo, hi int) {
		clear(s.traffic[lo:hi])
		for i := lo; i < hi; i++ {
			s.flags[i] &^= seen
		}
	})
	clear(s.observed)
	t.placeMoved = nil
	if traffic != nil {
		t.learnTraffic(traffic, owners, &l)
	}
	if places != nil {
		t.learnPlaces(places, users, &l)
	}
	if interactions != nil {
		t.learnSocial(interactions, from, to, &l)
		if t.config.Traffic == Requester {
			t.requesterTraffic(traffic, owners, interactions, from, to)
		}
	}
	t.spoil()
	return l
}

// internKey returns the ids of the values of a key column; nil of no table.
func (t *Policy) internKey(table *window.Table, key string) []int32 {
	if table == nil {
		return nil
	}
	return t.state.names.intern(table.Key(key).Values, t.workers)
}

// growRules finds the residency rule of names that are new.
func (t *Policy) growRules() {
	if len(t.residency.rules) == 0 {
		return
	}
	old, n := len(t.rule), t.state.names.len()
	t.rule = extend(t.rule, n, 0)
	inParts(t.workers, n-old, func(_, lo, hi int) {
		for id := old + lo; id < old+hi; id++ {
			t.rule[id] = t.residency.rule(t.state.names.at(int32(id)))
		}
	})
}

// allowed returns a flag a site for the owner's residency.
func (t *Policy) allowed(id int32) []bool {
	if len(t.rule) == 0 {
		return t.residency.allowed[0]
	}
	return t.residency.allowed[t.rule[id]]
}

// byKey runs f over rows in parts that have no key in common, in one part where
// the rows are not sorted by it.
func (t *Policy) byKey(codes []int32, f func(worker, lo, hi int)) {
	if t.workers == 1 || !slices.IsSorted(codes) {
		f(0, 0, len(codes))
		return
	}
	cut := func(i int) int {
		for i > 0 && i < len(codes) && codes[i] == codes[i-1] {
			i++
		}
		return i
	}
	n := len(codes)
	inParts(t.workers, n, func(w, lo, hi int) {
		if lo, hi = cut(lo), cut(hi); lo < hi {
			f(w, lo, hi)
		}
	})
}

// visit is that a site served an owner of which no site is known yet.
type visit struct {
	owner    int32
	site     uint16
	requests int64
}

// trafficPart is what one worker gathers of the traffic table.
type trafficPart struct {
	requests, bad int64
	observed      []int64 // bytes by site number
	unknown       []int64 // requests by code of the site column
	set           sums
	visits        []visit
	siteless      []visit // requests are bytes: rows that name no site
}

func (t *Policy) learnTraffic(table *window.Table, ids []int32, l *learned) {
	s := t.state
	sites := table.Key("site")
	number := make([]uint16, len(sites.Values))
	for i, name := range sites.Values {
		number[i] = t.siteIndex[name]
	}
	parts := make([]trafficPart, t.workers)
	t.byKey(table.Key("owner").Codes, func(w, lo, hi int) {
		p := &parts[w]
		p.observed, p.unknown = make([]int64, len(s.observed)), make([]int64, len(number))
		t.trafficRows(table, ids, number, p, lo, hi)
		t.locate(p)
	})
	var siteless []visit
	for i := range parts {
		p := &parts[i]
		l.requests += p.requests
		l.bad += p.bad
		for j, v := range p.observed {
			s.observed[j] += v
		}
		for c, n := range p.unknown {
			if n > 0 {
				l.unknown[sites.Values[c]] += n
			}
		}
		s.digest.set.join(p.set)
		siteless = append(siteless, p.siteless...)
	}
	for _, v := range siteless {
		if at := s.standing(v.owner); int(at) <= len(t.config.Sites) {
			s.observed[at] += v.requests
		}
	}
	s.observed[0] = 0
}

// trafficRows takes rows lo to hi. Traffic of an owner whose data is being
// moved is counted where the move goes to: it is that site's from now on.
func (t *Policy) trafficRows(table *window.Table, ids []int32, number []uint16, p *trafficPart, lo, hi int) {
	s := t.state
	codes, sites := table.Key("owner").Codes, table.Key("site").Codes
	requests, volume, written := table.Column("requests"), table.Column("bytes"), table.Column("bytes_written")
	tidy := slices.IsSorted(codes[lo:hi])
	for i := lo; i < hi; i++ {
		if tidy && len(p.visits) > 0 && codes[i] != codes[i-1] {
			t.locate(p) // the rows of that owner are through
		}
		if codes[i] < 0 || requests[i] < 0 || volume[i] < 0 || written[i] < 0 {
			p.bad++
			continue
		}
		id := ids[codes[i]]
		p.requests += requests[i]
		before := s.ownerHash(id)
		s.flags[id] |= isOwner | seen
		s.stored[id] += written[i]
		p.set.swap(before, s.ownerHash(id))
		if t.config.Traffic == Owner {
			s.traffic[id] += volume[i]
		}
		var site uint16
		if c := sites[i]; c >= 0 {
			if site = number[c]; site == 0 {
				p.unknown[c] += requests[i]
			} else if s.site[id] == 0 && requests[i] > 0 {
				p.visits = append(p.visits, visit{id, site, requests[i]})
			}
		} else if s.pending(id) == 0 {
			p.siteless = append(p.siteless, visit{owner: id, requests: volume[i]})
		}
		if to := s.pending(id); to != 0 {
			site = to
		}
		if int(site) < len(p.observed) {
			p.observed[site] += volume[i]
		}
	}
}

// locate believes each owner of p.visits at the site that served most of its requests, ties
// by config order.
func (t *Policy) locate(p *trafficPart) {
	s, visits := t.state, p.visits
	p.visits = visits[:0]
	slices.SortFunc(visits, func(a, b visit) int {
		if c := cmp.Compare(a.owner, b.owner); c != 0 {
			return c
		}
		return cmp.Compare(a.site, b.site)
	})
	for i := 0; i < len(visits); {
		owner, site, most := visits[i].owner, uint16(0), int64(0)
		for i < len(visits) && visits[i].owner == owner {
			at, n := visits[i].site, int64(0)
			for ; i < len(visits) && visits[i].owner == owner && visits[i].site == at; i++ {
				n += visits[i].requests
			}
			if n > most {
				site, most = at, n
			}
		}
		before := s.ownerHash(owner)
		s.site[owner] = site
		s.flags[owner] |= stale
		p.set.swap(before, s.ownerHash(owner))
	}
}

func (t *Policy) learnPlaces(table *window.Table, ids []int32, l *learned) {
	s := t.state
	t.placeMoved = make([]uint64, (s.names.len()+63)/64)
	bad, sets, changes := make([]int64, t.workers), make([]sums, t.workers), make([]bool, t.workers)
	codes, times := table.Key("user").Codes, table.Column("time")
	lat, lon := table.Column("lat"), table.Column("lon")
	x, y, z := table.Column("x"), table.Column("y"), table.Column("z")
	t.byKey(codes, func(w, lo, hi int) {
		for i := lo; i < hi; i++ {
			la, ln := window.ToFloat32(lat[i]), window.ToFloat32(lon[i])
			if codes[i] < 0 || times[i] == window.NullInt || !finite(la) || !finite(ln) {
				bad[w]++
				continue
			}
			id := ids[codes[i]]
			before := s.placeHash(id)
			changed := t.mean && (x[i] != 0 || y[i] != 0 || z[i] != 0)
			s.x[id], s.y[id], s.z[id] = s.x[id]+x[i], s.y[id]+y[i], s.z[id]+z[i]
			if s.laterPlace(id, times[i], la, ln) {
				changed = changed || !t.mean && (s.at[id] == noTime || la != s.lat[id] || ln != s.lon[id])
				s.at[id], s.lat[id], s.lon[id] = times[i], la, ln
			}
			sets[w].swap(before, s.placeHash(id))
			if changed {
				t.keepDistances(id)
				s.flags[id] |= stale
				changes[w] = true
				atomic.OrUint64(&t.placeMoved[id>>6], 1<<(id&63)) // workers share the words at their ends
			}
		}
	})
	for w := range sets {
		l.bad += bad[w]
		s.digest.set.join(sets[w])
	}
	if !slices.Contains(changes, true) {
		t.placeMoved = nil
	}
}

func finite(f float32) bool { return !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) }

// laterPlace reports whether (time, lat, lon) is greater than the latest place.
// The order is that in which panes are merged.
func (s *state) laterPlace(id int32, at int64, lat, lon float32) bool {
	if at == noTime || at != s.at[id] {
		return at > s.at[id]
	}
	if c := compareDegrees(lat, s.lat[id]); c != 0 {
		return c > 0
	}
	return compareDegrees(lon, s.lon[id]) > 0
}

// compareDegrees orders numbers, and the two spellings of 0 by their bits.
func compareDegrees(a, b float32) int {
	if c := cmp.Compare(a, b); c != 0 {
		return c
	}
	return cmp.Compare(math.Float32bits(a), math.Float32bits(b))
}

func (t *Policy) learnSocial(table *window.Table, from, to []int32, l *learned) {
	s := t.state
	users, owners, requests := table.Key("user").Codes, table.Key("owner").Codes, table.Column("requests")
	for _, n := range requests {
		if n < 0 {
			l.bad++
		}
	}
	delta := collect(rows{
		owner: owners, user: users, of: to, by: from, number: requests, owners: s.names.len(), workers: t.workers,
	}, s.names.rank)
	t.addSocial(delta)
}

// addSocial adds social levels and marks the owners whose weights they change.
func (t *Policy) addSocial(delta *edges) {
	s := t.state
	sets := make([]sums, t.workers)
	touched := make([]uint64, t.workers)
	s.social.mergeInto(delta, merging{
		rank: s.names.rank, workers: t.workers,
		changed: func(w int, owner, user int32, before, after int64) {
			h := s.pairHash(owner, user)
			sets[w].swap(levelHash(h, before), levelHash(h, after))
			s.flags[owner] |= stale
		},
		touch: func(w int, list []edge, changed, ranks bool) {
			var got uint64
			for _, e := range list {
				if changed {
					got ^= s.names.hash[e.user]
				}
				if ranks {
					got ^= uint64(s.names.rank[e.user])
				}
			}
			touched[w] = got
		},
	})
	for _, p := range sets {
		s.digest.set.join(p)
	}
}

// spoil marks the owners of whose friends one is somewhere else now.
func (t *Policy) spoil() {
	s, moved := t.state, t.placeMoved
	if moved == nil {
		return
	}
	inBlocks(t.workers, s.names.len(), func(_, lo, hi int) {
		for id := lo; id < hi; id++ {
			if s.flags[id]&stale != 0 {
				continue
			}
			for _, e := range s.social.list[s.social.start[id]:s.social.start[id+1]] {
				if moved[e.user>>6]&(1<<(e.user&63)) != 0 {
					s.flags[id] |= stale
					break
				}
			}
		}
	})
}

// requesterTraffic shares an owner's bytes among those who asked for its data,
// in proportion to their requests: bytes by requester are in no rollup.
func (t *Policy) requesterTraffic(traffic *window.Table, owners []int32, table *window.Table, from, to []int32) {
	if traffic == nil {
		return
	}
	s := t.state
	all, volume := make([]int64, s.names.len()), make([]int64, s.names.len())
	codes, requests, sent := traffic.Key("owner").Codes, traffic.Column("requests"), traffic.Column("bytes")
	for i, c := range codes {
		if c >= 0 && requests[i] >= 0 && sent[i] >= 0 {
			all[owners[c]] += requests[i]
			volume[owners[c]] += sent[i]
		}
	}
	user, owner, asked := table.Key("user").Codes, table.Key("owner").Codes, table.Column("requests")
	for i, n := range asked {
		if user[i] < 0 || owner[i] < 0 || n <= 0 {
			continue
		}
		o, u := to[owner[i]], from[user[i]]
		s.traffic[u] += proportion(volume[o], n, all[o])
	}
}

// proportion is ⌊v·n/of⌋ for n ≤ of, without overflow; 0 of nothing.
func proportion(v, n, of int64) int64 {
	if of == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(v), uint64(min(n, of)))
	q, _ := bits.Div64(hi, lo, uint64(of))
	return int64(q)
}

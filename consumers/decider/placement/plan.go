package placement

import (
	"math"

	"penstock/consumers/decider"
)

// plan is the making of one window's decision.
type plan struct {
	t       *Policy
	in      *decider.Input
	reasons *reasons

	kind     caseOf
	evac     []bool  // by site: the operator empties it
	expected []int64 // by site number
	remains  []int64 // owners whose data is at the site, by site number
	picks    []pick  // what is to be moved, most important first
}

// pick is a move that the plan wants.
type pick struct {
	id   int32
	from uint16 // the site whose load it is taken from (extraction only)
	to   uint16
	at   uint16 // where the data is
	why  Code
	new  bool // no decision had placed it, or its site is being emptied
}

// evacuate notes the sites that the operator empties. What is known of L-matches
// is computed again if they are other ones than in the last window.
func (p *plan) evacuate(names []string) {
	t := p.t
	p.evac = make([]bool, len(t.config.Sites))
	for _, name := range names {
		if i := t.siteIndex[name]; i > 0 {
			p.evac[i-1] = true
		} else {
			p.reasons.add(UnknownSite, name, 0, nil, "asked to evacuate a site that the configuration doesn't name")
		}
	}
	changed := false
	for i := range p.evac {
		changed = changed || p.evac[i] != t.evacuated[i]
	}
	if !changed {
		return
	}
	copy(t.evacuated, p.evac)
	for i := range t.state.flags {
		t.state.flags[i] |= stale
	}
}

// classify finds the case of the window: MINIMAL if the total of observed
// traffic is at most the least capacity; else OVERHEAD, of the first type if the
// window decided before it was none (paper §5.2.1; DESIGN §4.1).
func (p *plan) classify() {
	t, s := p.t, p.t.state
	var total int64
	least := int64(math.MaxInt64)
	for i, site := range t.config.Sites {
		total += s.observed[i+1]
		if !p.evac[i] {
			least = min(least, site.Capacity)
		}
	}
	switch {
	case total <= least:
		p.kind = minimal
		p.reasons.add(WithinCapacity, "", 0, map[string]any{"total": total, "least_capacity": least},
			"total traffic %d B is at most the least capacity", total)
	case s.lastCase == firstOverhead || s.lastCase == continuousOverhead:
		p.kind = continuousOverhead
	default:
		p.kind = firstOverhead
	}
	s.lastCase = p.kind
}

// match plans the window by the policy that the configuration names.
func (p *plan) match() {
	t, s := p.t, p.t.state
	s.planned = s.now
	t.want = extend(t.want, s.names.len(), 0)
	if t.config.Policy == Optimal {
		p.optimise()
	} else {
		p.tmatch()
	}
	for i := range p.picks {
		m := &p.picks[i]
		m.at = s.site[m.id]
		m.new = s.flags[m.id]&matched == 0 || p.evac[m.at-1]
	}
	p.settle()
	copy(s.expected, p.expected)
	p.promise()
	t.last.planned, t.last.moves = len(s.names.hash), p.picks
}

// tmatch plans by the case of the window (paper §5.2).
func (p *plan) tmatch() {
	p.base()
	if p.kind != minimal {
		p.balance()
	}
	p.guard()
}

// basePart is what one worker finds in base.
type basePart struct {
	expected []int64
	remains  []int64
	matcher  *matcher
}

// touchAhead is for how many owners at a time distances are touched.
const touchAhead = 8

// base finds the match from which balancing starts: the L-match of every owner
// in MINIMAL and in the first type; where the owner's data stands, a move under
// way counted as done, in the continuous type, but for new owners, which are
// L-matched first, and for owners whose residency forbids where they are. An
// owner that cannot be moved stands where it is in any case.
func (p *plan) base() {
	t, s := p.t, p.t.state
	parts := make([]basePart, t.workers)
	numbers := len(s.siteNames) + 1
	for w := range parts {
		parts[w] = basePart{expected: make([]int64, numbers), remains: make([]int64, numbers), matcher: t.newMatcher()}
	}
	inBlocks(t.workers, s.names.len(), func(w, lo, hi int) {
		part := &parts[w]
		for id := int32(lo); id < int32(hi); id++ {
			if int(id)%touchAhead == 0 && s.flags[id]&stale != 0 && (p.kind != continuousOverhead || s.flags[id]&matched == 0) {
				t.touch(int(id), min(int(id)+touchAhead, hi), part.matcher)
			}
			if s.flags[id]&isOwner == 0 {
				t.want[id], s.why[id] = 0, noReason
				continue
			}
			to, why := p.baseOf(id, part.matcher)
			t.want[id], s.why[id] = to, why
			part.expected[to] += s.traffic[id]
			part.remains[s.site[id]]++
		}
	})
	p.expected, p.remains = make([]int64, numbers), make([]int64, numbers)
	for _, part := range parts {
		for i := range p.expected {
			p.expected[i] += part.expected[i]
			p.remains[i] += part.remains[i]
		}
	}
	p.expected = p.expected[:len(t.config.Sites)+1]
	if p.kind == continuousOverhead {
		for i := range p.expected {
			p.expected[i] = max(p.expected[i], s.observed[i])
		}
	}
	p.expected[0] = 0
}

// baseOf returns an owner's base match and why it stays where it is; no reason
// if it is to be moved there.
func (p *plan) baseOf(id int32, m *matcher) (uint16, Code) {
	t, s := p.t, p.t.state
	if to, why := t.unsettled(id); why != noReason {
		return to, why
	}
	site := s.site[id]
	if p.kind == continuousOverhead && s.flags[id]&matched != 0 && t.allowed(id)[site-1] {
		return site, WithinCapacity
	}
	best := p.best(id, m)
	switch {
	case best == 0:
		return site, NoAllowedSite
	case s.flags[id]&ties != 0:
		return site, NoImprovement
	}
	if why := p.held(id); why != noReason {
		return site, why
	}
	if t.rejected(id, best) {
		return site, Rejected
	}
	return best, noReason
}

// unsettled returns where an owner counts that is at no site of the configuration
// or on its way to another, and why it isn't moved; no reason for all others.
func (t *Policy) unsettled(id int32) (uint16, Code) {
	s := t.state
	switch site := s.site[id]; {
	case site == 0:
		return 0, LocationUnknown
	case int(site) > len(t.config.Sites):
		return 0, UnknownSite
	}
	switch to := s.pending(id); {
	case to == 0:
		return 0, noReason
	case int(to) > len(t.config.Sites):
		return 0, MoveUnderWay
	default:
		return to, MoveUnderWay
	}
}

// best returns an owner's L-match, 0 if no site is allowed.
func (p *plan) best(id int32, m *matcher) uint16 {
	t, s := p.t, p.t.state
	if s.flags[id]&stale == 0 {
		return s.best[id]
	}
	m.allowed = t.candidates(id, m.allowed[:0])
	s.flags[id] &^= stale | ties
	if len(m.allowed) == 0 {
		s.best[id] = 0
		return 0
	}
	best, tie := t.match(id, int(s.site[id])-1, m)
	s.best[id] = uint16(best + 1)
	if tie {
		s.flags[id] |= ties
	}
	return s.best[id]
}

// candidates appends the sites that residency and evacuations leave an owner.
func (t *Policy) candidates(id int32, out []int) []int {
	for j, ok := range t.allowed(id) {
		if ok && !t.evacuated[j] {
			out = append(out, j)
		}
	}
	return out
}

// held returns the guardrail that keeps a located owner from being moved at
// all. A cooldown gives way to the operator who empties a site.
func (p *plan) held(id int32) Code {
	s := p.t.state
	if s.flags[id]&pinned != 0 {
		return Pinned
	}
	if s.move[id] < 0 {
		return noReason
	}
	m := &s.moves[s.move[id]]
	site := int(s.site[id])
	switch {
	case m.status == movePending:
		return MoveUnderWay
	case m.fails > 0 && s.now <= m.heldUntil(&p.t.config):
		return BackingOff
	case m.changed == noTime || p.evac[site-1]:
		return noReason
	case s.now-m.changed < p.t.config.Cooldown.Microseconds():
		return Cooldown
	}
	return noReason
}

// rejected reports whether the very move from where the owner is was refused
// last: it stays rejected until the move that is wanted, or where the data is,
// is another (DESIGN §3.3).
func (t *Policy) rejected(id int32, to uint16) bool {
	s := t.state
	if s.move[id] < 0 {
		return false
	}
	m := &s.moves[s.move[id]]
	return m.status == moveRefused && m.from == s.site[id] && m.to == to
}

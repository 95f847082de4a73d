package placement

import (
	"math"
	"slices"
	"time"
)

// guard adds what the base match moves to the picks and holds back what the
// guardrails don't let through: all of it under a freeze, else what is beyond
// the limits. Owners taken out of sites over capacity go first, in the order in
// which they were taken; then the others by traffic descending, then id. A move
// that is too large for the bytes that are left lets smaller ones pass.
func (p *plan) guard() {
	t := p.t
	moves, volume := t.limits()
	first := p.picks
	rest := queue{entries: p.movers()}
	p.picks = nil
	limited := moves < math.MaxInt64 || volume < math.MaxInt64
	for {
		if len(first) == 0 {
			if p.in.Operator.Frozen || moves == 0 {
				break
			}
			next, ok := p.nextMover(&rest, limited)
			if !ok {
				return
			}
			first = append(first, next)
		}
		next := first[0]
		first = first[1:]
		switch stored := t.state.stored[next.id]; {
		case p.in.Operator.Frozen:
			p.hold(next.id, Frozen, p.expected)
		case moves == 0:
			p.hold(next.id, MoveLimit, p.expected)
		case stored > volume:
			p.hold(next.id, ByteLimit, p.expected)
		default:
			moves, volume = moves-1, volume-stored
			p.picks = append(p.picks, next)
		}
	}
	if p.in.Operator.Frozen {
		p.holdAll(rest.entries[rest.at:], Frozen)
	} else {
		p.holdAll(rest.entries[rest.at:], MoveLimit)
	}
}

// limits are the most moves and stored bytes of a window.
func (t *Policy) limits() (moves, volume int64) {
	moves, volume = int64(t.config.Limits.Moves), t.config.Limits.Bytes
	if moves == 0 {
		moves = math.MaxInt64
	}
	if volume == 0 {
		volume = math.MaxInt64
	}
	return moves, volume
}

// holdAll holds many owners back.
func (p *plan) holdAll(rest []entry, why Code) {
	parts := make([][]int64, p.t.workers)
	inParts(p.t.workers, len(rest), func(w, lo, hi int) {
		parts[w] = make([]int64, len(p.expected))
		for _, e := range rest[lo:hi] {
			p.hold(e.id, why, parts[w])
		}
	})
	for _, part := range parts {
		for i, v := range part {
			p.expected[i] += v
		}
	}
}

// movers are the owners that the base match moves.
func (p *plan) movers() []entry {
	t, s := p.t, p.t.state
	return p.gather(func(id int32) bool {
		return t.want[id] != 0 && s.why[id] == noReason && t.want[id] != s.site[id]
	})
}

// gather lists the owners of which is holds, in any order. It counts first: the
// list may be long, and is made once.
func (p *plan) gather(is func(int32) bool) []entry {
	t, s := p.t, p.t.state
	n := s.names.len()
	counts := make([]int, t.workers)
	inParts(t.workers, n, func(w, lo, hi int) {
		c := 0
		for id := int32(lo); id < int32(hi); id++ {
			if is(id) {
				c++
			}
		}
		counts[w] = c
	})
	total := 0
	for w, c := range counts {
		counts[w], total = total, total+c
	}
	out := make([]entry, total)
	inParts(t.workers, n, func(w, lo, hi int) {
		at := counts[w]
		for id := int32(lo); id < int32(hi); id++ {
			if is(id) {
				out[at] = entry{s.traffic[id], s.names.rank[id], id}
				at++
			}
		}
	})
	return out
}

// nextMover takes an owner from the queue, in order only where that matters;
// false after the last.
func (p *plan) nextMover(q *queue, ordered bool) (pick, bool) {
	var e entry
	var ok bool
	if ordered {
		e, ok = q.next()
	} else if ok = q.at < len(q.entries); ok {
		e = q.entries[q.at]
		q.at++
	}
	if !ok {
		return pick{}, false
	}
	s := p.t.state
	why := LMatch
	if p.evac[s.site[e.id]-1] {
		why = Evacuating
	}
	s.why[e.id] = why
	return pick{id: e.id, to: p.t.want[e.id], why: why}, true
}

// hold keeps an owner where it is although the plan would move it.
func (p *plan) hold(id int32, why Code, expected []int64) {
	s := p.t.state
	s.why[id] = why
	expected[p.t.want[id]] -= s.traffic[id]
	expected[s.site[id]] += s.traffic[id]
	p.t.want[id] = s.site[id]
}

// settlePart is what one worker finds in settle.
type settlePart struct {
	tally tally
	set   sums
}

// settle counts why owners stay, one reason an owner, and notes which owners
// have been placed: an owner that a guardrail kept from its first match is still
// a new one.
func (p *plan) settle() {
	t, s := p.t, p.t.state
	parts := make([]settlePart, t.workers)
	inParts(t.workers, s.names.len(), func(w, lo, hi int) {
		part := &parts[w]
		for id := int32(lo); id < int32(hi); id++ {
			if s.flags[id]&isOwner == 0 {
				continue
			}
			why := s.why[id]
			if stays[why] && (why != LocationUnknown || s.flags[id]&seen != 0) {
				part.tally.add(why, s.names.rank[id])
			}
			if t.want[id] != 0 && s.flags[id]&matched == 0 && !waits[why] && !p.in.Operator.Frozen {
				before := s.ownerHash(id)
				s.flags[id] |= matched
				part.set.swap(before, s.ownerHash(id))
			}
		}
	})
	for i := range parts {
		p.reasons.tally.join(&parts[i].tally)
		s.digest.set.join(parts[i].set)
	}
	p.reportEvacuations()
}

// stays are the reasons for which an owner is not moved; waits those after which
// a new owner is still a new one.
var (
	stays = [codes]bool{
		Frozen: true, NoImprovement: true, NoRoom: true, NoAllowedSite: true, LocationUnknown: true, UnknownSite: true,
		MoveUnderWay: true, Cooldown: true, Pinned: true, Rejected: true, MoveLimit: true, ByteLimit: true, BackingOff: true,
	}
	waits = [codes]bool{Frozen: true, MoveUnderWay: true, Cooldown: true, MoveLimit: true, ByteLimit: true, BackingOff: true}
)

// reportEvacuations says of each site that is being emptied how many owners'
// data is still there, those under way included: 0 means that it is empty.
func (p *plan) reportEvacuations() {
	moving := make([]int64, len(p.evac)+1)
	for _, m := range p.picks {
		moving[p.t.state.site[m.id]]++
	}
	for i, site := range p.t.config.Sites {
		if p.evac[i] {
			p.reasons.add(Evacuating, site.Name, moving[i+1], map[string]any{"remaining": p.remains[i+1]},
				"%d owners' data is there, %d of them are moved now", p.remains[i+1], moving[i+1])
		}
	}
}

// rollback plans the inverse of the moves that were decided in windows that
// ended after a time: each owner goes back to where it was before the first of
// them. It is the operator's word: cooldown, limits, capacities and a freeze
// don't hold it back; residency, a pin and a move under way do.
func (p *plan) rollback(after int64) {
	s := p.t.state
	if s.forgotten != noTime && after < s.forgotten {
		p.reasons.add(HistoryGone, "", 0, nil, "moves of more than %d windows ago are not remembered and stay", historyWindows)
	}
	done := p.before(after)
	for id, to := range done {
		why := p.rollbackOf(id, to)
		s.why[id] = why
		if why == Rollback {
			p.picks = append(p.picks, pick{id: id, to: to, why: Rollback})
		} else if why != noReason {
			p.reasons.tally.add(why, s.names.rank[id])
		}
	}
	for id := range s.move {
		if m := s.move[id]; m >= 0 && s.moves[m].status == movePending && s.moves[m].window > after {
			if _, ok := done[int32(id)]; ok {
				continue
			}
			p.reasons.tally.add(MoveUnderWay, s.names.rank[id])
		}
	}
	p.reasons.add(Rollback, "", int64(len(p.picks)), map[string]any{"after": p.in.Operator.Rollback.UTC().Format(time.RFC3339Nano)},
		"moves decided in windows that ended after the time are inverted")
}

// before returns where owners were before their first move of the windows that
// ended after a time. Moves from before an import of another location have no
// say: they are followed back only as far as each began where the one before it
// ended.
func (p *plan) before(after int64) map[int32]uint16 {
	s := p.t.state
	out := make(map[int32]uint16)
	for _, h := range slices.Backward(s.history) {
		if h.window <= after {
			continue
		}
		at, ok := out[h.owner]
		if !ok {
			at = s.site[h.owner]
		}
		if h.to == at {
			out[h.owner] = h.from
		}
	}
	return out
}

// rollbackOf returns Rollback, or why the owner isn't moved back to a site; no
// reason if it is there.
func (p *plan) rollbackOf(id int32, to uint16) Code {
	t, s := p.t, p.t.state
	switch {
	case s.flags[id]&pinned != 0:
		return Pinned
	case s.pending(id) != 0:
		return MoveUnderWay
	case s.site[id] == to:
		return noReason
	case int(to) > len(t.config.Sites) || int(s.site[id]) > len(t.config.Sites):
		return UnknownSite
	case !t.allowed(id)[to-1] || p.evac[to-1]:
		return NoAllowedSite
	case t.rejected(id, to):
		return Rejected
	}
	return Rollback
}

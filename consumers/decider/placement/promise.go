package placement

import (
	"fmt"
	"slices"

	"penstock/schemas/control"
)

const (
	// brokenWindows is how many decided windows in a row must break promises of
	// one sort before the policy says so (Output.Broken).
	brokenWindows = 3
	// leastBad is the least number of moves that must have ended badly in each.
	leastBad = 10
	// overPromise is the divisor of a capacity that gives by how much of it a site
	// may be above what was promised: a fifth.
	overPromise = 5
)

// promises is what the policy promised in mode act, and what came of it. What is
// counted between windows is no part of the digest; what a window made of it is,
// of policy optimal (see Digest).
type promises struct {
	ended, bad int64 // moves that ended since the last decided window; those not done
	// loads is what the last decided window promised of sites that it relieved, by
	// site number, 0: nothing; at least the capacity. total is all traffic then.
	loads []int64
	total int64
	// badMoves and badSites are decided windows in a row whose moves ended badly,
	// and in which a site was above its promise. Windows in which no move ended,
	// or for which nothing was promised, say nothing and are passed over.
	badMoves, badSites uint8
}

// keep compares a decided window in mode act with what was promised, and returns
// the reason to fall back to advise, if there is one. In other modes nothing is
// promised, and what was is void.
func (p *plan) keep() *control.Reason {
	s := p.t.state
	q := &s.promises
	if p.in.Operator.Mode != control.Act {
		clear(q.loads)
		*q = promises{loads: q.loads}
		return nil
	}
	var broken *control.Reason
	if q.ended > 0 {
		q.badMoves = inARow(q.badMoves, q.bad >= leastBad && 2*q.bad > q.ended)
		if q.badMoves == brokenWindows {
			broken = reasonOf("", q.bad, map[string]any{"ended": q.ended, "not_done": q.bad},
				"%d of %d moves that ended were not done, more than half for %d windows in a row", q.bad, q.ended, brokenWindows)
		}
	}
	if site, promised, load := p.abovePromise(); promised > 0 {
		q.badSites = inARow(q.badSites, site >= 0)
		if q.badSites == brokenWindows && broken == nil {
			c := p.t.config.Sites[site]
			broken = reasonOf(c.Name, 0, map[string]any{"capacity": c.Capacity, "load": load, "promised": q.loads[site+1]},
				"load %d B, at most %d B was promised; sites were above by a fifth of capacity for %d windows in a row", load, q.loads[site+1], brokenWindows)
		}
	}
	clear(q.loads)
	q.ended, q.bad, q.total = 0, 0, 0
	if broken != nil {
		q.badMoves, q.badSites = 0, 0
		p.reasons.fixed[PromisesBroken] = append(p.reasons.fixed[PromisesBroken], *broken)
	}
	return broken
}

func inARow(n uint8, bad bool) uint8 {
	if bad {
		return n + 1
	}
	return 0
}

func reasonOf(scope string, count int64, evidence map[string]any, format string, args ...any) *control.Reason {
	return &control.Reason{
		Code: PromisesBroken.String(), Scope: scope, Count: count, Evidence: evidence, Text: fmt.Sprintf(format, args...),
	}
}

// abovePromise returns the first site whose load is above what was promised by
// more than a fifth of its capacity, −1 without one, and how many sites were
// promised anything. Where all traffic has grown since, loads are taken back by
// as much: a plan promises how traffic is shared out, not how much there will
// be.
func (p *plan) abovePromise() (site int, promised int, load int64) {
	s := p.t.state
	q := &s.promises
	var total int64
	for _, v := range s.observed {
		total += v
	}
	site = -1
	for j, c := range p.t.config.Sites {
		if q.loads[j+1] == 0 {
			continue
		}
		promised++
		now := s.observed[j+1]
		if total > q.total {
			now = proportion(now, q.total, total)
		}
		if site < 0 && now-q.loads[j+1] > c.Capacity/overPromise {
			site, load = j, now
		}
	}
	return site, promised, load
}

// promise notes what a plan that will be applied promises of the sites that it
// takes owners out of because they are over their capacity.
func (p *plan) promise() {
	if !p.in.Acts() || !slices.ContainsFunc(p.picks, func(m pick) bool { return m.why == OverCapacity }) {
		return
	}
	s := p.t.state
	q := &s.promises
	for _, v := range s.observed {
		q.total += v
	}
	for _, m := range p.picks {
		if m.why == OverCapacity {
			q.loads[m.from] = max(p.expected[m.from], p.t.config.Sites[m.from-1].Capacity)
		}
	}
}

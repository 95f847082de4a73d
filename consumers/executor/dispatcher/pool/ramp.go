package pool

import "time"

// rampStart is the part of its fair share that a new server begins with.
const rampStart = 0.1

// A server that joins others ramps: at every decision it gains credit of its fair share,
// its weight over the sum of all usable ones', times a factor that grows from rampStart
// to 1 over Options.Ramp, and may have a request for each whole one. So whatever a policy
// makes of an idle server that nothing is known of, it has less than its share. Its first
// request it has as soon as its credit allows, whatever the policy prefers, so that it is
// known by what it does. Others get more only when nobody else may have a request.

// established reports whether there is a server in use for others to ramp beside: one
// that has been in use for a tenth of a ramp. If they come up one shortly after another,
// the pool starts, and none ramps.
func (p *Pool) established(now int64) bool {
	for _, s := range p.live {
		if s.m > 0 && !s.ramping && now-s.since >= int64(p.options.Ramp/10) {
			return true
		}
	}
	return false
}

// enter begins a server's time in use.
func (p *Pool) enter(now int64, s *server, ramp bool) {
	s.since = now
	s.heard, p.doubts = now, 0
	s.credit, s.tried = 0, false
	s.ramping = ramp && p.options.Ramp > 0
}

// ramps gives credit for a decision and ends ramps that are over.
func (p *Pool) ramps(now int64) {
	n := 0
	for _, s := range p.ramping {
		t := time.Duration(now - s.since)
		if t >= p.options.Ramp {
			s.ramping = false
			continue
		}
		if s.m > 0 {
			share := s.weight / p.weight
			part := max(rampStart, float64(t)/float64(p.options.Ramp))
			s.credit = min(s.credit+share*part, 1+share)
		}
		p.ramping[n] = s
		n++
	}
	clear(p.ramping[n:])
	p.ramping = p.ramping[:n]
}

// first is a ramping server that is to have its first request.
func (p *Pool) first(j *job) *server {
	for _, s := range p.ramping {
		if !s.tried && s.credit >= 1 && p.may(s, j) {
			return s
		}
	}
	return nil
}

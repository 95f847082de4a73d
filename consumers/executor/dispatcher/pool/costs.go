package pool

import (
	"math"
	"math/bits"

	"penstock/consumers/executor/dispatcher/line"
)

// costBased is cost-based scheduling as in iCBS (PAPERS §2.7): the server where the
// request is expected to cost least, from whose line the greatest
// p/(a·t̂)·exp(−a·max(0, d − now)) is taken (see line.Cost).
//
// That rule serves those of more worth p/t̂ first. So a request waits for what is worth
// more than it, and keeps waiting what is worth less: the expected cost is
//
//	p·max(0, now + W − d) + Σ_worth less  p_k·(max(0, now + W_k + t̂/M − d_k) − max(0, now + W_k − d_k))
//
// with W = (service times ahead + the mean one of those in service) / M. The sum is over
// ranks of worth, powers of 2, not over requests: per rank the server keeps the sums that
// it takes, so that a decision doesn't grow with the queue.
type costBased struct{ pool *Pool }

const ranks = 48 // of worth: 2⁻²⁴ to 2²³ units of cost per s²

// rank is what is queued at a server of one rank of worth.
type rank struct {
	n       int
	service float64 // s
	penalty float64 // units per s
	due     float64 // penalty × deadline, in s since the pool's first instant
}

// board is a server's queue by rank.
type board struct {
	ranks [ranks]rank
	used  uint64 // bits of ranks with requests
}

func rankOf(penalty, service float64) int {
	if penalty == 0 {
		return 0
	}
	_, exponent := math.Frexp(penalty / max(service, 1/second))
	return min(max(exponent+ranks/2, 0), ranks-1)
}

func (*costBased) discipline() line.Discipline { return line.Cost }

func (c *costBased) choose(now int64, j *job) *server {
	var b pick
	for _, s := range c.pool.live {
		if !c.pool.may(s, j) {
			continue
		}
		slowdown := c.pool.slowdown(now, s)
		service := s.estimate(j) * slowdown
		var cost float64
		if s.free() {
			cost = j.lateness(now, service)
		} else {
			cost = c.pool.expected(now, s, j, service, slowdown)
		}
		b.offer(s, cost, service)
	}
	c.pool.increase = b.cost
	return b.server
}

// expected is the cost of a job at a server without a free slot.
func (p *Pool) expected(now int64, s *server, j *job, service, slowdown float64) float64 {
	slots := float64(max(s.m, 1))
	wait := s.serving * slowdown / float64(max(s.in, 1)) / slots
	own := rankOf(j.class.Penalty, service)
	at := float64(now-p.epoch) / second
	behind := service / slots
	cost := 0.0
	for left := s.board.used | 1<<own; left != 0; {
		r := bits.Len64(left) - 1 // what is worth most comes first
		left &^= 1 << r
		if r == own {
			// Half of its own rank is thought to be ahead of it.
			half := s.board.ranks[r].service / 2 * slowdown / slots
			cost += j.lateness(now+nanoseconds(wait+half), service)
		}
		k := &s.board.ranks[r]
		if r < own {
			// The mean one of the rank waits for half of it.
			late := k.penalty*(at+wait+k.service/2*slowdown/slots) - k.due
			cost += max(0, late+k.penalty*behind) - max(0, late)
		}
		wait += k.service * slowdown / slots
	}
	return cost
}

// enqueue and dequeue keep the board.
func (c *costBased) enqueue(s *server, j *job) { s.board.add(c.pool.epoch, j, 1) }
func (c *costBased) dequeue(s *server, j *job) { s.board.add(c.pool.epoch, j, -1) }

func (b *board) add(epoch int64, j *job, sign float64) {
	r := rankOf(j.class.Penalty, j.service)
	k := &b.ranks[r]
	if k.n += int(sign); k.n == 0 {
		*k = rank{} // no rounding is left
		b.used &^= 1 << r
		return
	}
	b.used |= 1 << r
	k.service += sign * j.service
	k.penalty += sign * j.class.Penalty
	k.due += sign * j.class.Penalty * (float64(j.due-epoch)/second - j.service)
}

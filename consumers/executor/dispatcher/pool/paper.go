package pool

import (
	"math"

	"penstock/consumers/executor/dispatcher/line"
)

// slowdown of a server where the options ask for it, else 1.
func (p *Pool) slowdown(now int64, s *server) float64 {
	if !p.options.Elapsed {
		return 1
	}
	return s.slowdown(now)
}

// leastIncrease is the paper's first algorithm (A1): the server where the sum of the
// penalties grows least by the request, which is queued in order of deadlines.
//
// At a server with a free slot nobody waits, thus the increase is the request's own
// penalty if it starts now. Where increases are equal, see idler; the paper doesn't say.
type leastIncrease struct{ pool *Pool }

func (*leastIncrease) discipline() line.Discipline { return line.Deadline }

func (l *leastIncrease) choose(now int64, j *job) *server {
	var b pick
	for _, s := range l.pool.live {
		if !l.pool.may(s, j) {
			continue
		}
		slowdown := l.pool.slowdown(now, s)
		service := s.estimate(j) * slowdown
		var increase float64
		if s.free() {
			increase = j.lateness(now, service)
		} else {
			after, before := s.line.Increase(now, j.item(service), s.wait(slowdown))
			increase = after - before
		}
		b.offer(s, increase, service)
	}
	l.pool.increase = b.cost
	return b.server
}

// pick is the best server so far of those offered.
type pick struct {
	server        *server
	cost, service float64
}

// equal is how far costs may differ and yet be equal, relative to them or to one unit:
// they are differences of sums.
const equal = 1e-9

// offer a server at a cost, with the estimated service time there.
func (b *pick) offer(s *server, cost, service float64) {
	if b.server != nil {
		tolerance := equal * max(1, b.cost, -b.cost)
		if cost > b.cost+tolerance || cost >= b.cost-tolerance && !idler(s, b.server, service, b.service) {
			return
		}
	}
	*b = pick{s, cost, service}
}

// cheapestPlace is the paper's second algorithm (A2): the server with the shortest queue,
// at the place in it where the penalty is least (see line.Cheapest).
type cheapestPlace struct{ pool *Pool }

func (*cheapestPlace) discipline() line.Discipline { return line.Cheapest }

func (c *cheapestPlace) choose(now int64, j *job) *server {
	var b pick
	for _, s := range c.pool.live {
		if c.pool.may(s, j) {
			b.offer(s, 0, s.estimate(j)*c.pool.slowdown(now, s))
		}
	}
	return b.server
}

// diverseSlack is the paper's third algorithm (A3): the server where the times that are
// left until the deadlines of the queue's requests, with this one, differ most (see
// line.Lateness, which also says who leaves the queue first). With Options.Near it is the
// most diverse of those where the request is expected to end about as soon as anywhere.
type diverseSlack struct{ pool *Pool }

func (*diverseSlack) discipline() line.Discipline { return line.Lateness }

func (d *diverseSlack) choose(now int64, j *job) *server {
	var b pick
	near := d.near(now, j)
	for _, s := range d.pool.live {
		if !d.pool.may(s, j) {
			continue
		}
		slowdown := d.pool.slowdown(now, s)
		service := s.estimate(j) * slowdown
		if s.ends(service, slowdown) <= near {
			b.offer(s, -s.line.Spread(now, j.item(service)), service)
		}
	}
	return b.server
}

// near is how soon a job has to be expected to end at a server for it to be considered, s.
func (d *diverseSlack) near(now int64, j *job) float64 {
	soonest := math.Inf(1)
	if d.pool.options.Near == 0 {
		return soonest
	}
	for _, s := range d.pool.live {
		if d.pool.may(s, j) {
			slowdown := d.pool.slowdown(now, s)
			soonest = min(soonest, s.ends(s.estimate(j)*slowdown, slowdown))
		}
	}
	return soonest * (1 + d.pool.options.Near)
}

// ends is the time in which a job of a service time is expected to end behind all that the
// server has, M side by side, s.
func (s *server) ends(service, slowdown float64) float64 {
	_, _, queued, _, _ := s.line.Sums()
	return service + (queued+s.serving)*slowdown/float64(max(s.m, 1))
}

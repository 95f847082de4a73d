package pool

import "penstock/consumers/executor/dispatcher/line"

// auto is the best that we have: a request goes where it is expected to end first, and a
// server with a free slot takes the request of all lines that it is most worth to start.
type auto struct{ pool *Pool }

func newAuto(p *Pool) policy { return &auto{pool: p} }

func (*auto) discipline() line.Discipline { return line.Cost }

func (a *auto) choose(now int64, j *job) *server {
	var best *server
	var least float64
	for _, s := range a.pool.live {
		if !a.pool.may(s, j) {
			continue
		}
		t := s.estimate(j)
		if best == nil || idler(s, best, t, least) {
			best, least = s, t
		}
	}
	return best
}

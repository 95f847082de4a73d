package pool

import "penstock/consumers/executor/dispatcher/line"

// leastLoad is the server with the fewest requests by weight, queued or in service
// (ll). One with a free slot goes before one without, which matters where the servers'
// M differ; equals go round.
type leastLoad struct{ pool *Pool }

func (*leastLoad) discipline() line.Discipline { return line.FIFO }

func (l *leastLoad) choose(_ int64, j *job) *server {
	var best *server
	for _, s := range l.pool.live {
		if l.pool.may(s, j) && (best == nil || lighter(s, best) || !lighter(best, s) && s.placed < best.placed) {
			best = s
		}
	}
	return best
}

// lighter reports whether s has less load than b.
func lighter(s, b *server) bool {
	if s.free() != b.free() {
		return s.free()
	}
	return float64(s.load())*b.weight < float64(b.load())*s.weight
}

// twoChoices is the less loaded of two drawn servers (p2c), the first if they are equal.
type twoChoices struct{ pool *Pool }

func (*twoChoices) discipline() line.Discipline { return line.FIFO }

func (t *twoChoices) choose(_ int64, j *job) *server {
	a, b := t.pool.drawTwo(j)
	if b != nil && lighter(b, a) {
		return b
	}
	return a
}

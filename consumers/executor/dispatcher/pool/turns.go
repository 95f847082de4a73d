package pool

import "penstock/consumers/executor/dispatcher/line"

// turns is round robin: the servers of the list one after another (rr).
type turns struct {
	pool *Pool
	next int // rank of whose turn it is
}

func (*turns) discipline() line.Discipline { return line.FIFO }

func (t *turns) choose(_ int64, j *job) *server { return t.pool.inTurn(&t.next, j) }

// inTurn returns the first that may have the job from a rank on, round the list, and
// moves the turn behind it.
func (p *Pool) inTurn(next *int, j *job) *server {
	n := len(p.servers)
	if *next >= n {
		*next = 0 // the list has become shorter
	}
	for k := range n {
		i := *next + k
		if i >= n {
			i -= n
		}
		if s := p.servers[i]; s.usable && p.may(s, j) {
			*next = i + 1
			return s
		}
	}
	return nil
}

// impactTurns is CAP: every class of impact has a round robin of its own, so that each
// kind of work is spread evenly (PAPERS §2.6).
type impactTurns struct {
	pool *Pool
	next [256]int
}

func (*impactTurns) discipline() line.Discipline { return line.FIFO }

func (t *impactTurns) choose(_ int64, j *job) *server { return t.pool.inTurn(&t.next[j.impact], j) }

// weightedTurns is smooth weighted round robin as NGINX has it: each gains its weight,
// the first of the most is chosen and pays what all have gained (wrr).
type weightedTurns struct{ pool *Pool }

func (*weightedTurns) discipline() line.Discipline { return line.FIFO }

func (t *weightedTurns) choose(_ int64, j *job) *server {
	var best *server
	sum := 0.0
	for _, s := range t.pool.live {
		if !t.pool.may(s, j) {
			continue
		}
		s.turn += s.weight
		sum += s.weight
		if best == nil || s.turn > best.turn {
			best = s
		}
	}
	if best != nil {
		best.turn -= sum
	}
	return best
}

package pool

import "penstock/consumers/executor/dispatcher/line"

// policy is an algorithm of the second-level switch.
type policy interface {
	// discipline of the lines in front of the servers.
	discipline() line.Discipline
	// choose returns the server for a job, one of Pool.live that Pool.may allows, or
	// nil if there is none. It is called for every decision, sometimes more than once
	// with rules that allow more; it reads the pool and changes only what is its own.
	choose(now int64, j *job) *server
}

// learner is a policy that learns from what has ended.
type learner interface {
	// learn of a job that was in service there and took so many seconds from its
	// start. It failed if not ok.
	learn(now int64, s *server, j *job, seconds float64, ok bool)
}

// reviser is a policy that learns in another way from a trial that was answered, see
// trial.go.
type reviser interface {
	// revise what it knows of a server; more: another is to follow at once.
	revise(s *server, j *job, seconds float64) (more bool)
}

// joiner is a policy that keeps something of each server.
type joiner interface {
	// join gives a new server a beginning from the others, which it only reads.
	join(now int64, s *server, others []*server)
}

// queuer is a policy that keeps account of what is queued.
type queuer interface {
	enqueue(s *server, j *job)
	dequeue(s *server, j *job)
}

// mover is a policy that says itself which of all requests that wait is started where a
// slot is free, in place of the line's discipline.
type mover interface {
	// take returns the ID of a queued request that this server, which has a free slot, is
	// to have now, and the server where it is queued, which may be the same; nil for none.
	take(now int64, s *server) (id uint64, from *server)
}

// alike is by how much servers' speeds may differ that are as good as each other.
const alike = 1.5

// makers of all policies.
var makers = map[Policy]func(*Pool) policy{
	A1:       func(p *Pool) policy { return &leastIncrease{pool: p} },
	A2:       func(p *Pool) policy { return &cheapestPlace{pool: p} },
	A3:       func(p *Pool) policy { return &diverseSlack{pool: p} },
	RR:       func(p *Pool) policy { return &turns{pool: p} },
	WRR:      func(p *Pool) policy { return &weightedTurns{pool: p} },
	LL:       func(p *Pool) policy { return &leastLoad{pool: p} },
	CAP:      func(p *Pool) policy { return &impactTurns{pool: p} },
	P2C:      func(p *Pool) policy { return &twoChoices{pool: p} },
	PeakEWMA: func(p *Pool) policy { return &peakEWMA{pool: p} },
	Prequal:  func(p *Pool) policy { return &prequal{pool: p} },
	ICBS:     func(p *Pool) policy { return &costBased{pool: p} },
	Auto:     newAuto,
}

// allowance is what may relaxes.
type allowance uint8

const (
	onlyFree allowance = 1 << iota // free slots only
	early                          // ramping servers out of credit
	slotless                       // servers with M = 0
	again                          // servers that the request avoids
	beyond                         // full lines
)

// may reports whether a usable server can be chosen for a job under the allowance of
// this decision.
func (p *Pool) may(s *server, j *job) bool {
	a := p.allow
	if s.in >= s.m {
		switch {
		case a&onlyFree != 0,
			s.m == 0 && a&slotless == 0,
			s.queued >= p.options.Queue && a&beyond == 0:
			return false
		}
	}
	if s.ramping && s.credit < 1 && a&early == 0 {
		return false
	}
	return len(j.avoid) == 0 || a&again != 0 || !j.avoids(s)
}

// idler reports whether s is rather to have a job than b where the policy sees no
// difference: fewer queued, a free slot, less work in service with this one, longer
// without one, earlier in the list. Work is (in service + 1) times the estimate.
func idler(s, b *server, service, least float64) bool {
	if s.queued != b.queued {
		return s.queued < b.queued
	}
	if s.free() != b.free() {
		return s.free()
	}
	if w, v := float64(s.in+1)*service, float64(b.in+1)*least; w != v {
		return w < v
	}
	return s.placed < b.placed // equal only at 0; the earlier in the list is b
}

package pool

import (
	"fmt"
	"math"

	"penstock/consumers/executor/dispatcher/line"
	"penstock/consumers/executor/dispatcher/perceptron"
)

// Pool is the second-level switch of one zone. It is not safe for concurrent use.
type Pool struct {
	options Options
	policy  policy
	learner learner // of the policy, nil if it isn't one; so are the next
	reviser reviser
	joiner  joiner
	queuer  queuer
	mover   mover

	servers []*server // in the order of the list
	live    []*server // of those, the usable ones
	weight  float64   // sum of the live ones' that have slots
	ramping []*server
	former  []*server          // no longer in the list, the oldest first
	known   map[string]*server // all of these by name
	healthy map[string]bool    // as SetUsable said, nil: all are

	jobs     map[uint64]*job
	spare    []*job
	unplaced *line.Line // those that no server may take
	moving   []*job     // scratch

	now, epoch int64 // the last instant and the first
	begun      bool
	decisions  uint64
	draws      draws
	allow      allowance
	increase   float64 // that of the decision, for policies that compare costs
	tried      *server // that of the decision, if it is a trial
	doubts     int64   // no trial is due before, ns
	counts     Counts
}

// Counts are numbers of requests since the pool was made. Those in the pool are Arrived −
// Done − Cancelled.
type Counts struct {
	// Arrived were taken in; Full and NoServer were refused with these errors.
	Arrived, Full, NoServer uint64
	// Started, and ended by Done or Cancel.
	Started, Done, Cancelled uint64
	// Moved counts how often one was placed anew.
	Moved uint64
	// Unknown counts calls of Done and Cancel for what was not in service or in the
	// pool.
	Unknown uint64
}

// New makes a pool without servers, see SetServers. An error wraps ErrOption.
func New(o Options) (*Pool, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if _, err := perceptron.New(o.Perceptron, perceptron.Prior{}); err != nil {
		return nil, fmt.Errorf("%w: Perceptron: %w", ErrOption, err)
	}
	p := &Pool{
		options: o, known: map[string]*server{}, jobs: map[uint64]*job{}, unplaced: line.New(line.FIFO),
	}
	p.policy = makers[o.Policy](p)
	p.learner, _ = p.policy.(learner)
	p.reviser, _ = p.policy.(reviser)
	p.joiner, _ = p.policy.(joiner)
	p.queuer, _ = p.policy.(queuer)
	p.mover, _ = p.policy.(mover)
	return p, nil
}

// Arrive places a request: it is started at once, or queued at a server. starts is
// appended to and returned, here and everywhere. An error is ErrFull, ErrNoServer,
// ErrKnown or ErrClass, and the request is not in the pool.
func (p *Pool) Arrive(now int64, r Request, starts []Start) (Placed, []Start, error) {
	now = p.at(now)
	if r.Class < 0 || r.Class >= len(p.options.Classes) {
		return Placed{}, starts, ErrClass
	}
	if p.jobs[r.ID] != nil {
		return Placed{}, starts, ErrKnown
	}
	j := p.take(now, r)
	s := p.choose(now, j, arrivingMay)
	if s == nil {
		p.release(j)
		if len(p.live) == 0 {
			p.counts.NoServer++
			return Placed{}, starts, ErrNoServer
		}
		p.counts.Full++
		return Placed{}, starts, ErrFull
	}
	p.counts.Arrived++
	p.jobs[j.id] = j
	placed, starts := p.put(now, j, s, starts)
	return placed, starts, nil
}

// Done ends a request in service: the estimates learn from it, and the server's
// next is started. An ID that is not in service changes nothing and is counted.
func (p *Pool) Done(now int64, id uint64, o Outcome, starts []Start) []Start {
	now = p.at(now)
	j := p.jobs[id]
	if j == nil || j.state != running {
		p.counts.Unknown++
		return starts
	}
	s := j.server
	seconds := o.Service
	if !(seconds > 0) || math.IsInf(seconds, 1) {
		seconds = float64(now-j.started) / second
	}
	s.end(j)
	s.hear(now, j, p.learn(now, s, j, seconds, o.OK))
	p.counts.Done++
	p.forget(j)
	return p.fill(now, s, starts)
}

// learn of a job that has ended. One that failed, or was cancelled, has shown that its
// answer takes longer than that; so it only makes an estimate longer. more says of a trial
// that another is to follow at once.
func (p *Pool) learn(now int64, s *server, j *job, seconds float64, ok bool) (more bool) {
	trial := ok && j.trial
	switch {
	case trial:
		var by float64
		by, more = s.trying.add(longer(seconds, s.estimate(j)))
		s.model.LearnAfresh(j.size, j.dynamic, seconds, by)
	case ok || seconds > s.estimate(j):
		s.model.LearnService(j.size, j.dynamic, seconds)
	}
	switch {
	case trial && p.reviser != nil:
		more = p.reviser.revise(s, j, seconds) // that is what is gone by
	case p.learner != nil:
		p.learner.learn(now, s, j, seconds, ok)
	}
	return more
}

// Cancel takes a request out whose client is gone, queued or in service: its place
// is free, and nothing is learned of it; only if Options.Elapsed is set, that it ran for
// longer than estimated. An ID that is not in the pool changes nothing and is counted.
func (p *Pool) Cancel(now int64, id uint64, starts []Start) []Start {
	now = p.at(now)
	j := p.jobs[id]
	if j == nil {
		p.counts.Unknown++
		return starts
	}
	p.counts.Cancelled++
	s := j.server
	switch j.state {
	case unplaced:
		p.unplaced.Remove(id)
	case queued:
		s.line.Remove(id)
		p.dequeue(s, j)
	case running:
		s.end(j)
		if p.options.Elapsed {
			p.learn(now, s, j, float64(now-j.started)/second, false)
		}
		s.hear(now, j, false)
		starts = p.fill(now, s, starts)
	}
	p.forget(j)
	return starts
}

// Potential is the sum of the queued requests' potential penalties, in cost units:
// p_k·max(0, σ_k − d_k), where σ_k is the estimated start (PAPERS §2.3). Those that no
// server may take are in it as if they were started now.
func (p *Pool) Potential(now int64) float64 {
	now = p.at(now)
	sum := p.unplaced.Potential(now, line.Wait{})
	for _, s := range p.live {
		sum += s.line.Potential(now, s.wait(p.slowdown(now, s)))
	}
	return sum
}

// Len is how many requests are queued and in service. Those that no server may take
// are queued.
func (p *Pool) Len() (queued, inService int) {
	queued = p.unplaced.Len()
	for _, s := range p.known {
		queued += s.queued
		inService += s.in
	}
	return queued, inService
}

// Counts returns what has been counted.
func (p *Pool) Counts() Counts { return p.counts }

// Wait is how long a request that arrived now would wait, in s: the least estimate of
// the usable servers with slots, 0 if there is none. It is what a client that is turned
// away is told to wait.
func (p *Pool) Wait(now int64) float64 {
	now = p.at(now)
	least := math.Inf(1)
	for _, s := range p.live {
		if s.m > 0 {
			least = min(least, p.behind(now, s))
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// behind is the estimated wait behind all that are queued at a server, in s: that of the
// perceptron, or, if it is more, of the service times by the number of slots. What is
// learned of waiting is learned late.
func (p *Pool) behind(now int64, s *server) float64 {
	if s.free() {
		return 0
	}
	static, dynamic, service, _, _ := s.line.Sums()
	byTimes := (service + s.serving/float64(max(s.in, 1))) / float64(max(s.m, 1))
	return max(s.model.Wait(static, dynamic), byTimes) * p.slowdown(now, s)
}

// at is the instant of a call. Time doesn't go back: an earlier one counts as the last.
func (p *Pool) at(now int64) int64 {
	now = max(-mostInstant, min(mostInstant, now))
	if !p.begun {
		p.begun, p.now, p.epoch = true, now, now
	}
	p.now = max(p.now, now)
	return p.now
}

// take makes the job of a request.
func (p *Pool) take(now int64, r Request) *job {
	var j *job
	if n := len(p.spare); n > 0 {
		j = p.spare[n-1]
		p.spare = p.spare[:n-1]
	} else {
		j = new(job)
	}
	class := p.options.Classes[r.Class]
	entered := now
	if r.Entered != 0 {
		// Bounded, so that nothing overflows.
		entered = min(max(r.Entered, now-nanoseconds(longest)), now)
	}
	*j = job{
		id: r.ID, class: class, size: bytes(r.Size), dynamic: r.Dynamic, impact: r.Impact,
		avoid: append(j.avoid[:0], r.Avoid...), arrived: now, due: entered + nanoseconds(class.Limit),
	}
	return j
}

// mostInstant bounds instants, so that what is added to them fits, in ns.
const mostInstant = int64(1) << 62

// longest is what a time may be, in s; more is as much.
const longest = 1e9

// bytes of what may be no size.
func bytes(size float64) float64 {
	if size > 0 && !math.IsInf(size, 1) {
		return size
	}
	return 0
}

// forget a job that has ended.
func (p *Pool) forget(j *job) {
	delete(p.jobs, j.id)
	p.release(j)
}

func (p *Pool) release(j *job) {
	clear(j.avoid)
	j.server = nil
	p.spare = append(p.spare, j)
}

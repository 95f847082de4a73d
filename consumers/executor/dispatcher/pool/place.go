package pool

// What a decision allows, step by step, if nothing else is possible. A request that is
// in the pool already isn't turned away: it may also go where the line is full.
var (
	arrivingMay = []allowance{
		0,
		early,
		early | slotless,
		early | again,
		early | again | slotless,
	}
	movingMay = []allowance{
		0,
		early,
		early | again,
		early | again | beyond,
		early | again | beyond | slotless,
	}
)

// choose a server for a job, nil if none may have it.
func (p *Pool) choose(now int64, j *job, steps []allowance) *server {
	if len(p.live) == 0 {
		return nil
	}
	p.decisions++
	p.draws.seed(p.options.Seed, p.decisions)
	p.increase, p.tried = 0, nil
	if len(p.ramping) > 0 {
		p.ramps(now)
		p.allow = 0
		if s := p.first(j); s != nil {
			return s
		}
	}
	if now >= p.doubts {
		if p.tried = p.doubted(now, j); p.tried != nil {
			return p.tried
		}
	}
	if p.options.FreeFirst {
		p.allow = onlyFree
		if s := p.policy.choose(now, j); s != nil {
			return s
		}
	}
	for _, p.allow = range steps {
		if s := p.policy.choose(now, j); s != nil {
			return s
		}
	}
	return nil
}

// put a job at a server: into service if there is a slot, else into the line.
func (p *Pool) put(now int64, j *job, s *server, starts []Start) (Placed, []Start) {
	j.server, j.placed, j.found = s, now, s.load()
	j.service = s.estimate(j)
	s.placed = p.decisions
	if s.ramping {
		s.credit = max(0, s.credit-1)
		s.tried = true
	}
	if s == p.tried {
		s.try(j)
	}
	placed := Placed{ID: j.id, Server: s.name, Service: j.service, Increase: p.increase}
	if s.free() {
		return placed, p.start(now, s, j, starts)
	}
	at := s.line.Insert(now, j.item(j.service))
	j.static, j.dynamics = at.Static, at.Dynamic
	j.state = queued
	s.queued++
	if j.dynamic {
		s.queuedDynamic++
	}
	if p.queuer != nil {
		p.queuer.enqueue(s, j)
	}
	placed.Queued, placed.Wait = true, s.model.Wait(at.Static, at.Dynamic)
	return placed, starts
}

// dequeue follows a job's leaving of the line.
func (p *Pool) dequeue(s *server, j *job) {
	s.queued--
	if j.dynamic {
		s.queuedDynamic--
	}
	if p.queuer != nil {
		p.queuer.dequeue(s, j)
	}
}

// start a job at its server.
func (p *Pool) start(now int64, s *server, j *job, starts []Start) []Start {
	s.run(now, j)
	p.counts.Started++
	return append(starts, Start{ID: j.id, Server: s.name, Waited: now - j.arrived, Service: j.service})
}

// fill a server's free slots from its line, or with what the policy says.
func (p *Pool) fill(now int64, s *server, starts []Start) []Start {
	for s.usable && s.free() {
		j := p.next(now, s)
		if j == nil {
			break
		}
		starts = p.start(now, s, j, starts)
	}
	return starts
}

// next takes the job out of its line that a server with a free slot is to have, nil if there
// is none.
func (p *Pool) next(now int64, s *server) *job {
	if p.mover != nil {
		return p.fetch(now, s)
	}
	it, ok := s.line.Pop(now)
	if !ok {
		return nil
	}
	j := p.jobs[it.ID]
	p.leave(now, s, j)
	return j
}

// leave follows a job's leaving of the line to be served there.
func (p *Pool) leave(now int64, s *server, j *job) {
	p.dequeue(s, j)
	s.model.LearnWait(j.static, j.dynamics, float64(now-j.placed)/second)
}

// fetch takes a job out of any server's line by the policy.
func (p *Pool) fetch(now int64, s *server) *job {
	id, from := p.mover.take(now, s)
	j := p.jobs[id]
	if from == nil || j == nil || j.state != queued || j.server != from {
		return nil
	}
	from.line.Remove(id)
	if from == s {
		p.leave(now, s, j)
		j.found = s.in
		return j
	}
	p.dequeue(from, j)
	p.counts.Moved++
	if s.ramping {
		s.credit = max(0, s.credit-1)
		s.tried = true
	}
	j.server, j.placed, j.found = s, now, s.in
	j.service = s.estimate(j)
	return j
}

package pool

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"penstock/consumers/executor/dispatcher/line"
	"penstock/consumers/executor/dispatcher/perceptron"
)

// remembered is how many servers that are gone keep their estimates, for when they come
// back.
const remembered = 1024

// SetServers says which servers there are. New ones begin with estimates pooled from
// the others and ramp; those that are no longer there get no more requests, those in
// service there end as ever, and those queued there are placed anew: moved says where.
// So are those queued where M is now 0, if a server has slots. An M below what is in
// service lets nothing begin until so many have ended.
// An error wraps ErrServers and nothing has changed.
func (p *Pool) SetServers(now int64, servers []Server, moved []Placed, starts []Start) ([]Placed, []Start, error) {
	if err := checkServers(servers); err != nil {
		return moved, starts, err
	}
	now = p.at(now)
	others := slices.Clone(p.servers)
	ramp := p.established(now)
	for _, s := range others {
		s.rank = -1
	}
	p.servers = p.servers[:0]
	var prior *perceptron.Prior // of those that were there before
	for rank, o := range servers {
		s := p.known[o.Name]
		if s == nil {
			if prior == nil {
				prior = new(perceptron.Prior)
				*prior = pooled(others)
			}
			s = p.add(now, o.Name, *prior, others)
		}
		s.rank, s.m = rank, o.M
		if s.weight = o.Weight; s.weight == 0 {
			s.weight = 1
		}
		if p.options.Abreast {
			s.line.SetAbreast(s.m)
		}
		p.servers = append(p.servers, s)
	}
	p.former = slices.DeleteFunc(p.former, func(s *server) bool { return s.rank >= 0 })
	for _, s := range others {
		if s.rank < 0 {
			p.former = append(p.former, s)
		}
	}
	p.drop()
	p.judge(now, ramp)
	moved, starts = p.settle(now, moved, starts)
	return moved, starts, nil
}

func checkServers(servers []Server) error {
	names := make(map[string]bool, len(servers))
	for i, s := range servers {
		switch {
		case s.Name == "":
			return fmt.Errorf("%w: servers[%d]: the name is empty", ErrServers, i)
		case names[s.Name]:
			return fmt.Errorf("%w: servers[%d]: %q is there twice", ErrServers, i, s.Name)
		case !(s.Weight >= 0) || s.Weight > 1e9:
			return fmt.Errorf("%w: %q: weight %v, expected 0 to 1e9", ErrServers, s.Name, s.Weight)
		case s.M < 0:
			return fmt.Errorf("%w: %q: M %d, expected 0 or more", ErrServers, s.Name, s.M)
		}
		names[s.Name] = true
	}
	return nil
}

// pooled is what servers' estimates have in common.
func pooled(servers []*server) perceptron.Prior {
	models := make([]*perceptron.Model, len(servers))
	for i, s := range servers {
		models[i] = s.model
	}
	return perceptron.Pool(models)
}

// add a server that is not known.
func (p *Pool) add(now int64, name string, prior perceptron.Prior, others []*server) *server {
	model, err := perceptron.New(p.options.Perceptron, prior)
	if err != nil { // New has tried these options
		panic(fmt.Sprintf("pool: %v", err))
	}
	s := &server{name: name, model: model, patience: p.patience(name), line: line.New(p.policy.discipline())}
	s.line.SetDecay(p.options.CostDecay)
	p.known[name] = s
	if p.joiner != nil {
		p.joiner.join(now, s, others)
	}
	return s
}

// drop forgets the oldest of too many that are gone.
func (p *Pool) drop() {
	excess := len(p.former) - remembered
	p.former = slices.DeleteFunc(p.former, func(s *server) bool {
		if excess <= 0 || s.in > 0 || s.queued > 0 {
			return false
		}
		excess--
		delete(p.known, s.name)
		return true
	})
}

// SetUsable says which servers may be used, by their health; until it is called the
// first time, all may. Requests that are queued at others are placed anew, or wait for
// one that is usable. One that becomes usable beside others ramps.
func (p *Pool) SetUsable(now int64, names []string, moved []Placed, starts []Start) ([]Placed, []Start) {
	now = p.at(now)
	ramp := p.established(now)
	p.healthy = make(map[string]bool, len(names))
	for _, name := range names {
		p.healthy[name] = true
	}
	p.judge(now, ramp)
	return p.settle(now, moved, starts)
}

// judge finds who is usable; whoever was not before enters.
func (p *Pool) judge(now int64, ramp bool) {
	p.live, p.ramping, p.weight = p.live[:0], p.ramping[:0], 0
	for _, s := range p.servers {
		usable := p.healthy == nil || p.healthy[s.name]
		if usable && !s.usable {
			p.enter(now, s, ramp)
		}
		if s.usable = usable; !usable {
			continue
		}
		p.live = append(p.live, s)
		if s.m > 0 {
			p.weight += s.weight
		}
		if s.ramping {
			p.ramping = append(p.ramping, s)
		}
	}
	for _, s := range p.former {
		s.usable = false
	}
}

// settle starts what may be started and places anew what is queued where it can't be.
func (p *Pool) settle(now int64, moved []Placed, starts []Start) ([]Placed, []Start) {
	p.moving = p.moving[:0]
	for _, s := range p.former {
		p.empty(now, s)
	}
	slots := slices.ContainsFunc(p.live, func(s *server) bool { return s.m > 0 })
	for _, s := range p.servers {
		if !s.usable || s.m == 0 && slots {
			p.empty(now, s)
		}
	}
	if len(p.live) > 0 {
		for it, ok := p.unplaced.Pop(now); ok; it, ok = p.unplaced.Pop(now) {
			p.moving = append(p.moving, p.jobs[it.ID])
		}
	}
	for _, s := range p.live {
		starts = p.fill(now, s, starts)
	}
	slices.SortFunc(p.moving, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.arrived, b.arrived), cmp.Compare(a.id, b.id))
	})
	for _, j := range p.moving {
		p.counts.Moved++
		placed := Placed{ID: j.id, Queued: true}
		if s := p.choose(now, j, movingMay); s != nil {
			placed, starts = p.put(now, j, s, starts)
		} else {
			j.server, j.state = nil, unplaced
			p.unplaced.Insert(now, j.item(0))
		}
		moved = append(moved, placed)
	}
	clear(p.moving)
	return moved, starts
}

// empty takes all that are queued at a server out of its line.
func (p *Pool) empty(now int64, s *server) {
	for it, ok := s.line.Pop(now); ok; it, ok = s.line.Pop(now) {
		j := p.jobs[it.ID]
		p.dequeue(s, j)
		p.moving = append(p.moving, j)
	}
}

// Gauges calls fn for every server, in the order of SetServers, then for those leaving.
func (p *Pool) Gauges(now int64, fn func(Gauge)) {
	now = p.at(now)
	for _, s := range p.servers {
		fn(p.gauge(now, s))
	}
	for _, s := range p.former {
		if s.in > 0 {
			fn(p.gauge(now, s))
		}
	}
}

func (p *Pool) gauge(now int64, s *server) Gauge {
	g := Gauge{
		Server: s.name, Usable: s.usable, Leaving: s.rank < 0, Ramping: s.usable && s.ramping && now-s.since < int64(p.options.Ramp),
		M: s.m, InService: s.in, Queued: s.queued, QueuedStatic: s.queued - s.queuedDynamic, QueuedDynamic: s.queuedDynamic,
		Late: s.late(), Wait: p.behind(now, s), Slowdown: s.slowdown(now), Started: s.started, Trials: s.trials,
	}
	g.StaticBytes, g.DynamicBytes, _, _, _ = s.line.Sums()
	g.Potential = s.line.Potential(now, s.wait(p.slowdown(now, s)))
	g.ServiceError, g.WaitError = s.model.Error()
	return g
}

// finite reports whether v is a number from 0 on.
func finite(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }

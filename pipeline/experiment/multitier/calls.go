package multitier

import (
	"math"
	"net/http"
)

// send chooses a call's site by the tables in force and sends it there, and a copy
// where probes are ordered.
func (s *simulation) send(i int32, bytes int64) {
	c := &s.calls[i]
	l := s.links[s.link(c.caller, c.from, c.component)]
	key := ""
	if s.app.Components[c.component].Keyed {
		key = s.users[c.user]
	}
	c.site = s.site(s.router.Pick(l, key).Site)
	copied := *c
	s.depart(i, bytes)
	if copied.probe || copied.heavy {
		return
	}
	if site, ok := s.router.Probe(l); ok {
		copied.parent, copied.probe, copied.site = outside, true, s.site(site)
		k := s.newCall()
		s.calls[k] = copied
		s.out.probes++
		s.depart(k, bytes)
	}
}

// site is the number of a site, by its name.
func (s *simulation) site(name string) int32 {
	for n := range s.app.Sites {
		if s.app.Sites[n].Name == name {
			return int32(n)
		}
	}
	panic("multitier: a table named a site that the router does not know: " + name)
}

// depart puts a call on its way.
func (s *simulation) depart(i int32, bytes int64) {
	c := &s.calls[i]
	c.way = s.way(c.from, c.site, bytes)
	s.out.sent(s, c, bytes)
	s.agenda.put(s.now+c.way, arriving, i)
}

// way is how long one way takes.
func (s *simulation) way(from, to int32, bytes int64) int64 {
	kind := &s.app.Between
	if from == to {
		kind = &s.app.Within
	}
	us := s.rtt[int(from)*s.sites+int(to)]/2 + s.random.ExpFloat64()*float64(kind.Jitter.Microseconds()) + float64(bytes)*8e6/kind.Rate
	return int64(us)
}

// arrive takes a call in at its replica.
func (s *simulation) arrive(i int32) {
	c := &s.calls[i]
	c.reached = s.now
	r := &s.replicas[int(c.component)*s.sites+int(c.site)]
	switch {
	case r.servers == 0, r.queue.n >= s.o.Queue:
		s.answer(i, http.StatusServiceUnavailable)
	default:
		r.queue.put(i)
		s.fill(int(c.component), int(c.site))
	}
}

// fill gives free servers calls from the queue.
func (s *simulation) fill(component, site int) {
	r := &s.replicas[component*s.sites+site]
	for r.busy < r.servers && r.queue.n > 0 {
		i := r.queue.take()
		c := &s.calls[i]
		c.wait, c.served = s.now-c.reached, s.now
		if s.now >= c.due {
			s.answer(i, http.StatusGatewayTimeout)
			continue
		}
		r.busy++
		k := &s.app.Components[component]
		us := float64(k.Service.Microseconds()) * r.slow
		if c.heavy {
			us *= k.Heavy
		}
		d := s.service[component]
		us *= math.Exp(d.mu + d.sigma*s.random.NormFloat64())
		s.agenda.put(s.now+max(1, int64(us)), serving, i)
	}
}

// leave ends a call's service and frees its server.
func (s *simulation) leave(i int32) {
	c := &s.calls[i]
	r := &s.replicas[int(c.component)*s.sites+int(c.site)]
	r.busy--
	c.service = s.now - c.served
	component, site := int(c.component), int(c.site)
	if r.more > 0 {
		more := r.more
		if r.spread {
			more *= s.random.ExpFloat64()
		}
		s.agenda.put(s.now+int64(more), waiting, i)
	} else {
		s.step(i)
	}
	s.fill(component, site)
}

// step makes the next of a call's own calls, or answers it.
func (s *simulation) step(i int32) {
	c := &s.calls[i]
	of := s.app.Components[c.component].Calls
	for int(c.step) < len(of) {
		k := &of[c.step]
		likely := k.Light
		if c.heavy {
			likely = k.Heavy
		}
		if c.again == 0 && likely < 1 && s.random.Float64() >= likely || int(c.again) == k.Times {
			c.step, c.again = c.step+1, 0
			continue
		}
		c.again++
		child := call{
			parent: i, caller: c.component, component: int32(k.To), from: c.site, heavy: c.heavy, probe: c.probe, user: c.user,
			began: c.began, due: c.due, answer: k.Answer,
		}
		n := s.newCall() // c is of no use from here on: calls may lie elsewhere
		s.calls[n] = child
		s.send(n, k.Bytes)
		return
	}
	s.answer(i, http.StatusOK)
}

// answer sends a call's answer back.
func (s *simulation) answer(i int32, status int32) {
	c := &s.calls[i]
	c.status = status
	bytes := int64(0)
	if status == http.StatusOK {
		bytes = c.answer
	}
	back := s.way(c.site, c.from, bytes)
	c.way += back
	s.out.answered(s, c, bytes)
	s.agenda.put(s.now+back, ending, i)
}

// end takes an answer in at its caller.
func (s *simulation) end(i int32) {
	c := s.calls[i]
	s.free = append(s.free, i)
	s.loop.row(&c)
	switch {
	case c.parent == outside && c.probe:
	case c.parent == outside:
		s.out.request(s, &c)
	case c.status != http.StatusOK:
		s.answer(c.parent, http.StatusBadGateway)
	default:
		s.step(c.parent)
	}
}

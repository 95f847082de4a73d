package queue

import (
	"fmt"
	"slices"
)

// plain is the rule of the queue written down again, slowly: nothing is counted, all is
// looked for among all requests there ever were. It names what happens as a scene does.
type plain struct {
	connections, most, background, patience int

	requests []*plainRequest
	queues   [classes][]plainTask
	passed   int // tasks of clients begun on end while class background stood still
	log      []string
}

type plainRequest struct {
	name                                string
	background, keep, finish, planErr   bool
	n, k, more                          int
	hedge                               bool
	waits, inService, decided, hasEnded bool
	hedging                             bool // was said
	won                                 int
	tasks                               []string // held, queued, runs, told, done
}

type plainTask struct {
	r *plainRequest
	i int
}

func (t plainTask) is(states ...string) bool { return slices.Contains(states, t.r.tasks[t.i]) }
func (t plainTask) String() string           { return fmt.Sprintf("%s.%d", t.r.name, t.i) }

func (p *plain) say(format string, args ...any) { p.log = append(p.log, fmt.Sprintf(format, args...)) }

// tasks lists those of a class that are in one of the states; class −1: of both.
func (p *plain) tasks(class int, states ...string) (out []plainTask) {
	for _, r := range p.requests {
		if class >= 0 && r.background != (class == behind) {
			continue
		}
		out = append(out, r.in(states...)...)
	}
	return out
}

func (r *plainRequest) in(states ...string) (out []plainTask) {
	for i := range r.tasks {
		if t := (plainTask{r, i}); t.is(states...) {
			out = append(out, t)
		}
	}
	return out
}

// inLine are the requests of a class that wait.
func (p *plain) inLine(background bool) (out []*plainRequest) {
	for _, r := range p.requests {
		if r.waits && r.background == background {
			out = append(out, r)
		}
	}
	return out
}

func (p *plain) arrive(r *plainRequest) bool {
	if len(p.inLine(r.background)) >= p.most && !r.keep {
		return false
	}
	r.waits = true
	p.requests = append(p.requests, r)
	return true
}

// pump does all that can be done now.
func (p *plain) pump() {
	for len(p.tasks(-1, "runs", "told")) < p.connections {
		class := front
		switch {
		case len(p.queues[front]) == 0 && len(p.inLine(false)) == 0:
			class = behind
			if len(p.tasks(behind, "runs", "told")) >= p.background {
				return
			}
		case p.stands() && p.passed >= p.patience:
			class = behind
		}
		if q := p.queues[class]; len(q) > 0 {
			p.queues[class] = q[1:]
			q[0].r.tasks[q[0].i] = "runs"
			if r := q[0].r; len(r.in("queued")) == 0 && len(r.in("held")) > 0 && !r.hedging {
				r.hedging = true
				p.say("hedging %s", r.name)
			}
			p.say("start %v", q[0])
			if p.passed++; !p.stands() {
				p.passed = 0
			}
		} else if line := p.inLine(class == behind); len(line) > 0 {
			p.admit(line[0])
		} else {
			return
		}
	}
}

// stands tells whether work of class background waits and none of it runs.
func (p *plain) stands() bool {
	return len(p.tasks(behind, "runs", "told")) == 0 && len(p.queues[behind])+len(p.inLine(true)) > 0
}

func (p *plain) admit(r *plainRequest) {
	r.waits, r.inService = false, true
	if !r.planErr {
		for i := range r.n {
			r.tasks = append(r.tasks, "held")
			if !r.hedge || r.finish || i < r.k {
				p.queue(plainTask{r, i}, false)
			}
		}
		for r.chances() < r.k && p.replace(r, false) {
		}
	}
	p.say("admitted %s", r.name)
	switch {
	case r.planErr:
		p.decide(r, false)
	case r.k == 0:
		p.decide(r, true)
	case r.chances() < r.k:
		p.decide(r, false)
	}
}

// chances is how many tasks have succeeded or still may.
func (r *plainRequest) chances() int { return r.won + len(r.in("held", "queued", "runs")) }

func (p *plain) queue(t plainTask, first bool) {
	class := front
	if t.r.background {
		class = behind
	}
	t.r.tasks[t.i] = "queued"
	at := len(p.queues[class])
	if first {
		at = 0
	}
	p.queues[class] = slices.Insert(p.queues[class], at, t)
}

func (p *plain) replace(r *plainRequest, first bool) bool {
	if held := r.in("held"); len(held) > 0 {
		p.queue(held[0], first)
		return true
	}
	if r.more == 0 {
		return false
	}
	r.more--
	r.tasks = append(r.tasks, "held")
	p.queue(plainTask{r, len(r.tasks) - 1}, first)
	return true
}

func (p *plain) done(t plainTask, ok bool) {
	r, counts := t.r, t.is("runs")
	r.tasks[t.i] = "done"
	if counts && r.inService && ok {
		if r.won++; r.won >= r.k {
			p.decide(r, true)
		}
	} else if counts && r.inService {
		if !p.replace(r, true) && r.chances() < r.k {
			p.decide(r, false)
		}
	}
	p.end(r)
}

func (p *plain) extend(r *plainRequest) {
	if r.inService {
		for _, t := range r.in("held") {
			p.queue(t, false)
		}
	}
}

func (p *plain) abandon(r *plainRequest) {
	switch {
	case r.waits || r.inService:
		p.decide(r, false)
	case r.decided:
		p.drop(r)
		p.end(r)
	}
}

func (p *plain) decide(r *plainRequest, ok bool) {
	r.waits, r.inService, r.decided = false, false, true
	if p.say("finished %s %v", r.name, ok); !ok || !r.finish {
		p.drop(r)
	}
	p.end(r)
}

func (p *plain) drop(r *plainRequest) {
	for _, t := range r.in("held", "queued", "runs") {
		if t.is("runs") {
			r.tasks[t.i] = "told"
			p.say("cancelled %v", t)
			continue
		}
		r.tasks[t.i] = "done"
		for class := range p.queues {
			p.queues[class] = slices.DeleteFunc(p.queues[class], func(x plainTask) bool { return x == t })
		}
	}
}

func (p *plain) end(r *plainRequest) {
	if r.decided && !r.hasEnded && len(r.in("queued", "runs", "told")) == 0 {
		r.hasEnded = true
		p.say("ended %s", r.name)
	}
}

package queue

import "cmp"

// The two lines that requests and tasks stand in.
const (
	front  = iota // requests of clients
	behind        // of class background
	classes
)

// CoreOptions of a Core.
type CoreOptions struct {
	// Background is how many tasks of class background run at a time. Defaults to a
	// quarter of the connections, at least one; it is held below their number where
	// there is more than one, so that a request finds one idle.
	Background int
	// Chooser picks codes. Needed.
	Chooser Chooser
	// Connections is L: how many tasks run at a time. Defaults to 16.
	Connections int
	// MaxWaiting is how many requests of a class may wait. Defaults to 1,000.
	MaxWaiting int
	// Patience is how many tasks of clients are begun while work of class background
	// stands still before one task of it is begun ahead of them. Defaults to twice the
	// connections: what a backlog that never ends leaves it is one task at a time, half
	// of what one connection does.
	Patience int
}

func (o CoreOptions) complete() CoreOptions {
	o.Connections = cmp.Or(o.Connections, 16)
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 1000)
	o.Patience = cmp.Or(o.Patience, 2*o.Connections)
	o.Background = min(cmp.Or(o.Background, max(1, o.Connections/4)), max(1, o.Connections-1))
	return o
}

// Core is the queue without time, goroutines and locks: calls say what happened, Next
// and Event what is to be done. It is for one goroutine.
//
// After each call of another method call Next until it has no task, and take the events.
type Core struct {
	o        CoreOptions
	follower Follower // the chooser, if it is one
	followed int      // waiting requests of clients that it was told of last
	waiting  [classes]list[Request]
	queued   [classes]list[Task]
	inUse    [classes]int
	passed   int           // tasks of clients begun on end while class background stood still
	alive    list[Request] // admitted, and not ended
	events   []Event
	seen     int
	counts   Counts
}

// NewCore returns a core in which nothing waits. Numbers must not be negative.
func NewCore(o CoreOptions) *Core {
	c := &Core{o: o.complete()}
	c.follower, _ = o.Chooser.(Follower)
	return c
}

// follow tells the chooser how many clients' requests wait now, if it wants to know.
func (c *Core) follow() {
	if c.follower != nil {
		c.followed = c.waiting[front].n
		c.follower.Follows(c.followed)
	}
}

// Idle is how many connections do nothing.
func (c *Core) Idle() int { return c.o.Connections - c.inUse[front] - c.inUse[behind] }

// Arrive puts a request at the end of its line; false if as many wait as may. It panics
// for one that was accepted before.
func (c *Core) Arrive(r *Request) bool {
	if r.phase != fresh {
		panic("queue: a request arrived twice")
	}
	line := &c.waiting[r.class()]
	if !r.Background {
		c.o.Chooser.Arrived(line.n)
	}
	if line.n >= c.o.MaxWaiting && !r.Keep {
		c.counts.Refused++
		return false
	}
	r.phase = waiting
	line.push(r, &r.place)
	c.counts.Arrived++
	return true
}

// Next takes the next task, which is to be started: it has a connection until Done. The
// head of the line is admitted only when a connection is idle and no task is queued.
func (c *Core) Next() (*Task, bool) {
	for c.Idle() > 0 {
		class := c.turn()
		if class == behind && c.inUse[behind] >= c.o.Background {
			break
		}
		if t := c.queued[class].pop(); t != nil {
			c.begin(t)
			return t, true
		}
		r := c.waiting[class].pop()
		if r == nil {
			break
		}
		c.admit(r)
	}
	if c.followed != c.waiting[front].n {
		c.follow()
	}
	return nil, false
}

// turn is the class whose turn it is: the clients', unless nothing of theirs waits, or
// the other has stood still for too long.
func (c *Core) turn() int {
	if c.queued[front].n == 0 && c.waiting[front].n == 0 || c.passed >= c.o.Patience && c.stands() {
		return behind
	}
	return front
}

// stands tells whether work of class background waits and none of it runs.
func (c *Core) stands() bool {
	return c.inUse[behind] == 0 && c.queued[behind].n+c.waiting[behind].n > 0
}

// begin gives a task a connection.
func (c *Core) begin(t *Task) {
	r := t.of
	t.state = running
	c.inUse[r.class()]++
	if c.passed++; !c.stands() {
		c.passed = 0
	}
	if r.queued--; r.queued == 0 && r.held > 0 && !r.hedging {
		r.hedging = true
		c.tell(Hedging, r, nil)
	}
}

// admit takes a request apart.
func (c *Core) admit(r *Request) {
	r.code = Code{N: 1, K: 1}
	if !r.Background {
		c.follow()
		r.code = c.o.Chooser.Choose(r.Op, c.Idle())
	}
	r.phase = admitted
	c.alive.push(r, &r.alive)
	c.counts.Admitted++
	p := r.Plan(r.code)
	r.need = p.Need
	atOnce := len(p.Tasks)
	if r.code.Hedge > 0 && r.Rest == Cancel {
		atOnce = min(max(0, r.need), atOnce)
	}
	if p.Err == nil {
		for i := range p.Tasks {
			t := &p.Tasks[i]
			t.N, t.K = cmp.Or(t.N, len(p.Tasks)), cmp.Or(t.K, p.Need)
			c.adopt(r, t)
			if i < atOnce {
				c.enqueue(t, false)
			}
		}
		for r.open < r.need && c.another(r, false) {
		}
	}
	c.tell(Admitted, r, nil)
	switch {
	case p.Err != nil:
		c.finish(r, p.Err)
	case r.need <= 0:
		c.finish(r, nil)
	case r.open < r.need:
		c.finish(r, r.tooFew())
	}
}

// adopt notes a task of a request, held back.
func (c *Core) adopt(r *Request, t *Task) {
	t.of, t.state = r, held
	if r.last == nil {
		r.first = t
	} else {
		r.last.sibling = t
	}
	r.last = t
	r.open++
	r.held++
}

// enqueue queues a task that was held back.
func (c *Core) enqueue(t *Task, first bool) {
	line := &c.queued[t.of.class()]
	t.state = queued
	t.of.held--
	t.of.queued++
	t.of.out++
	if first {
		line.pushFront(t, &t.place)
	} else {
		line.push(t, &t.place)
	}
}

// another queues one more task of a request: one held back, else one that More has. In the
// place of one that failed it goes first, for its request is older than any whose tasks
// wait.
func (c *Core) another(r *Request, first bool) bool {
	if r.held > 0 {
		t := r.first
		for t.state != held {
			t = t.sibling
		}
		c.enqueue(t, first)
		return true
	}
	if r.More == nil {
		return false
	}
	t, ok := r.More()
	if !ok {
		return false
	}
	t.N, t.K = cmp.Or(t.N, r.first.planned(r).N), cmp.Or(t.K, r.need)
	c.adopt(r, &t)
	c.enqueue(&t, first)
	c.counts.Replaced++
	return true
}

// planned is the code that the record of a request's tasks has.
func (t *Task) planned(r *Request) Code {
	if t == nil {
		return Code{N: r.need, K: r.need}
	}
	return Code{N: t.N, K: t.K}
}

// Extend queues the tasks that were held back: the request's hedge is over.
func (c *Core) Extend(r *Request) {
	if r.held == 0 {
		return
	}
	c.counts.Hedged++
	for t := r.first; t != nil; t = t.sibling {
		if t.state == held {
			c.enqueue(t, false)
		}
	}
}

// Done says that a task that Next returned has ended, well if err is nil. Its connection
// is idle. It panics for a task that has none.
func (c *Core) Done(t *Task, err error) {
	if t.state != running && t.state != cancelled {
		panic("queue: a task ended that did not run")
	}
	r, was := t.of, t.state
	t.state = over
	c.inUse[r.class()]--
	r.out--
	switch {
	case err == nil:
		c.counts.Done++
	case was == cancelled:
		c.counts.Cancelled++
	default:
		c.counts.Failed++
	}
	if was == running {
		r.open--
		c.settle(r, err)
	}
	c.end(r)
}

// settle is what the end of a task means for its request.
func (c *Core) settle(r *Request, err error) {
	switch {
	case r.phase != admitted:
		return
	case err == nil:
		if r.won++; r.won >= r.need {
			c.finish(r, nil)
		}
	default:
		r.errs = append(r.errs, err)
		if !c.another(r, true) && r.won+r.open < r.need {
			c.finish(r, r.tooFew())
		}
	}
}

// Abandon ends a request, with the error if its end is not decided: nobody wants its
// answer any more, nor, if it is, its rest. Queued tasks are dropped, running ones are
// to end.
func (c *Core) Abandon(r *Request, err error) {
	switch r.phase {
	case waiting:
		r.place.leave()
		c.finish(r, err)
	case admitted:
		c.finish(r, err)
	case finished:
		c.drop(r)
		c.end(r)
	}
}

// AbandonAll ends every request of a class, see Abandon, or those of it that wait.
func (c *Core) AbandonAll(background, onlyWaiting bool, err error) {
	class := front
	if background {
		class = behind
	}
	for p := c.waiting[class].head; p != nil; p = c.waiting[class].head {
		c.Abandon(p.of, err)
	}
	for p := c.alive.head; p != nil && !onlyWaiting; {
		r := p.of
		if p = p.next; r.class() == class {
			c.Abandon(r, err)
		}
	}
}

// finish decides a request's end.
func (c *Core) finish(r *Request, err error) {
	r.phase, r.err = finished, err
	if err == nil {
		c.counts.Finished++
	} else {
		c.counts.Broken++
	}
	c.tell(Finished, r, nil)
	if err != nil || r.Rest == Cancel {
		c.drop(r)
	}
	c.end(r)
}

// drop takes a request's queued tasks out and tells the running ones to end.
func (c *Core) drop(r *Request) {
	for t := r.first; t != nil; t = t.sibling {
		switch t.state {
		case held:
			r.held--
		case queued:
			t.place.leave()
			r.queued--
			r.out--
		case running:
			t.state = cancelled
			r.open--
			c.tell(Cancelled, r, t)
			continue
		default:
			continue
		}
		t.state = over
		r.open--
		c.counts.Dropped++
	}
}

// end notes that nothing of a finished request is left.
func (c *Core) end(r *Request) {
	if r.phase != finished || r.out > 0 {
		return
	}
	r.phase = ended
	r.alive.leave()
	c.tell(Ended, r, nil)
}

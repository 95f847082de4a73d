package simcoder

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"penstock/consumers/executor/coder/queue"
	"penstock/pipeline/experiment/coding/delays"
)

// never is after every event.
const never = math.MaxInt64

// work is a task with what is known of its run.
type work struct {
	index      int // within its request
	bytes      int64
	connection int
	started    int64
	told       int64 // to end, never: it was not
}

// entry is a request with its tasks. Entries are used again once nothing of their
// request is left.
type entry struct {
	request queue.Request
	tasks   []queue.Task
	works   []work
	plan    func(queue.Code) queue.Plan
	number  int // of the arrival
	arrived int64
	bytes   int64
	luck    delays.Luck
	counts  bool
}

// hedge is when the tasks of a request that were held back are to be begun.
type hedge struct {
	at     int64
	of     *entry
	number int // of the request that the entry then was
}

// simulation is one run. Times are in ns from its beginning.
type simulation struct {
	o    *Options
	core *queue.Core
	loop *looped // nil: none
	now  int64

	arrivals arrivals
	luck     *rand.Rand
	size     int // place in Options.Bytes
	arrival  int64
	number   int

	ends   []int64 // by connection, never: idle
	who    []*queue.Task
	free   []int
	hedges []hedge
	spare  []*entry

	out     *Outcome
	delays  []float64
	backlog int // sum, of those that count
	met     int
	busy    float64 // connections × ns, within the span
	since   int64   // of busy
	begun   int64   // of the span, never: not yet
	left    int     // requests that count and have no answer
	over    bool
	failed  error
}

// Run runs a simulated coder. The error wraps ErrOptions, or is the context's.
func Run(ctx context.Context, o Options) (*Outcome, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := newSimulation(&o)
	for i := 0; !s.over; i++ {
		if i&0xffff == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s.step()
	}
	if s.failed != nil {
		return nil, s.failed
	}
	s.sum()
	return s.out, nil
}

func newSimulation(o *Options) *simulation {
	s := &simulation{
		o: o, out: &Outcome{K: make([]int64, 1), N: make([]int64, 1)},
		// What is refused would be missing from the delays: nothing is.
		core:    queue.NewCore(queue.CoreOptions{Connections: o.Connections, Chooser: o.Chooser, MaxWaiting: math.MaxInt}),
		luck:    rand.New(rand.NewPCG(o.Seed, streamLuck)),
		ends:    make([]int64, o.Connections),
		who:     make([]*queue.Task, o.Connections),
		arrival: never, begun: never, left: o.Requests,
	}
	s.size = rand.New(rand.NewPCG(o.Seed, streamSizes)).IntN(len(o.Bytes))
	for c := range s.ends {
		s.ends[c] = never
		s.free = append(s.free, len(s.ends)-1-c)
	}
	if o.Loop != nil {
		s.loop = newLooped(o.Loop, o.Op.String())
	}
	if o.Until > 0 {
		s.out.Course = make([]Bin, (o.Until+o.Bin-1)/o.Bin)
		s.left = never
	}
	if o.Waiting > 0 {
		for range o.Waiting {
			s.arrive()
		}
		s.settle()
	} else {
		s.arrivals = newArrivals(o.Rate, o.Seed)
		s.arrival = s.arrivals.next()
	}
	return s
}

// step goes to the next event: the end of a task before the end of a hedge before an
// arrival, where they fall together, and windows first.
func (s *simulation) step() {
	at, connection := int64(never), 0
	for c, end := range s.ends {
		if end < at {
			at, connection = end, c
		}
	}
	hedged := len(s.hedges) > 0 && s.hedges[0].at < at
	if hedged {
		at = s.hedges[0].at
	}
	arrives := s.arrival < at
	if arrives {
		at = s.arrival
	}
	if s.loop != nil && s.loop.next() <= at {
		s.loop.step(s)
		return
	}
	if s.o.Until > 0 && at >= int64(s.o.Until) {
		s.goTo(int64(s.o.Until))
		s.over = true
		return
	}
	s.goTo(at)
	switch {
	case arrives:
		s.arrive()
		s.arrival = s.arrivals.next()
	case hedged:
		h := s.hedges[0]
		s.hedges = s.hedges[:copy(s.hedges, s.hedges[1:])]
		if h.of.number == h.number {
			s.core.Extend(&h.of.request)
		}
	default:
		s.end(connection)
	}
	s.settle()
}

// goTo makes it that time.
func (s *simulation) goTo(at int64) {
	s.now = at
	if s.o.Clock != nil {
		s.o.Clock.at = epoch.Add(time.Duration(at))
	}
}

// arrive puts another request in line.
func (s *simulation) arrive() {
	e := s.entry()
	e.number, e.arrived, e.luck = s.number, s.now, delays.Luck(s.luck.Uint64())
	e.bytes = s.o.Bytes[s.size]
	if s.size++; s.size == len(s.o.Bytes) {
		s.size = 0
	}
	e.counts = s.o.Until > 0 || s.number >= s.o.Warm && s.now >= int64(s.o.WarmFor) && s.out.Requests < s.o.Requests
	if e.counts {
		if s.begun == never {
			s.begin()
		}
		s.out.Requests++
	}
	s.number++
	waiting := s.core.State().Backlog
	if e.counts {
		s.backlog += waiting
		s.met++
	}
	if b := s.bin(); b != nil {
		b.Arrived++
		b.Backlog += waiting
	}
	e.request = queue.Request{Op: s.o.Op, Plan: e.plan, Data: e}
	s.core.Arrive(&e.request)
}

// begin begins the span of what counts.
func (s *simulation) begin() { s.begun, s.since = s.now, s.now }

// entry takes one that is not used, or makes one.
func (s *simulation) entry() *entry {
	if n := len(s.spare); n > 0 {
		e := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return e
	}
	e := &entry{}
	e.plan = e.take
	return e
}

// take takes the request apart.
func (e *entry) take(c queue.Code) queue.Plan {
	if len(e.tasks) < c.N {
		e.tasks, e.works = make([]queue.Task, c.N), make([]work, c.N)
	}
	bytes := (e.bytes + int64(c.K) - 1) / int64(c.K)
	for i := range c.N {
		e.works[i] = work{index: i, bytes: bytes, told: never}
		e.tasks[i] = queue.Task{Bytes: bytes, Data: &e.works[i]}
	}
	return queue.Plan{Tasks: e.tasks[:c.N], Need: c.K}
}

// start begins a task on an idle connection.
func (s *simulation) start(t *queue.Task) {
	e, w := t.Request().Data.(*entry), t.Data.(*work)
	s.idled()
	last := len(s.free) - 1
	w.connection, w.started = s.free[last], s.now
	s.free = s.free[:last]
	took := s.o.Law.Task(e.luck, w.index, float64(w.bytes)/1e6)
	s.ends[w.connection], s.who[w.connection] = s.now+max(1, int64(math.Round(took*1e6))), t
	if e.counts {
		s.out.Tasks++
	}
}

// idled adds up the connections in use until now, before their number changes.
func (s *simulation) idled() {
	if s.begun != never {
		s.busy += float64(float64(len(s.ends)-len(s.free)) * float64(s.now-s.since))
		s.since = s.now
	}
}

// end ends the task of a connection, as its time is over.
func (s *simulation) end(connection int) {
	t := s.who[connection]
	w := t.Data.(*work)
	s.idled()
	s.ends[connection], s.who[connection] = never, nil
	s.free = append(s.free, connection)
	if w.told != never {
		s.note(t, w, "cancelled", w.told)
		s.core.Done(t, queue.ErrCancelled)
		return
	}
	s.note(t, w, "done", s.now)
	s.core.Done(t, nil)
}

// note shows the loop a task that ran until some time.
func (s *simulation) note(t *queue.Task, w *work, outcome string, until int64) {
	if s.loop != nil {
		s.loop.rows.add(t.N, t.K, w.bytes, outcome, (until-w.started)/int64(time.Microsecond))
	}
}

// settle does what the core wants done. Events come first: connections of cancelled
// tasks that are idle at once are so before the next request is admitted.
func (s *simulation) settle() {
	for {
		for e, ok := s.core.Event(); ok; e, ok = s.core.Event() {
			s.take(e)
		}
		t, ok := s.core.Next()
		if ok {
			s.start(t)
			continue
		}
		if e, ok := s.core.Event(); ok {
			s.take(e)
			continue
		}
		return
	}
}

// take does what an event of the core is about.
func (s *simulation) take(ev queue.Event) {
	e := ev.Request.Data.(*entry)
	switch ev.Kind {
	case queue.Admitted:
		s.admitted(e)
	case queue.Hedging:
		s.hedge(e)
	case queue.Finished:
		s.answered(e)
	case queue.Cancelled:
		w := ev.Task.Data.(*work)
		w.told = s.now
		s.ends[w.connection] = min(s.ends[w.connection], s.now+int64(s.o.Cancel))
		if s.o.Cancel == 0 {
			s.end(w.connection)
		}
	case queue.Ended:
		e.number = -1
		s.spare = append(s.spare, e)
	}
}

// admitted notes a request's code.
func (s *simulation) admitted(e *entry) {
	c := e.request.Code()
	if e.counts {
		s.out.K, s.out.N = count(s.out.K, c.K), count(s.out.N, c.N)
	}
	if b := s.bin(); b != nil {
		b.Admitted++
		b.K += c.K
		b.N += c.N
	}
	if s.o.Waiting > 0 {
		s.arrive()
	}
}

// hedge notes when a request's other tasks are to be asked for.
func (s *simulation) hedge(e *entry) {
	h := hedge{at: s.now + int64(e.request.Code().Hedge), of: e, number: e.number}
	i := len(s.hedges)
	for i > 0 && s.hedges[i-1].at > h.at {
		i--
	}
	s.hedges = append(s.hedges, h)
	copy(s.hedges[i+1:], s.hedges[i:])
	s.hedges[i] = h
}

func count(of []int64, i int) []int64 {
	for len(of) <= i {
		of = append(of, 0)
	}
	of[i]++
	return of
}

// answered notes the delay of a request.
func (s *simulation) answered(e *entry) {
	delay := float64(s.now-e.arrived) / 1e6
	if b := s.bin(); b != nil {
		b.Answered++
		b.Delay += delay
	}
	if s.begun != never {
		s.out.Answered++
	}
	if !e.counts {
		return
	}
	s.delays = append(s.delays, delay)
	if s.left--; s.left == 0 {
		s.idled()
		s.over = true
	}
}

// bin is that of now, nil if there are none.
func (s *simulation) bin() *Bin {
	if len(s.out.Course) == 0 {
		return nil
	}
	return &s.out.Course[s.now/int64(s.o.Bin)]
}

// sum makes figures of what was seen.
func (s *simulation) sum() {
	s.out.Figures = figuresOf(s.delays)
	s.out.Span = time.Duration(s.now - min(s.begun, s.now))
	if s.out.Span > 0 {
		s.out.Busy = s.busy / float64(len(s.ends)) / float64(s.out.Span)
	}
	if s.met > 0 {
		s.out.Backlog = float64(s.backlog) / float64(s.met)
	}
	if s.loop != nil {
		s.out.Tables = s.loop.tables
	}
}

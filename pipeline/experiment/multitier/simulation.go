package multitier

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"penstock/consumers/decider/split"
	"penstock/infra/shares"
	"penstock/schemas/control"
)

// Options say what is simulated.
type Options struct {
	App      *App
	Arrivals Arrivals
	// Heavy is the share of heavy transactions, Users how many users enter at a site.
	Heavy float64
	Users int
	// Policy is what decides.
	Policy  *split.Policy
	Seed    uint64
	Changes []Change
	// Length is for how long requests enter. Feedback is from the end of a window
	// to its table in force, less than a window. Deadline is after what time a
	// request has failed, Queue how many wait at a replica at most.
	Length, Feedback, Deadline time.Duration
	Queue                      int
	// Focus is the component whose share is followed, at site 0.
	Focus int
	// From and To bound what is counted of calls in Measured.
	From, To time.Duration
}

// outside is the caller of calls from outside.
const outside = -1

// call is one call on its way. Calls are used again when they are over.
type call struct {
	parent             int32 // another call, outside: none
	component, caller  int32
	site, from         int32
	step, again        int32 // which of the component's calls, how often already
	user               int32
	status             int32
	heavy, probe       bool
	began, due         int64 // of the request
	answer             int64 // bytes
	reached, served    int64
	way, wait, service int64 // µs: there and back, in the queue, beyond it
}

// simulation is a run.
type simulation struct {
	o        *Options
	app      *App
	sites    int
	now      int64
	agenda   agenda
	random   *rand.Rand // services, ways, calls that are made or not
	calls    []call
	free     []int32
	replicas []replica
	service  []normal
	rtt      []float64
	heavy    []float64 // by site, what the share of heavy ones is multiplied by
	sources  []*source
	links    []shares.Link // by caller + 1, from site, component
	users    []string
	router   *shares.Router
	loop     *loop
	out      *Measured
}

// Run simulates. The error wraps ErrApp, is the context's, or one of a table.
func Run(ctx context.Context, o *Options) (*Measured, error) {
	if err := o.App.Check(); err != nil {
		return nil, err
	}
	if o.Feedback >= o.Policy.Width() || o.Queue < 1 || o.Users < 1 {
		return nil, fmt.Errorf("%w: feedback %v in windows of %v, queues of %d, %d users", ErrApp, o.Feedback, o.Policy.Width(), o.Queue, o.Users)
	}
	s := newSimulation(o)
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	s.out.finish(s)
	return s.out, nil
}

func newSimulation(o *Options) *simulation {
	a := o.App
	m := len(a.Sites)
	s := &simulation{
		o: o, app: a, sites: m, random: rand.New(rand.NewPCG(o.Seed, 1)),
		replicas: make([]replica, len(a.Components)*m), rtt: make([]float64, m*m), heavy: make([]float64, m),
		links: make([]shares.Link, (len(a.Components)+1)*m*len(a.Components)),
	}
	for i := range a.Components {
		c := &a.Components[i]
		s.service = append(s.service, logNormal(c.CV))
		for n := range m {
			s.replicas[i*m+n] = replica{servers: c.Servers[n], slow: 1}
		}
	}
	names := make([]string, m)
	for n := range m {
		names[n], s.heavy[n] = a.Sites[n].Name, 1
		for k := range m {
			s.rtt[n*m+k] = float64(a.RTT[n][k].Microseconds())
		}
		s.sources = append(s.sources, o.Arrivals.source(n, o.Seed, o.Length.Microseconds(), o.Changes))
	}
	for caller := outside; caller < len(a.Components); caller++ {
		from := control.Outside
		if caller != outside {
			from = a.Components[caller].Name
		}
		for n := range m {
			for to := range a.Components {
				s.links[s.link(int32(caller), int32(n), int32(to))] = shares.Link{From: from, FromSite: names[n], To: a.Components[to].Name}
			}
		}
	}
	for i := range o.Users * m {
		s.users = append(s.users, "user-"+strconv.Itoa(i))
	}
	s.router = shares.New(shares.Options{Sites: names})
	s.loop = newLoop(s)
	s.out = newMeasured(s)
	return s
}

func (s *simulation) link(caller, from, to int32) int {
	return (int(caller+1)*s.sites+int(from))*len(s.app.Components) + int(to)
}

// run does what is on the agenda until no request is left.
func (s *simulation) run(ctx context.Context) error {
	for n := range s.sites {
		s.enterNext(n)
	}
	for i := range s.o.Changes {
		c := &s.o.Changes[i]
		s.agenda.put(c.From.Microseconds(), changing, int32(2*i))
		s.agenda.put(c.To.Microseconds(), changing, int32(2*i+1))
	}
	width, end := s.o.Policy.Width().Microseconds(), s.o.Length.Microseconds()
	cut := width
	for len(s.agenda.list) > 0 {
		e := s.agenda.take()
		for e.at >= cut && cut <= end {
			// What ends with the window's last µs is in it.
			s.loop.cut(cut)
			s.agenda.put(cut+s.o.Feedback.Microseconds(), deciding, 0)
			if cut += width; ctx.Err() != nil {
				return ctx.Err()
			}
		}
		// A window's table that was put in just now may be due before.
		if len(s.agenda.list) > 0 && s.agenda.list[0].before(&e) {
			s.agenda.put(e.at, e.what, e.who)
			continue
		}
		s.now = e.at
		if err := s.do(e); err != nil {
			return err
		}
	}
	return nil
}

func (s *simulation) do(e item) error {
	switch e.what {
	case changing:
		s.turn(&s.o.Changes[e.who/2], e.who%2 == 0)
	case deciding:
		return s.loop.decide()
	case entering:
		s.enter(int(e.who))
	case arriving:
		s.arrive(e.who)
	case serving:
		s.leave(e.who)
	case waiting:
		s.calls[e.who].service = s.now - s.calls[e.who].served
		s.step(e.who)
	case ending:
		s.end(e.who)
	}
	return nil
}

// enterNext puts the next request of a site on the agenda.
func (s *simulation) enterNext(site int) {
	if at := s.sources[site].next(s.now); at >= 0 && at < s.o.Length.Microseconds() {
		s.agenda.put(at, entering, int32(site))
	}
}

// enter lets a request in.
func (s *simulation) enter(site int) {
	// Drawn from the site's own generator, so that all policies meet the same.
	r := s.sources[site].random
	heavy := r.Float64() < s.o.Heavy*s.heavy[site]
	user := int32(site*s.o.Users + r.IntN(s.o.Users))
	i := s.newCall()
	s.calls[i] = call{
		parent: outside, caller: outside, component: int32(s.app.Entry.To), from: int32(site), heavy: heavy, user: user, answer: s.app.Entry.Answer,
		began: s.now, due: s.now + s.o.Deadline.Microseconds(),
	}
	s.send(i, s.app.Entry.Bytes)
	s.enterNext(site)
}

func (s *simulation) newCall() int32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i
	}
	s.calls = append(s.calls, call{})
	return int32(len(s.calls) - 1)
}

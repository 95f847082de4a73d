package upstream

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"penstock/infra/clock"
)

// Pool sends requests to the servers of one site or peer. It is safe for
// concurrent use.
type Pool struct {
	o         Options
	dialer    net.Dialer
	transport *http.Transport // what the fast path is not made for
	upgrades  *http.Transport // what can only be asked for over HTTP/1.1
	probes    *http.Transport
	system    bool // Options.Clock is the system's
	budget    *Budget

	// view is what requests look at; it is never changed, only replaced.
	view atomic.Pointer[view]

	refused counts // attempts that reached no server, by reason
	retries atomic.Uint64
	spent   atomic.Uint64 // retries that the budget refused

	mu      sync.Mutex
	servers []*server // in config order
	gone    []*server // off the list, with requests that still run
	board   board
	states  []string // of servers at the last renewal; replaced, never changed
}

// view is the servers that requests may go to.
type view struct {
	members []*Member
	byName  map[string]*server // the same, for a Dispatcher
	// until is when an ejection ends and the view has to be made anew, as
	// nanoseconds since 1970; 0 is never.
	until int64
}

type counts struct{ n [len(reasons)]atomic.Uint64 }

func (c *counts) add(reason string) {
	for i, r := range reasons {
		if r == reason {
			c.n[i].Add(1)
		}
	}
}

// New makes a pool. It is ready for use; Run adds what goes on beside requests.
func New(o Options) (*Pool, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Pool{
		o: o, system: o.Clock == clock.System(),
		dialer: net.Dialer{KeepAlive: 30 * time.Second},
		budget: NewBudget(o.Retry.Budget, o.Retry.Least),
		board:  board{o: o.Health},
	}
	p.transport, p.upgrades, p.probes = p.newTransport(o.H2), p.newTransport(false), p.newTransport(o.H2)
	p.probes.DisableKeepAlives = true
	if err := p.Set(o.Servers); err != nil {
		return nil, err
	}
	if o.Registerer != nil {
		if err := o.Registerer.Register(newCollector(p)); err != nil {
			return nil, fmt.Errorf("upstream: metrics: %w", err)
		}
	}
	return p, nil
}

// Set replaces the list of servers. A server whose name and URL are on both lists
// keeps its connections, health and counts; one that is gone gets no new requests
// and finishes its running ones. On an error, ErrConfig, nothing has changed.
func (p *Pool) Set(servers []Server) error {
	next := make([]*server, 0, len(servers))
	names := map[string]bool{}
	for _, given := range servers {
		s, err := p.newServer(given)
		if err != nil {
			return err
		}
		if names[s.name] {
			return fmt.Errorf("%w: two servers are called %q", ErrConfig, s.name)
		}
		names[s.name] = true
		next = append(next, s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := map[string]*server{}
	for _, s := range append(p.gone, p.servers...) {
		s.removed = true
		old[s.name+" "+s.url.String()] = s
	}
	for i, s := range next {
		key := s.name + " " + s.url.String()
		if have := old[key]; have != nil {
			have.weight.Store(s.weight.Load())
			was := have.drain.Swap(s.drain.Load())
			have.proving = s.proving && (was || have.proving)
			have.removed = false
			next[i] = have
			delete(old, key)
		}
		next[i].conns.mayKeep(!next[i].drain.Load())
	}
	for _, s := range append(p.gone, p.servers...) {
		if s.removed {
			s.drain.Store(true)
			s.conns.mayKeep(false)
		}
	}
	p.gone = p.stillRunning(append(p.gone, p.servers...))
	p.servers = next
	p.transport.CloseIdleConnections() // of servers that are gone; the others open new ones
	p.upgrades.CloseIdleConnections()
	for _, s := range next {
		if s.drain.Load() {
			s.standing.out = false
		}
	}
	p.seat()
	p.renew()
	return nil
}

// seat has the health of those counted that may get requests. The caller holds the
// lock.
func (p *Pool) seat() {
	p.board.standing = p.board.standing[:0]
	for _, s := range p.servers {
		if s.counts() {
			p.board.standing = append(p.board.standing, &s.standing)
		}
	}
	p.board.settle()
}

func (p *Pool) stillRunning(list []*server) (running []*server) {
	for _, s := range list {
		if s.removed && s.outstanding.Load() > 0 {
			running = append(running, s)
		}
	}
	return running
}

func (p *Pool) newServer(given Server) (*server, error) {
	given, u, address, err := parseServer(given)
	if err != nil {
		return nil, err
	}
	s := &server{
		pool: p, name: given.Name, url: u, address: address,
		conns: conns{maxOpen: p.o.MaxConns, maxIdle: p.o.MaxIdle},
	}
	s.weight.Store(int64(given.Weight))
	s.drain.Store(given.Drain)
	s.proving = given.Prove && p.o.Dispatcher != nil
	if u.Scheme == "https" {
		s.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		if p.o.TLS != nil {
			s.tls = p.o.TLS.Clone()
		}
		if s.tls.ServerName == "" {
			s.tls.ServerName = u.Hostname()
		}
		s.tls.NextProtos = []string{"http/1.1"}
	}
	return s, nil
}

// renew makes the view anew. The caller holds the lock.
func (p *Pool) renew() {
	v := &view{}
	if next := p.board.tick(p.o.Clock.Now()); !next.IsZero() {
		v.until = next.UnixNano()
	}
	p.states = make([]string, len(p.servers))
	for i, s := range p.servers {
		p.states[i] = s.state()
		s.blemished.Store(!s.standing.spotless())
		if s.drain.Load() || s.standing.out || s.proving {
			continue
		}
		v.members = append(v.members, &Member{s: s, suspect: s.standing.bad()})
	}
	for _, s := range p.servers {
		if s.proving && !s.drain.Load() && !p.someProven() {
			v.members = append(v.members, &Member{s: s, suspect: true})
		}
	}
	if p.o.Dispatcher != nil {
		v.byName = v.names()
	}
	before := p.view.Swap(v)
	if p.o.Dispatcher != nil {
		p.tell(before, v) // who is let in by it finds the server
	}
}

// someProven reports whether a server may get requests that has no need to be proven.
func (p *Pool) someProven() bool { return len(p.board.standing) > 0 }

// current returns the servers that may be used now.
func (p *Pool) current(now time.Time) *view {
	v := p.view.Load()
	if v.until == 0 || now.UnixNano() < v.until {
		return v
	}
	p.note(func() {})
	return p.view.Load()
}

// note changes what is known of health, makes the view anew, and logs what has
// changed by it.
func (p *Pool) note(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	states, panicked := p.states, p.board.panicked
	change()
	p.renew()
	for i, s := range p.servers {
		if state := p.states[i]; state != states[i] {
			p.o.Logger.Warn().Str("pool", p.o.Name).Str("server", s.name).Str("from", states[i]).Str("to", state).
				Str("reason", s.standing.reason).Msg("health of a server")
		}
	}
	if p.board.panicked != panicked {
		switch {
		case p.board.panicked && !p.answered():
			// They may be about to start, or to be turned on: no alarm.
			p.o.Logger.Warn().Str("pool", p.o.Name).Bool("panic", true).Msg("no server has answered yet: all are used")
		case p.board.panicked:
			p.o.Logger.Error().Str("pool", p.o.Name).Bool("panic", true).Msg("all servers are bad: all are used")
		default:
			p.o.Logger.Info().Str("pool", p.o.Name).Bool("panic", false).Msg("the panic is over: not all servers are bad any more")
		}
	}
}

// answered reports whether a server of the list has ever answered, a probe or a request. The
// caller holds the lock.
func (p *Pool) answered() bool {
	return slices.ContainsFunc(p.servers, func(s *server) bool {
		unanswered := uint64(max(s.outstanding.Load(), 0))
		for i := range s.failures {
			unanswered += s.failures[i].Load()
		}
		return s.probesOK > 0 || s.requests.Load() > unanswered
	})
}

// Status returns all servers in config order, then those that are off the list
// and still have running requests.
func (p *Pool) Status() []ServerStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = p.stillRunning(p.gone)
	var list []ServerStatus
	for _, s := range p.servers {
		list = append(list, s.status())
	}
	for _, s := range p.gone {
		list = append(list, s.status())
	}
	return list
}

// Panic reports whether all servers are bad, and how often that has begun.
func (p *Pool) Panic() (now bool, times uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.board.panicked, p.board.panics
}

// Usable reports whether a server is there that is well: not if the list is empty,
// all drain, or all are bad, when they are used all the same (PROBLEMS P31).
func (p *Pool) Usable() bool {
	members := p.current(p.o.Clock.Now()).members
	return slices.ContainsFunc(members, func(m *Member) bool { return !m.suspect })
}

// Close closes idle connections, and from then on each one that is given back.
// Requests are still served.
func (p *Pool) Close() {
	p.mu.Lock()
	servers := append(append([]*server{}, p.servers...), p.gone...)
	p.mu.Unlock()
	for _, s := range servers {
		s.conns.mayKeep(false)
	}
	p.transport.CloseIdleConnections()
	p.upgrades.CloseIdleConnections()
	p.probes.CloseIdleConnections()
}

// Run probes the servers and closes connections that have been idle for too
// long, until the context ends; then it closes all idle ones and returns nil.
func (p *Pool) Run(ctx context.Context) error {
	defer p.Close()
	var all sync.WaitGroup
	defer all.Wait()
	if p.o.Health.Path != "" && p.o.Health.Interval > 0 {
		all.Go(func() { p.probeAll(ctx) })
	}
	if p.o.Timeouts.Idle > 0 {
		all.Go(func() { p.reap(ctx) })
	}
	if p.o.Dispatcher != nil {
		all.Go(func() { p.attend(ctx) })
	}
	<-ctx.Done()
	return nil
}

// reap closes old idle connections four times in their life.
func (p *Pool) reap(ctx context.Context) {
	for p.o.Clock.Sleep(ctx, p.o.Timeouts.Idle/4) == nil {
		p.mu.Lock()
		servers := append([]*server{}, p.servers...)
		p.mu.Unlock()
		for _, s := range servers {
			s.conns.reap(p.o.Clock.Now().Add(-p.o.Timeouts.Idle))
		}
	}
}

// socketTime is the time that deadlines of sockets go by.
func (p *Pool) socketTime(now time.Time) time.Time {
	if p.system {
		return now
	}
	return clock.System().Now()
}

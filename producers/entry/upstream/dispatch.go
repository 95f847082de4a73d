package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"penstock/infra/clock"
)

// Dispatcher chooses the server of each attempt, and says when it may be sent: it
// keeps requests waiting while servers have as many as they may (DESIGN §4.3). It takes
// the place of the Picker. Its methods are called concurrently and must not call the
// pool.
type Dispatcher interface {
	// Servers is told which servers may be used, by name and in the order of the pool:
	// at the start and whenever that changes. It must not block and must not keep or
	// change the slice. Requests that wait for a server which is not among them any
	// more are to be placed anew; what runs there goes on.
	Servers(names []string)
	// Limit is the time in which a request of this kind is to be answered, 0 if none is
	// known. It must not block.
	Limit(req *http.Request) time.Duration
	// Admit waits until a server may take the request and returns which. It ends with
	// the request's context, whose cause it returns. If too many wait, its error is a
	// *BusyError, or wraps ErrBusy; if no server may be used, it wraps ErrNoServer.
	Admit(req *http.Request, a Arrival) (Admission, error)
}

// Dispatches reports whether a Dispatcher admits requests to the pool's servers.
func (p *Pool) Dispatches() bool { return p.o.Dispatcher != nil }

// Arrival is what a pool tells of a request that is to be admitted.
type Arrival struct {
	// Entered is when the request asked for a server for the first time; an attempt
	// that follows a failed one has that of the first.
	Entered time.Time
	// Tried are the servers that failed to answer it, in this order. They are to be
	// avoided where there is another. Not to be kept.
	Tried []string
}

// Admission is a place at a server.
type Admission interface {
	// Server is its name.
	Server() string
	// Done gives the place back, once, when the attempt has ended: with the end of the
	// answer's body, or before. The attempt must not be kept.
	Done(a *Attempt)
}

// BusyError is what a Dispatcher refuses a request with because too many wait
// already. It wraps ErrBusy. Nothing was sent.
type BusyError struct {
	// Wait is after how long there may be a place again, 0 if that isn't known.
	Wait time.Duration
}

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("%v: too many requests wait, expected to last %v", ErrBusy, e.Wait)
}

// Unwrap returns ErrBusy.
func (e *BusyError) Unwrap() error { return ErrBusy }

// classKey is that of a request's class in its context.
type classKey struct{}

// WithClass returns a context that tells the pool's Dispatcher the class of a request.
func WithClass(ctx context.Context, class string) context.Context {
	return context.WithValue(ctx, classKey{}, class)
}

// ClassOf is the class of a request by its context, "" if that has none.
func ClassOf(ctx context.Context) string {
	class, _ := ctx.Value(classKey{}).(string)
	return class
}

// admissions is how often a Dispatcher is asked for one attempt, in case the servers
// that it names may not be used by the time that it does.
const admissions = 4

// admit asks the Dispatcher for a place.
func (r *run) admit(x *exchange) (*server, error) {
	p, a := r.p, &x.attempt
	arrival := Arrival{Entered: a.Entered}
	for _, s := range r.tried {
		arrival.Tried = append(arrival.Tried, s.name)
	}
	p.current(a.Queued) // so that the Dispatcher knows of servers whose ejection is over
	for range admissions {
		place, err := p.o.Dispatcher.Admit(r.req, arrival)
		a.Placed = p.o.Clock.Now()
		if err != nil {
			return nil, dispatchError(r.ctx, err)
		}
		name := place.Server()
		if s := p.view.Load().byName[name]; s != nil {
			x.place = place
			return s, nil
		}
		// It went out of use while its place was given.
		place.Done(&Attempt{Server: name, Queued: a.Placed, Done: a.Placed, Err: ErrNoServer, Reason: ReasonNoServer})
		arrival.Tried = append(arrival.Tried, name)
	}
	return nil, ErrNoServer
}

// dispatchError makes one of ours of a Dispatcher's error.
func dispatchError(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, ErrBusy) || errors.Is(err, ErrNoServer) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNoServer, err)
}

// names are the members by name.
func (v *view) names() map[string]*server {
	out := make(map[string]*server, len(v.members))
	for _, m := range v.members {
		out[m.s.name] = m.s
	}
	return out
}

// tell tells the Dispatcher which servers may be used, if that has changed. The caller
// holds the lock, so that it hears the last word last.
func (p *Pool) tell(before, now *view) {
	same := before != nil && len(before.members) == len(now.members)
	for i := 0; same && i < len(now.members); i++ {
		same = before.members[i].s == now.members[i].s
	}
	if same {
		return
	}
	names := make([]string, len(now.members))
	for i, m := range now.members {
		names[i] = m.s.name
	}
	p.o.Dispatcher.Servers(names)
}

// attendEvery is how often it is looked whether an ejection is over, as where requests
// wait for servers none may arrive that would look, and whether servers have started.
const attendEvery = 250 * time.Millisecond

// attend does what has to be done for a Dispatcher beside requests.
func (p *Pool) attend(ctx context.Context) {
	for p.o.Clock.Sleep(ctx, attendEvery) == nil {
		p.current(p.o.Clock.Now())
		p.prove(ctx)
	}
}

// prove asks servers that have to be proven whether they are well.
func (p *Pool) prove(ctx context.Context) {
	p.mu.Lock()
	var servers []*server
	for _, s := range p.servers {
		if s.proving && !s.drain.Load() {
			servers = append(servers, s)
		}
	}
	p.mu.Unlock()
	if len(servers) == 0 {
		return
	}
	results := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { results[i] = p.proof(ctx, s) })
	}
	all.Wait()
	p.note(func() {
		for i, s := range servers {
			if results[i] == nil && !s.removed && s.proving {
				s.proving = false
				s.standing.renewed()
			}
		}
		p.seat()
	})
}

// Ready asks a server of the list, also one that drains, whether it is well: with GET of
// Health.Path, else by a connection. It waits for at most Health.Timeout. ErrNoServer for a
// name that is not on the list.
func (p *Pool) Ready(ctx context.Context, name string) error {
	p.mu.Lock()
	i := slices.IndexFunc(p.servers, func(s *server) bool { return s.name == name })
	var s *server
	if i >= 0 {
		s = p.servers[i]
	}
	p.mu.Unlock()
	if s == nil {
		return fmt.Errorf("%w: none is called %.80q", ErrNoServer, name)
	}
	return p.proof(ctx, s)
}

// proof asks one.
func (p *Pool) proof(ctx context.Context, s *server) error {
	if p.o.Health.Path != "" {
		return p.probe(ctx, s)
	}
	if d := p.o.Health.Timeout; d > 0 {
		// The system's clock: what is waited for is a socket.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, clock.System().Now().Add(d))
		defer cancel()
	}
	c, err := p.dialer.DialContext(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("proof: %w", err)
	}
	return c.Close()
}

package dispatcher

import (
	"context"
	"slices"
	"time"

	"penstock/consumers/executor/dispatcher/pool"
)

// Facts are what is known of a request before it is served.
type Facts struct {
	// Class by name; one that is none of Options.Classes counts as Other.
	Class string
	// Key tells what is asked for, such as a hash of the path: requests of one key are
	// taken to have answers of like size.
	Key uint64
	// Body of the request in bytes; less than 0: unknown.
	Body int64
	// Dynamic says that a program answers it, if its class doesn't say so already.
	Dynamic bool
	// Entered is when the request entered the system, which its limit counts from. Zero:
	// now.
	Entered time.Time
	// Tried are servers that have failed to answer it. They get it only if no other may.
	Tried []string
}

// Ticket is a request's place at a server.
type Ticket struct {
	site    *Site
	class   int
	key     uint64
	arrived int64 // as instant, as are the next
	entered int64

	// Under the site's mu.
	request  pool.Request
	zone     *zone
	homeless bool          // its zone has no server for it
	ready    chan struct{} // told when server or err is set; nil: it never waited
	server   string
	err      error
	started  int64
	estimate float64 // of the service time, s
	ended    bool
}

// Result is how a request has ended at its server.
type Result struct {
	// OK is set if the server has answered. It doesn't count if Gone is.
	OK bool
	// Gone says that the request was broken off on this side, by its client or before
	// anything was sent: nothing is learned of it.
	Gone bool
	// Service is how long the server took: from when it had the request to the end of
	// its answer, without what the client took. 0: the time since its place was given.
	Service time.Duration
	// Answer is the size of the answer's body in bytes; less than 0: unknown.
	Answer int64
}

// Limit is the limit of the response time of a class, and what each second beyond it
// costs. 0 and 0: it has none.
func (s *Site) Limit(class string) (limit time.Duration, penalty float64) {
	c := &s.o.Classes[s.classOf(class)]
	return c.Limit, c.Penalty
}

func (s *Site) classOf(name string) int {
	if i, ok := s.classes[name]; ok {
		return i
	}
	return s.classes[Other]
}

// Admit waits until a server may take the request. The ticket's Done has to be called
// once the request has ended there. Errors are a *FullError, which wraps ErrFull, if as
// many wait as may; ErrNoServer; and the cause of the context's end, upon which the place
// in the queue is free at once. With an error there is no ticket.
func (s *Site) Admit(ctx context.Context, f Facts) (*Ticket, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t := s.ticket(f)
	s.mu.Lock()
	now := s.now()
	s.arrive(now, t, f.Entered)
	if err := s.place(now, t, nil); err != nil {
		s.counts.refuse(err)
		s.mu.Unlock()
		return nil, err
	}
	if t.server != "" {
		s.mu.Unlock()
		return t, nil
	}
	t.request.Avoid = slices.Clone(t.request.Avoid) // the caller's may change
	t.ready = make(chan struct{}, 1)
	s.waiting[t.request.ID] = t
	s.mu.Unlock()
	select {
	case <-t.ready:
	case <-ctx.Done():
		return nil, s.leave(ctx, t)
	}
	if t.err != nil {
		return nil, t.err
	}
	return t, nil
}

// ticket is that of a request that has not arrived yet.
func (s *Site) ticket(f Facts) *Ticket {
	class := s.classOf(f.Class)
	c := &s.o.Classes[class]
	return &Ticket{
		site: s, class: class, key: f.Key,
		request: pool.Request{
			Class: class, Size: float64(s.sizes.Of(c.Name, f.Key, f.Body)), Dynamic: f.Dynamic || c.Dynamic, Impact: c.Impact, Avoid: f.Tried,
		},
	}
}

// arrive notes when a request comes. The caller holds mu.
func (s *Site) arrive(now int64, t *Ticket, entered time.Time) {
	s.last++
	s.counts.Arrived++
	s.rate.count(now)
	t.request.ID, t.arrived, t.entered = s.last, now, now
	if !entered.IsZero() {
		t.entered = min(s.instant(entered), now)
	}
	t.request.Entered = t.entered
}

// start notes that the request has its place. The caller holds mu.
func (t *Ticket) start(now int64, server string, estimate float64) {
	t.server, t.started, t.estimate = server, now, estimate
	t.site.counts.Started++
	t.site.counts.Waited += time.Duration(now - t.arrived)
}

// leave takes a request back that waits, or has got its place this moment.
func (s *Site) leave(ctx context.Context, t *Ticket) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.err != nil {
		return t.err // it was refused this moment
	}
	delete(s.waiting, t.request.ID)
	if t.ended = true; t.server == "" {
		s.counts.Left++
	} else {
		s.counts.Gone++
	}
	now := s.now()
	t.zone.requests--
	s.deliver(now, nil, t.zone.pool.Cancel(now, t.request.ID, s.starts[:0]))
	return context.Cause(ctx)
}

// Server is the name of the server that may have the request.
func (t *Ticket) Server() string { return t.server }

// Waited is how long the request waited for its place.
func (t *Ticket) Waited() time.Duration { return time.Duration(t.started - t.arrived) }

// Estimate is the service time that was estimated for this server.
func (t *Ticket) Estimate() time.Duration { return seconds(t.estimate) }

// Done gives the place back and has the estimates learn. Calls after the first do
// nothing.
func (t *Ticket) Done(r Result) {
	s := t.site
	if s.end(t, r) && r.OK && !r.Gone && r.Answer >= 0 {
		s.sizes.Learn(s.o.Classes[t.class].Name, t.key, r.Answer)
	}
}

// end is Done under the lock; false if the ticket has ended before.
func (s *Site) end(t *Ticket, r Result) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.ended {
		return false
	}
	t.ended = true
	now := s.now()
	t.zone.requests--
	starts := s.starts[:0]
	if r.Gone {
		s.counts.Gone++
		starts = t.zone.pool.Cancel(now, t.request.ID, starts)
	} else {
		s.counts.end(&s.o.Classes[t.class], t, r, now)
		s.compare(t, r)
		starts = t.zone.pool.Done(now, t.request.ID, pool.Outcome{OK: r.OK, Service: max(r.Service, 0).Seconds()}, starts)
	}
	s.deliver(now, nil, starts)
	return true
}

package upstream

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// conns are the connections to one server. A connection is idle, in use by one
// request, or gone.
type conns struct {
	maxOpen, maxIdle int

	mu      sync.Mutex
	idle    []*conn // the one used last at the end
	open    int     // idle and in use, and being made
	waiting []chan *conn
	closed  bool // what is given back is closed
}

// pop takes the idle connection that was used last. If there is none and another
// may be opened, that is counted and both results are nil. Else the caller has to
// wait on the channel: it gets a connection, or nil if it may open one.
func (s *conns) pop() (*conn, chan *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.idle); n > 0 {
		c := s.idle[n-1]
		s.idle[n-1] = nil
		s.idle = s.idle[:n-1]
		return c, nil
	}
	if s.maxOpen > 0 && s.open >= s.maxOpen {
		ch := make(chan *conn, 1)
		s.waiting = append(s.waiting, ch)
		return nil, ch
	}
	s.open++
	return nil, nil
}

// push gives a connection back that can be used again.
func (s *conns) push(c *conn) {
	s.mu.Lock()
	switch {
	case s.closed || len(s.waiting) == 0 && len(s.idle) >= s.maxIdle:
		s.mu.Unlock()
		c.close()
		s.gone()
		return
	case len(s.waiting) > 0:
		s.serve(c)
	default:
		s.idle = append(s.idle, c)
	}
	s.mu.Unlock()
}

// gone notes that a connection was closed, or could not be made.
func (s *conns) gone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) > 0 {
		s.serve(nil) // who waits may open one in its place
		return
	}
	s.open--
}

// serve gives a connection, or the right to open one, to who waits longest.
func (s *conns) serve(c *conn) {
	ch := s.waiting[0]
	s.waiting[0] = nil
	s.waiting = s.waiting[1:]
	ch <- c
}

// await waits for its turn.
func (s *conns) await(ctx context.Context, p *Pool, ch chan *conn) (*conn, error) {
	var late <-chan time.Time
	if d := p.o.Timeouts.Queue; d > 0 {
		t := p.o.Clock.NewTimer(d)
		defer t.Stop()
		late = t.C()
	}
	var err error
	select {
	case c := <-ch:
		return c, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-late:
		err = fmt.Errorf("%w for %v", ErrBusy, p.o.Timeouts.Queue)
	}
	s.mu.Lock()
	i := slices.Index(s.waiting, ch)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	s.mu.Unlock()
	if i >= 0 {
		return nil, err
	}
	// Its turn came in the same moment.
	return <-ch, nil
}

// reap closes the connections that have been idle since before an instant.
func (s *conns) reap(before time.Time) {
	s.mu.Lock()
	n := 0
	for n < len(s.idle) && s.idle[n].idleSince.Before(before) {
		n++
	}
	old := slices.Clone(s.idle[:n])
	s.idle = slices.Delete(s.idle, 0, n)
	s.mu.Unlock()
	for _, c := range old {
		c.close()
		s.gone()
	}
}

// mayKeep says whether connections are kept from now on. If not, what is idle is
// closed, and so is what is given back.
func (s *conns) mayKeep(keep bool) {
	s.mu.Lock()
	s.closed = !keep
	var idle []*conn
	if !keep {
		idle, s.idle = s.idle, nil
	}
	s.mu.Unlock()
	for _, c := range idle {
		c.close()
		s.gone()
	}
}

// count returns how many connections are open, and how many of them are idle.
func (s *conns) count() (open, idle int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open, len(s.idle)
}

package entry

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"penstock/infra/clock"
	"penstock/producers/entry/strict"
)

// conns are the open connections.
type conns struct {
	mu     sync.Mutex
	open   map[*counted]struct{}
	closed bool
	begun  sync.WaitGroup // those of which the protocol is not known yet
}

// counted is a connection that counts until it is closed.
type counted struct {
	net.Conn
	of    *conns
	gauge interface{ Dec() }
	once  sync.Once
	guard atomic.Pointer[strict.Conn] // nil: HTTP/2, or not known yet
	multi atomic.Bool                 // HTTP/2
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.once.Do(func() {
		c.of.remove(c)
		c.gauge.Dec()
	})
	return c.Conn.Close()
}

// CloseWrite lets net/http end an answer before a connection on which the client
// still sends is closed.
func (c *counted) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (c *conns) add(n *counted, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || limit > 0 && len(c.open) >= limit {
		return false
	}
	if c.open == nil {
		c.open = map[*counted]struct{}{}
	}
	c.open[n] = struct{}{}
	return true
}

func (c *conns) remove(n *counted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, n)
}

func (c *conns) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// lingerFor is how long idle connections are kept when the entry point stops, and
// lingerLook how often it is looked whether any are left. Whoever sends a request
// meanwhile gets its answer, which says that the connection ends. A connection
// that is closed while a request is on the way to it leaves its client without an
// answer, and without knowing whether it was served.
const lingerFor, lingerLook = 500 * time.Millisecond, 10 * time.Millisecond

// linger waits for clients to end their connections.
func (c *conns) linger(d time.Duration) {
	for waited := time.Duration(0); waited < d && c.len() > 0; waited += lingerLook {
		_ = clock.System().Sleep(context.Background(), lingerLook)
	}
}

// close refuses new connections and closes those on which nothing runs. Those of
// HTTP/2 are told by their server.
func (c *conns) close() {
	c.mu.Lock()
	c.closed = true
	var idle []*counted
	for n := range c.open {
		if g := n.guard.Load(); g != nil && g.Waiting() || g == nil && !n.multi.Load() {
			idle = append(idle, n)
		}
	}
	c.mu.Unlock()
	for _, n := range idle {
		_ = n.Close()
	}
	c.begun.Wait()
}

// cut closes all connections.
func (c *conns) cut() {
	c.mu.Lock()
	open := slices.Collect(maps.Keys(c.open))
	c.mu.Unlock()
	for _, n := range open {
		_ = n.Close()
	}
}

// running counts goroutines that serve connections.
type running struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when the last has ended; nil if nobody waits
}

func (r *running) enter() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
}

func (r *running) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n--; r.n == 0 && r.none != nil {
		close(r.none)
		r.none = nil
	}
}

// wait waits until none is left, or for the context's end. None may enter any more.
func (r *running) wait(ctx context.Context) error {
	r.mu.Lock()
	if r.n == 0 {
		r.mu.Unlock()
		return nil
	}
	if r.none == nil {
		r.none = make(chan struct{})
	}
	none := r.none
	r.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lookEvery is half of how long a request runs at most before its client is
// watched, see strict.Conn.Look.
const lookEvery = 25 * time.Millisecond

// look watches the clients of requests that take their time, until ctx ends.
func (c *conns) look(ctx context.Context) {
	ticks := clock.System().NewTicker(lookEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C():
		}
		c.mu.Lock()
		for n := range c.open {
			if g := n.guard.Load(); g != nil {
				g.Look()
			}
		}
		c.mu.Unlock()
	}
}

// tunnels are the connections that speak another protocol by now: net/http no
// longer knows them.
type tunnels struct {
	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
	none   chan struct{} // closed when the last has ended; nil if nobody waits
}

func (t *tunnels) add(c net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	if t.open == nil {
		t.open = map[net.Conn]struct{}{}
	}
	t.open[c] = struct{}{}
	return true
}

func (t *tunnels) remove(c net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, c)
	if len(t.open) == 0 && t.none != nil {
		close(t.none)
		t.none = nil
	}
}

// wait takes no more and waits until all have ended, or for the context's end.
func (t *tunnels) wait(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	if len(t.open) == 0 {
		t.mu.Unlock()
		return nil
	}
	if t.none == nil {
		t.none = make(chan struct{})
	}
	none := t.none
	t.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close cuts what is left and waits until nobody uses it.
func (t *tunnels) close() {
	t.mu.Lock()
	for c := range t.open {
		_ = c.Close()
	}
	t.mu.Unlock()
	_ = t.wait(context.Background()) // it ends, for the connections are closed
}

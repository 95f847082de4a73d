package strict

import (
	"errors"
	"os"
	"sync/atomic"
	"time"
)

// The states of a watch.
const (
	unwatched = iota
	asked     // net/http wants to be told when the client leaves
	old       // and did so before the last Look
	watched   // a goroutine reads
)

// watch finds out that a client has left while its request is answered.
//
// net/http has a goroutine read from the connection for that during each request,
// and stops it by a deadline in the past: system calls and switches that cost more
// than all else it does. A Conn tells it that there is nothing to be read, and
// reads itself, but only once a request has run for a while: Look begins that.
type watch struct {
	state atomic.Uint32
	gone  func()
	ended chan struct{} // told when the goroutine has ended
	// stopping is guarded by the Conn's mu: the read's deadline is over, and stays so.
	stopping bool
}

// Watch sets what is called when the client leaves while its request is answered,
// by a goroutine of the Conn's. It has to come before the first Read; after it
// Look has to be called at intervals. Without it net/http's own goroutine reads.
func (c *Conn) Watch(gone func()) { c.watch.gone, c.watch.ended = gone, make(chan struct{}, 1) }

// Look begins to watch for the client's end if the request that is being answered
// was so at the last Look. One goroutine at a time may call it, beside all else.
func (c *Conn) Look() {
	switch c.watch.state.Load() {
	case asked:
		c.watch.state.CompareAndSwap(asked, old)
	case old:
		if c.watch.state.CompareAndSwap(old, watched) {
			go c.await()
		}
	}
}

// later reports whether a read is the one by which net/http would be told of a
// client that leaves: no other asks for one byte between a request and its answer.
func (c *Conn) later(p []byte) bool {
	if c.watch.gone == nil || len(p) != 1 || c.waiting.Load() {
		return false
	}
	c.Watched()
	return true
}

// Watched has Look watch the request of which Next has returned the head, which
// must not be used any more.
func (c *Conn) Watched() {
	if c.from == c.to { // else the client has sent its next request, and isn't watched
		c.watch.state.Store(asked)
	}
}

// await waits until the client sends something, leaves, or the watch ends. What
// was sent is the next request's.
func (c *Conn) await() {
	c.mu.Lock()
	if !c.watch.stopping {
		c.own = time.Time{}
		_ = c.arm() // on a closed connection the read that follows says so
	}
	c.mu.Unlock()
	c.makeRoom()
	n, err := c.Conn.Read(c.buf[c.to:])
	c.to += n
	if n == 0 && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.watch.gone()
	}
	c.watch.ended <- struct{}{}
}

// unwatch ends a watch: from here on the caller is the only reader.
func (c *Conn) unwatch() {
	if c.watch.state.Load() == unwatched || c.watch.state.Swap(unwatched) != watched {
		return
	}
	c.mu.Lock()
	c.watch.stopping = true
	_ = c.Conn.SetReadDeadline(past) // fails for a closed one only, whose read has ended
	c.mu.Unlock()
	<-c.watch.ended
	c.mu.Lock()
	c.watch.stopping = false
	_ = c.arm()
	c.mu.Unlock()
}

var past = time.Unix(1, 0)

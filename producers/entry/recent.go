package entry

import (
	"sync"
	"time"
)

// recentMost bounds the owners that are remembered. Beyond it none is added: such a
// request is redirected, and perhaps sent back once.
const recentMost = 1 << 16

// recent are the owners of whom a service or a peer said a moment ago that their
// data has gone elsewhere. The other entry points hear of that from the bus only
// when the move is done: a client that was sent there would be sent back until
// then, to and fro. So what has just moved is forwarded.
type recent struct {
	mu    sync.Mutex
	until map[string]time.Time
	sweep time.Time // when what is over is looked for again
}

// add remembers an owner for d.
func (r *recent) add(owner string, now time.Time, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.until == nil {
		r.until = map[string]time.Time{}
	}
	if !now.Before(r.sweep) {
		for o, t := range r.until {
			if !now.Before(t) {
				delete(r.until, o)
			}
		}
		r.sweep = now.Add(d)
	}
	if len(r.until) < recentMost {
		r.until[owner] = now.Add(d)
	}
}

// has reports whether the owner is remembered.
func (r *recent) has(owner string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.until[owner]
	return ok && now.Before(t)
}

package manifest

import (
	"context"
	"fmt"
	"sync"
)

// registry makes the changes of one owner by this process wait for each other:
// they would only lose against one another. What keeps other processes off is
// the document's revision alone.
type registry struct {
	mu    sync.Mutex
	owner map[string]*turn
}

// turn is one owner's queue.
type turn struct {
	sem      chan struct{} // holds one token while it is somebody's turn
	uses     int           // who holds it, waits for it, or holds a lease
	revision string        // that this process last wrote, empty if not known
	released chan struct{} // closed when a lease of this process is given back
}

func (r *registry) use(owner string) *turn {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.owner[owner]
	if t == nil {
		t = &turn{sem: make(chan struct{}, 1), released: make(chan struct{})}
		r.owner[owner] = t
	}
	t.uses++
	return t
}

func (r *registry) drop(owner string, t *turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.uses--; t.uses == 0 {
		delete(r.owner, owner)
	}
}

// lock waits for one's turn.
func (r *registry) lock(ctx context.Context, owner string) (*turn, error) {
	t := r.use(owner)
	select {
	case t.sem <- struct{}{}:
		return t, nil
	default:
	}
	select {
	case t.sem <- struct{}{}:
		return t, nil
	case <-ctx.Done():
		r.drop(owner, t)
		return nil, fmt.Errorf("wait for owner %.80q: %w", owner, ctx.Err())
	}
}

func (r *registry) unlock(owner string, t *turn) {
	<-t.sem
	r.drop(owner, t)
}

// release wakes whoever waits for a lease of this process.
func (r *registry) release(t *turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(t.released)
	t.released = make(chan struct{})
}

// wake is closed at the next release.
func (r *registry) wake(t *turn) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return t.released
}

// wrote notes a revision that this process wrote.
func (r *registry) wrote(t *turn, revision string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.revision = revision
}

func (r *registry) lastWritten(t *turn) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return t.revision
}

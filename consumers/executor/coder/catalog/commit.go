package catalog

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// The line is where writers wait for a commit. There is no goroutine of its own: the
// first writer to come leads, commits all that wait, and hands the lead to one of those
// who came meanwhile. So a lone writer waits for nobody, and many share a sync.
type line struct {
	mu      sync.Mutex
	waiting []*operation
	led     bool // a leader is at work, or has been woken
	last    int  // how many the last commit had
	closed  bool
	idle    sync.Cond // of mu: told when led becomes false
}

const (
	// batchMost bounds the writers of one commit, batchBytes their rows: how long
	// the first of them waits for the others.
	batchMost  = 512
	batchBytes = 16 << 20
	// gather is how often a leader lets others run before it commits, while fewer
	// wait than the last commit had. Those whom that commit woke come back within
	// that; without it they would fall apart into two halves that take turns.
	gather = 8
)

// operation is one writer's transaction.
type operation struct {
	// plan reads through the view and puts rows into it; after an error its rows
	// are forgotten. A nil plan only wants a commit.
	plan     func(*view) error
	err      error
	panicked any
	done     bool
	wake     chan struct{} // receives one token when done, or to lead
}

// view is a transaction as an operation sees it: without its own rows.
type view struct {
	tx   *bbolt.Tx
	c    *Catalog
	seq  uint64 // of the change that is being made
	rows []Row
	size int
}

func (v *view) get(t Table, key []byte) []byte { return v.tx.Bucket(t.bucket()).Get(key) }

func (v *view) cursor(t Table) *bbolt.Cursor { return v.tx.Bucket(t.bucket()).Cursor() }

func (v *view) put(t Table, key, value []byte) {
	v.rows = append(v.rows, Row{t, key, value})
	v.size += len(key) + len(value)
}

func (v *view) remove(t Table, key []byte) { v.put(t, key, nil) }

// read runs f in a transaction that sees one state and holds no writer up. Nothing it
// gives may be kept but as a copy.
func (c *Catalog) read(f func(*view) error) error {
	err := c.db.View(func(tx *bbolt.Tx) error { return f(&view{tx: tx, c: c}) })
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// change runs plan in a transaction that it shares with others.
func (c *Catalog) change(ctx context.Context, plan func(*view) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o := &operation{plan: plan, wake: make(chan struct{}, 1)}
	lead, err := c.line.join(o)
	if err != nil {
		return err
	}
	for !lead {
		select {
		case <-o.wake:
		case <-ctx.Done():
			if c.line.leave(o) {
				return ctx.Err()
			}
			<-o.wake
		}
		if o.done {
			break
		}
		lead = true // woken to: nobody else did it
	}
	if lead {
		c.lead()
	}
	if o.panicked != nil {
		panic(o.panicked)
	}
	return o.err
}

// join stands in line and tells whether to lead.
func (l *line) join(o *operation) (lead bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false, ErrClosed
	}
	l.waiting = append(l.waiting, o)
	lead = !l.led
	l.led = true
	return lead, nil
}

// leave takes an operation out of line, unless a leader took it or it was woken.
func (l *line) leave(o *operation) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(o.wake) > 0 {
		return false
	}
	for i, w := range l.waiting {
		if w == o {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// take gives those who wait, at most batchMost.
func (l *line) take() []*operation {
	for range gather {
		l.mu.Lock()
		enough := len(l.waiting) >= min(l.last, batchMost)
		l.mu.Unlock()
		if enough {
			break
		}
		runtime.Gosched()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.waiting), batchMost)
	batch := l.waiting[:n:n]
	l.waiting = append([]*operation(nil), l.waiting[n:]...)
	return batch
}

// finish puts those who were not served back to the front, tells the others, and wakes
// the next leader. The leader's own token is never waited for.
func (l *line) finish(served, left []*operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = len(served)
	l.waiting = append(left, l.waiting...)
	for _, o := range served {
		o.done = true
		o.wake <- struct{}{}
	}
	if len(l.waiting) > 0 {
		l.waiting[0].wake <- struct{}{}
		return
	}
	l.led = false
	l.idle.Broadcast()
}

// close lets nobody in any more and waits until all who stood in line are served.
func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.idle.L = &l.mu
	for l.led {
		l.idle.Wait()
	}
}

// lead commits one batch.
func (c *Catalog) lead() {
	batch := c.line.take()
	served, err := c.commit(batch)
	if err != nil {
		// Whether the disk has the transaction isn't known. What it says now counts.
		err = errors.Join(fmt.Errorf("commit: %w", err), c.reload())
		for _, o := range batch[:served] {
			o.err = err
		}
	}
	c.line.finish(batch[:served], batch[served:])
}

// errNothing rolls a transaction back that has no rows: there is nothing to sync.
var errNothing = errors.New("nothing to commit")

// commit runs the operations in one transaction, as many as fit, and tells how many.
func (c *Catalog) commit(batch []*operation) (served int, err error) {
	var w *writing
	err = c.db.Update(func(tx *bbolt.Tx) error {
		w = &writing{c: c, tx: tx, seq: c.seq.Load(), stats: *c.stats.Load()}
		for served < len(batch) && w.bytes < batchBytes {
			o := batch[served]
			served++
			v := &view{tx: tx, c: c, seq: w.seq + 1}
			if o.err = o.try(v); o.err != nil || o.panicked != nil || len(v.rows) == 0 {
				continue
			}
			if err := w.apply(v.rows); err != nil {
				return err
			}
		}
		if w.seq == c.seq.Load() {
			return errNothing
		}
		return w.finish()
	})
	if errors.Is(err, errNothing) {
		return served, nil
	}
	if err == nil {
		c.trimmed = w.trimmed
		c.publish(w.seq, w.stats)
	}
	return served, err
}

// try runs the plan. A panic of the caller's callbacks is the caller's: it goes on there,
// not in the leader.
func (o *operation) try(v *view) error {
	defer func() { o.panicked = recover() }()
	return o.plan(v)
}

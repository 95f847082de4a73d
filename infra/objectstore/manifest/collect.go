package manifest

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// deleters is how many blobs are deleted at a time.
	deleters = 8
	// maxWaiting bounds the memory of the collector. What is beyond is left for a
	// sweep.
	maxWaiting = 1 << 16
	// sweepEvery is after how many changes of a copy its leftovers are looked
	// for.
	sweepEvery = 256
)

// execute deletes condemned blobs and then takes them off the document. What was
// condemned and couldn't be deleted stays there for the next deletion.
func (s *Store) execute(ctx context.Context, owner string, condemned []string) error {
	if len(condemned) == 0 {
		return nil
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(deleters)
	gone := make(map[string]bool, len(condemned))
	for _, id := range condemned {
		gone[id] = true
		g.Go(func() error { return s.b.DeleteBlob(gctx, owner, id) })
	}
	if err := g.Wait(); err != nil {
		return cause(ctx, err)
	}
	s.o.Count("blob-collected", int64(len(condemned)))
	return s.change(ctx, owner, newID(), nil, func(d *document) (bool, error) { return d.absolve(gone), nil })
}

// collector deletes blobs that nobody names any more when their readers have had
// time to finish. It runs while there is something to delete.
type collector struct {
	b      Backend
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex
	waiting []leftover // ascending by due
	running bool
	wake    chan struct{}
	closed  bool
}

// leftover is work for later: a blob to be deleted, or something else to be done.
type leftover struct {
	owner, blob string
	do          func(ctx context.Context)
	due         time.Time
}

func newCollector(b Backend, o Options) *collector {
	c := &collector{b: b, o: o, wake: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// add hands a blob over that no document names, or will.
func (c *collector) add(owner string, after time.Duration, blob string) {
	c.queue(leftover{owner: owner, blob: blob, due: c.o.Clock.Now().Add(after)})
}

// sentence has condemned blobs deleted in the background, as execute does.
func (c *collector) sentence(s *Store, owner string, condemned []string, after time.Duration) {
	if len(condemned) == 0 {
		return
	}
	c.queue(leftover{due: c.o.Clock.Now().Add(after), do: func(ctx context.Context) {
		if s.execute(ctx, owner, condemned) != nil {
			c.o.Count("blob-left", int64(len(condemned)))
		}
	}})
}

func (c *collector) queue(l leftover) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.waiting) >= maxWaiting {
		c.o.Count("blob-left", 1)
		return
	}
	i := len(c.waiting)
	for i > 0 && l.due.Before(c.waiting[i-1].due) {
		i--
	}
	c.waiting = append(c.waiting, leftover{})
	copy(c.waiting[i+1:], c.waiting[i:])
	c.waiting[i] = l
	if !c.running {
		c.running = true
		c.tasks.Go(c.run)
	} else if i == 0 {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// run works until nothing is left to do or the store is closed.
func (c *collector) run() {
	for {
		due, next, done := c.next()
		if done {
			return
		}
		if len(due) == 0 {
			c.sleep(next)
			continue
		}
		var g errgroup.Group
		g.SetLimit(deleters)
		for _, l := range due {
			g.Go(func() error { c.one(l); return nil })
		}
		_ = g.Wait() // each counts its own failure
	}
}

func (c *collector) one(l leftover) {
	if l.do != nil {
		l.do(c.ctx)
		return
	}
	if c.b.DeleteBlob(c.ctx, l.owner, l.blob) != nil {
		c.o.Count("blob-left", 1)
		return
	}
	c.o.Count("blob-collected", 1)
}

// next takes what is due, or says when something will be.
func (c *collector) next() (due []leftover, next time.Time, done bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.waiting) == 0 {
		c.running = false
		return nil, next, true
	}
	now := c.o.Clock.Now()
	n := 0
	for n < len(c.waiting) && n < 16*deleters && !c.waiting[n].due.After(now) {
		n++
	}
	if n == 0 {
		return nil, c.waiting[0].due, false
	}
	due = append(due, c.waiting[:n]...)
	c.waiting = append(c.waiting[:0], c.waiting[n:]...)
	return due, next, false
}

func (c *collector) sleep(until time.Time) {
	t := c.o.Clock.NewTimerAt(until)
	defer t.Stop()
	select {
	case <-t.C():
	case <-c.wake:
	case <-c.ctx.Done():
	}
}

func (c *collector) close() {
	c.mu.Lock()
	if !c.closed && len(c.waiting) > 0 {
		c.o.Count("blob-left", int64(len(c.waiting)))
	}
	c.closed, c.waiting = true, nil
	c.mu.Unlock()
	c.cancel()
	c.tasks.Wait()
}

// sweepSometimes looks for leftovers of an owner, in the background, each time
// its copy has been changed so often.
func (s *Store) sweepSometimes(owner string, counter uint64) {
	if counter%sweepEvery == 0 {
		s.collector.queue(leftover{due: s.o.Clock.Now(), do: func(ctx context.Context) {
			if s.Sweep(ctx, owner) != nil {
				s.o.Count("sweep-failed", 1)
			}
		}})
	}
}

// Sweep condemns blobs of an owner that its document doesn't name and that are
// older than Options.Orphan, which crashes left. They are deleted Options.Grace
// later, or by the next sweep.
func (s *Store) Sweep(ctx context.Context, owner string) error {
	old, err := s.blobs(ctx, owner, s.o.Clock.Now().Add(-s.o.Orphan))
	if err != nil {
		return err
	}
	var condemned []string
	err = s.change(ctx, owner, newID(), nil, func(d *document) (bool, error) {
		write := d.condemn(old)
		condemned = d.Condemned
		return write, nil
	})
	if err != nil {
		return err
	}
	s.collector.sentence(s, owner, condemned, s.o.Grace)
	return nil
}

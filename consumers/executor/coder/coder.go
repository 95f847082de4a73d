package coder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/catalog/shipping"
	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
	"penstock/consumers/executor/coder/queue"
	"penstock/infra/clock"
	"penstock/infra/wholefile"
)

// errNoStore is the failure of a blob whose store is not configured any more.
var errNoStore = errors.New("no such store")

// Coder stores objects. Its methods may be called by many goroutines.
type Coder struct {
	o       Options
	code    object.Coding
	stores  []*store
	named   map[string]*store
	catalog *catalog.Catalog
	shipper *shipping.Shipper
	queue   *queue.Queue
	memory  *memory
	reserve *reservations
	log     zerolog.Logger
	states  atomic.Uint64 // goes up when a store dies or comes back

	replaced atomic.Bool // another state has the stores

	surveyed wholefile.JSON[surveyed]
	unseen   atomic.Int64 // versions that are to be looked at yet

	unreadable unreadable

	ctx    context.Context // of everything that goes on behind calls
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	duties duties
	closed bool
	users  int // calls, readers and goroutines that use the coder
	unused sync.Cond
}

func (o Options) complete() (Options, error) {
	o.Connections = cmp.Or(o.Connections, 16)
	o.Background = cmp.Or(o.Background, max(1, o.Connections/4))
	o.Segment = cmp.Or(o.Segment, object.DefaultSegment)
	o.TaskTimeout = cmp.Or(o.TaskTimeout, 30*time.Second)
	o.Patience = cmp.Or(o.Patience, 5*time.Second)
	o.Retry = cmp.Or(o.Retry, 5*time.Second)
	o.Memory = cmp.Or(o.Memory, 512<<20)
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Layout == 0 {
		o.Layout = object.Shared
	}
	nop := zerolog.Nop()
	o.Logger = cmp.Or(o.Logger, &nop)
	switch {
	case o.Name == "" || o.State == "" || o.Chooser == nil:
		return o, fmt.Errorf("%w: name, state and chooser are needed", ErrOptions)
	case o.Layout == object.Shared && len(o.Stores) != 1:
		return o, fmt.Errorf("%w: the layout shared has one store, not %d", ErrOptions, len(o.Stores))
	case o.Layout == object.Spread && len(o.Stores) < o.N:
		return o, fmt.Errorf("%w: %d stores for n = %d", ErrOptions, len(o.Stores), o.N)
	case o.Layout == object.Spread && !o.Durability.All && o.K+o.Durability.Extra > o.N:
		return o, fmt.Errorf("%w: durability %v of (%d,%d)", ErrOptions, o.Durability, o.N, o.K)
	}
	return o, nil
}

func (o Options) coding() object.Coding {
	if o.Layout == object.Shared {
		return object.SharedCoding()
	}
	return object.SpreadCoding(o.N, o.K)
}

// Open opens the catalog and looks who owns the stores. It returns ErrOptions, ErrOwner,
// and what catalog and stores say.
func Open(ctx context.Context, o Options) (*Coder, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	c := &Coder{o: o, code: o.coding(), log: *o.Logger, named: make(map[string]*store)}
	if err := c.code.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	c.duties = duties{
		wake: []chan struct{}{make(chan struct{}, 1)}, claimed: make(map[string]bool),
		busy: make(map[string]int), later: make(map[string]failure),
	}
	for i, s := range o.Stores {
		one := &store{Store: s, index: i, marker: o.Name + "/owner", log: o.Name + "/log/", suspect: make(chan struct{}, 1), doubts: newDoubts(chunks.LateOf(s))}
		if c.named[s.Name()] != nil {
			return nil, fmt.Errorf("%w: two stores named %s", ErrOptions, s.Name())
		}
		c.stores, c.named[s.Name()] = append(c.stores, one), one
		c.duties.wake = append(c.duties.wake, make(chan struct{}, 1))
	}
	c.unused.L = &c.mu
	c.memory = newMemory(o.Memory, int64(cmp.Or(o.MaxWaiting, 1000)), c.code, o.Segment)
	c.reserve = &reservations{c: c}
	if c.queue, err = queue.New(queue.Options{
		CoreOptions: queue.CoreOptions{
			Connections: o.Connections, Background: o.Background, MaxWaiting: o.MaxWaiting, Chooser: o.Chooser,
		},
		Clock: o.Clock, Grace: o.Grace, Observe: o.Observe,
	}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if err := c.openState(ctx); err != nil {
		return nil, err
	}
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return c, nil
}

// Run does the background work until ctx ends, and then returns nil; calls of other
// methods are served meanwhile. It returns ErrOwner when another state has taken over
// the stores: nothing is served any more then. It is called once.
func (c *Coder) Run(ctx context.Context) error {
	leave, err := c.enter()
	if err != nil {
		return err
	}
	defer leave()
	// Changes are shipped until all other work has ended.
	ships, stopShips := context.WithCancel(context.WithoutCancel(ctx))
	defer stopShips()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	shipped := make(chan error, 1)
	c.start(func() {
		err := c.shipper.Run(ships)
		if errors.Is(err, shipping.ErrReplaced) {
			c.replaced.Store(true)
			err = fmt.Errorf("%w: %w", ErrOwner, err)
		}
		cancel()
		shipped <- err
	})
	var group errgroup.Group
	group.Go(func() error { defer cancel(); return c.queue.Run(ctx) })
	group.Go(func() error { c.mends(ctx); return nil })
	group.Go(func() error { c.survey(ctx); return nil })
	group.Go(func() error { c.strands(ctx); return nil })
	for _, s := range c.stores {
		group.Go(func() error { c.probes(ctx, s); return nil })
		group.Go(func() error { c.deletes(ctx, s); return nil })
		group.Go(func() error { c.repeats(ctx, s); return nil })
	}
	c.kick()
	err = group.Wait()
	stopShips()
	return errors.Join(err, <-shipped)
}

// Close ends all requests and gives the catalog back. It may be called twice.
func (c *Coder) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.cancel(ErrClosed)
	for c.users > 0 {
		c.unused.Wait()
	}
	c.mu.Unlock()
	c.reserve.close()
	return c.catalog.Close()
}

// enter notes a user of the coder, who must leave. It returns ErrClosed.
func (c *Coder) enter() (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.replaced.Load() {
		return nil, ErrClosed
	}
	c.users++
	return c.leave, nil
}

func (c *Coder) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users--; c.users == 0 {
		c.unused.Broadcast()
	}
}

// start runs f in a goroutine of its own, for which Close waits. It is called by users.
func (c *Coder) start(f func()) {
	c.mu.Lock()
	c.users++
	c.mu.Unlock()
	go func() {
		defer c.leave()
		f()
	}()
}

func (c *Coder) count(e Event, reason string, n int64) {
	if c.o.Metrics != nil {
		c.o.Metrics.Count(e, reason, n)
	}
}

// Stats gives the figures of now.
func (c *Coder) Stats(context.Context) (Stats, error) {
	leave, err := c.enter()
	if err != nil {
		return Stats{}, err
	}
	defer leave()
	unseen := c.unseen.Load()
	c.unreadable.forget(c.isGone)
	s, q := c.catalog.Stats(), c.queue.State()
	out := Stats{
		Buckets: s.Buckets, Objects: s.Objects, Bytes: s.Bytes, Uploads: s.Uploads,
		Staged: s.Staged, Lacking: s.Lacking, Unseen: unseen, Unintended: s.Staged + s.Lacking + unseen,
		Deletes: s.Deletes + s.Repeats, Repeats: s.Repeats,
		Unreadable: c.unreadable.count(),
		Backlog:    q.Backlog, Connections: q.InUse, Limit: c.o.Connections,
	}
	for _, one := range c.stores {
		out.Stores = append(out.Stores, one.health())
	}
	slices.SortStableFunc(out.Stores, func(a, b StoreHealth) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

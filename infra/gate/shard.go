package gate

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// shards is the number of counters among which owners are spread. A hold waits
// for all writes of its owner's shard that are running, so the more, the rarer it
// waits for a stranger's; 64 bytes each.
const shards = 4096

// shard counts running writes. They count under the phase at which they came, so
// that those that came before a moment can be waited for while others come.
type shard struct {
	running [2]atomic.Int64
	phase   atomic.Uint32
	waiter  atomic.Pointer[waiter]
	leave   [2]func()
	_       [16]byte // a line of memory each
}

// waiter waits until a phase is empty.
type waiter struct{ empty chan struct{} }

// counters are the running writes of an entry point.
type counters struct {
	seed maphash.Seed
	all  []shard

	mu    sync.Mutex
	turns map[*shard]chan struct{} // who waits in it; one at a time
}

func newCounters() *counters {
	c := &counters{seed: maphash.MakeSeed(), all: make([]shard, shards), turns: map[*shard]chan struct{}{}}
	for i := range c.all {
		s := &c.all[i]
		for p := range s.leave {
			// One function for all, so that none is made on entering.
			s.leave[p] = func() { s.left(p) }
		}
	}
	return c
}

func (c *counters) of(owner string) *shard {
	return &c.all[maphash.String(c.seed, owner)%shards]
}

// enter counts a write and returns the phase that it counts under.
func (s *shard) enter() uint32 {
	p := s.phase.Load()
	s.running[p].Add(1)
	return p
}

func (s *shard) left(p int) {
	if s.running[p].Add(-1) != 0 {
		return
	}
	if w := s.waiter.Load(); w != nil {
		select {
		case w.empty <- struct{}{}:
		default: // It has been told already.
		}
	}
}

// settle waits until every write that was counted before the call has left. Writes
// that come meanwhile are waited for only as far as they come before the phase
// changes.
func (c *counters) settle(ctx context.Context, s *shard) error {
	turn := c.turn(s)
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-turn }()
	w := &waiter{empty: make(chan struct{}, 1)}
	s.waiter.Store(w)
	defer s.waiter.Store(nil)
	now := s.phase.Load()
	// Those whom an earlier call gave up waiting for are in the other phase.
	if err := s.await(ctx, w, 1-now); err != nil {
		return err
	}
	s.phase.Store(1 - now)
	return s.await(ctx, w, now)
}

func (s *shard) await(ctx context.Context, w *waiter, phase uint32) error {
	for s.running[phase].Load() != 0 {
		select {
		case <-w.empty:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (c *counters) turn(s *shard) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.turns[s]
	if t == nil {
		t = make(chan struct{}, 1)
		c.turns[s] = t
	}
	return t
}

// drain waits until no write is running at all. None may come.
func (c *counters) drain(ctx context.Context) error {
	for i := range c.all {
		s := &c.all[i]
		if s.running[0].Load()+s.running[1].Load() == 0 {
			continue
		}
		if err := c.settle(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

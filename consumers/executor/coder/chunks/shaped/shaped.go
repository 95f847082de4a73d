package shaped

import (
	"context"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"penstock/consumers/executor/coder/chunks"
	"penstock/infra/clock"
)

// Delays are the laws of a store; nil is no delay.
type Delays struct {
	// Read is of Get, by the bytes that are asked for, if there are so many, and of List,
	// as of none.
	Read Law
	// Write is of Put, by the bytes that are stored, and of Delete, as of none.
	Write Law
}

// Options of a shaped store.
type Options struct {
	// Inner is the store that keeps the blobs. It stays the caller's.
	Inner chunks.Store
	// Seed of delays.
	Seed uint64
	// Delays at the beginning.
	Delays Delays
	// Clock of the delays. Defaults to the machine's.
	Clock clock.Clock
}

// Store is a store of blobs with delays.
type Store struct {
	inner  chunks.Store
	clock  clock.Clock
	delays atomic.Pointer[Delays]
	count  counters

	mu     sync.Mutex
	random *rand.Rand
}

var _ chunks.Late = (*Store)(nil)

// New puts delays before a store.
func New(o Options) *Store {
	s := &Store{inner: o.Inner, clock: o.Clock, random: rand.New(rand.NewPCG(o.Seed, 0))} //nolint:gosec // repeatable on purpose
	if s.clock == nil {
		s.clock = clock.System()
	}
	s.SetDelays(o.Delays)
	return s
}

// SetDelays changes the delays of calls to come.
func (s *Store) SetDelays(d Delays) { s.delays.Store(&d) }

// Name implements chunks.Store.
func (s *Store) Name() string { return s.inner.Name() }

// Late implements chunks.Late, as the inner store has it.
func (s *Store) Late() time.Duration { return chunks.LateOf(s.inner) }

// Counts is what a store was asked for since it was made.
type Counts struct {
	Gets, Puts, Deletes, Lists uint64
	// Cancelled calls ended with their contexts.
	Cancelled uint64
	// BytesRead and BytesWritten passed.
	BytesRead, BytesWritten uint64
	// Waiting calls have begun and not ended.
	Waiting int64
}

type counters struct {
	gets, puts, deletes, lists, cancelled, read, written atomic.Uint64
	waiting                                              atomic.Int64
}

// Counts tells what it was asked for so far.
func (s *Store) Counts() Counts {
	c := &s.count
	return Counts{
		Gets: c.gets.Load(), Puts: c.puts.Load(), Deletes: c.deletes.Load(), Lists: c.lists.Load(),
		Cancelled: c.cancelled.Load(), BytesRead: c.read.Load(), BytesWritten: c.written.Load(), Waiting: c.waiting.Load(),
	}
}

// call is one call to the store.
type call struct {
	law   Law
	bytes int64
	count *atomic.Uint64
}

// run waits as long as the call is to take and then does it.
func (s *Store) run(ctx context.Context, c call, do func() error) error {
	c.count.Add(1)
	s.count.waiting.Add(1)
	defer s.count.waiting.Add(-1)
	err := s.wait(ctx, c)
	if err == nil {
		err = do()
	}
	if err != nil && ctx.Err() != nil {
		s.count.cancelled.Add(1)
	}
	return err
}

func (s *Store) wait(ctx context.Context, c call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if took := s.draw(c); took > 0 && s.clock.Sleep(ctx, took) != nil {
		return ctx.Err()
	}
	return nil
}

// draw says how long a call takes.
func (s *Store) draw(c call) time.Duration {
	if c.law == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.law(float64(c.bytes)/1e6, s.random)
}

// Put implements chunks.Store.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := chunks.CheckKey(key); err != nil {
		return err
	}
	c := call{s.delays.Load().Write, max(size, 0), &s.count.puts}
	return s.run(ctx, c, func() error {
		err := s.inner.Put(ctx, key, r, size)
		if err == nil {
			s.count.written.Add(uint64(size)) //nolint:gosec // a Put of less than nothing fails
		}
		return err
	})
}

// Get implements chunks.Store.
func (s *Store) Get(ctx context.Context, key string, off, n int64, w io.Writer) (done int64, err error) {
	if err := chunks.CheckKey(key); err != nil {
		return 0, err
	}
	c := call{s.delays.Load().Read, s.there(ctx, key, off, n), &s.count.gets}
	err = s.run(ctx, c, func() (err error) {
		done, err = s.inner.Get(ctx, key, off, n, w)
		s.count.read.Add(uint64(done)) //nolint:gosec // never less than nothing
		return err
	})
	return done, err
}

// believed is the most bytes that a Get is taken to mean: a chunk has fewer. Who asks for
// more wants whatever there is.
const believed = 16 << 20

// there is how many bytes a Get will give.
func (s *Store) there(ctx context.Context, key string, off, n int64) int64 {
	if n <= believed {
		return n
	}
	found, err := s.inner.List(ctx, key, "", 1)
	if err != nil || len(found) == 0 || found[0].Key != key {
		return 0
	}
	return min(n, max(0, found[0].Bytes-off))
}

// Delete implements chunks.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := chunks.CheckKey(key); err != nil {
		return err
	}
	c := call{s.delays.Load().Write, 0, &s.count.deletes}
	return s.run(ctx, c, func() error { return s.inner.Delete(ctx, key) })
}

// List implements chunks.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) (found []chunks.Entry, err error) {
	c := call{s.delays.Load().Read, 0, &s.count.lists}
	err = s.run(ctx, c, func() (err error) {
		found, err = s.inner.List(ctx, prefix, after, limit)
		return err
	})
	return found, err
}

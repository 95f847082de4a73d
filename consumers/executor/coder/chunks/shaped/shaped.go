package shaped

import (
	"context"
	"fmt"
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
	// Seed of delays and faults.
	Seed uint64
	// Delays and Faults at the beginning.
	Delays Delays
	Faults Faults
	// Clock of the delays. Defaults to the machine's.
	Clock clock.Clock
}

// Store is a store of blobs with delays and faults.
type Store struct {
	inner  chunks.Store
	clock  clock.Clock
	delays atomic.Pointer[Delays]
	faults atomic.Pointer[Faults]
	count  counters

	mu     sync.Mutex
	random *rand.Rand
	nth    int // calls that Faults.ErrorEvery counts
}

var _ chunks.Store = (*Store)(nil)

// New puts delays and faults before a store.
func New(o Options) *Store {
	s := &Store{inner: o.Inner, clock: o.Clock, random: rand.New(rand.NewPCG(o.Seed, 0))} //nolint:gosec // repeatable on purpose
	if s.clock == nil {
		s.clock = clock.System()
	}
	s.SetDelays(o.Delays)
	s.SetFaults(o.Faults)
	return s
}

// SetDelays changes the delays of calls to come.
func (s *Store) SetDelays(d Delays) { s.delays.Store(&d) }

// SetFaults changes the faults of calls to come; the zero value ends them. Calls that
// hang go on hanging.
func (s *Store) SetFaults(f Faults) { s.faults.Store(&f) }

// Faults are those in force.
func (s *Store) Faults() Faults { return *s.faults.Load() }

// Inner is the store below.
func (s *Store) Inner() chunks.Store { return s.inner }

// Name implements chunks.Store.
func (s *Store) Name() string { return s.inner.Name() }

// Counts is what a store was asked for since it was made.
type Counts struct {
	Gets, Puts, Deletes, Lists uint64
	// Cancelled calls ended with their contexts, Injected ones failed because they were
	// told to, Altered answers were made wrong.
	Cancelled, Injected, Altered uint64
	// BytesRead and BytesWritten passed.
	BytesRead, BytesWritten uint64
	// Waiting calls have begun and not ended.
	Waiting int64
}

type counters struct {
	gets, puts, deletes, lists, cancelled, injected, altered, read, written atomic.Uint64
	waiting                                                                 atomic.Int64
}

// Counts tells what it was asked for so far.
func (s *Store) Counts() Counts {
	c := &s.count
	return Counts{
		Gets: c.gets.Load(), Puts: c.puts.Load(), Deletes: c.deletes.Load(), Lists: c.lists.Load(),
		Cancelled: c.cancelled.Load(), Injected: c.injected.Load(), Altered: c.altered.Load(),
		BytesRead: c.read.Load(), BytesWritten: c.written.Load(), Waiting: c.waiting.Load(),
	}
}

// call is one call to the store.
type call struct {
	law   Law
	bytes int64
	write bool
	what  string // for errors
	key   string
	count *atomic.Uint64
}

// run waits as long as the call is to take and then does it, or fails.
func (s *Store) run(ctx context.Context, c call, do func(f *Faults) error) error {
	c.count.Add(1)
	s.count.waiting.Add(1)
	defer s.count.waiting.Add(-1)
	f := s.faults.Load()
	if !f.meets(c.write, c.key) {
		f = &Faults{}
	}
	err := s.wait(ctx, f, c)
	if err == nil {
		err = do(f)
	}
	if err != nil && ctx.Err() != nil {
		s.count.cancelled.Add(1)
	}
	return err
}

func (s *Store) wait(ctx context.Context, f *Faults, c call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.Hang {
		<-ctx.Done()
		return ctx.Err()
	}
	took, fails := s.draw(f, c)
	if f.Dead { // a connection that is refused takes no time
		took, fails = 0, true
	}
	if took > 0 {
		if err := s.clock.Sleep(ctx, took); err != nil {
			return ctx.Err()
		}
	}
	if fails {
		s.count.injected.Add(1)
		return fmt.Errorf("%s %s: store %s: %w", c.what, c.key, s.Name(), ErrInjected)
	}
	return nil
}

// draw says how long a call takes and whether it fails then.
func (s *Store) draw(f *Faults, c call) (took time.Duration, fails bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.law != nil {
		took = c.law(float64(c.bytes)/1e6, s.random)
	}
	if f.Slow > 0 {
		took = milliseconds(float64(took) / float64(time.Millisecond) * f.Slow)
	}
	if f.ErrorEvery > 0 {
		s.nth++
		fails = s.nth%f.ErrorEvery == 0
	}
	return took, fails
}

// Put implements chunks.Store.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := chunks.CheckKey(key); err != nil {
		return err
	}
	c := call{s.delays.Load().Write, max(size, 0), true, "put", key, &s.count.puts}
	return s.run(ctx, c, func(*Faults) error {
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
	c := call{s.delays.Load().Read, s.there(ctx, key, off, n), false, "get", key, &s.count.gets}
	err = s.run(ctx, c, func(f *Faults) (err error) {
		if f.Answer == Right {
			done, err = s.inner.Get(ctx, key, off, n, w)
		} else {
			s.count.altered.Add(1)
			done, err = s.wrong(ctx, f.Answer, key, off, n, w)
		}
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
	c := call{s.delays.Load().Write, 0, true, "delete", key, &s.count.deletes}
	return s.run(ctx, c, func(*Faults) error { return s.inner.Delete(ctx, key) })
}

// List implements chunks.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) (found []chunks.Entry, err error) {
	c := call{s.delays.Load().Read, 0, false, "list", prefix, &s.count.lists}
	err = s.run(ctx, c, func(*Faults) (err error) {
		found, err = s.inner.List(ctx, prefix, after, limit)
		return err
	})
	return found, err
}

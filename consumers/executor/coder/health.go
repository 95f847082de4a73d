package coder

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
)

// The measure by which stores are compared: how long a task took against one of its
// size in a store that answers in 5 ms and moves 50 MB/s, so that small and large tasks
// give one figure.
const (
	measureFixed  = 5 * time.Millisecond
	measurePerMB  = 20 * time.Millisecond
	measureWeight = 0.1 // of the newest task in the smoothed figure

	// slowFigure is the figure above which a store is slow.
	slowFigure = 2
	// deadAfter is how many tasks in a row fail before a store counts as dead.
	deadAfter = 3
	// worst is the rank of dead stores; others are the binary logarithm of their
	// figure, so that small differences don't order them.
	worst = math.MaxInt32
)

// store is a store and what is thought of it.
type store struct {
	chunks.Store
	index  int
	marker string // the key of the owner marker
	log    string // the prefix of the catalog's log
	// suspect wakes who looks at it: a blob was not there.
	suspect   chan struct{}
	suspected atomic.Bool

	mu       sync.Mutex
	figure   float64 // smoothed; 0: none yet
	delay    time.Duration
	failures int
	dead     bool
	seen     time.Time // when a task last told something

	mark   markState
	marked time.Time // when its owner marker was seen last
	gone   time.Time // marked, when it was found to be absent

	doubts doubts
}

// done notes a task of so many bytes that succeeded.
func (s *store) done(now time.Time, took time.Duration, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures, s.dead, s.seen = 0, false, now
	s.note(took, bytes)
}

// cancelled notes one that was told to end: it would have lasted longer, and counts if
// it was slower than the others already.
func (s *store) cancelled(took time.Duration, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if measured(took, bytes) > s.figure {
		s.note(took, bytes)
	}
}

// failed notes one that failed through the store's fault; it tells whether the store is
// dead since now.
func (s *store) failed(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures++
	s.seen = now
	was := s.dead
	s.dead = s.failures >= deadAfter
	return s.dead && !was
}

// probed notes a look at the store: an answer makes it live, and lets a slow one be
// asked sooner again, one half at a time.
func (s *store) probed(now time.Time, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures, s.dead, s.seen = 0, false, now; took < measureFixed*10 {
		s.figure /= 2
	}
}

func measured(took time.Duration, bytes int64) float64 {
	return took.Seconds() / (measureFixed.Seconds() + measurePerMB.Seconds()*float64(bytes)/1e6)
}

func (s *store) note(took time.Duration, bytes int64) {
	m := measured(took, bytes)
	if s.figure == 0 {
		s.figure, s.delay = m, took
		return
	}
	s.figure += measureWeight * (m - s.figure)
	s.delay += time.Duration(measureWeight * float64(took-s.delay))
}

// rank orders stores for reads, the best first.
func (s *store) rank() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.dead, s.mark != markOurs:
		return worst
	case s.figure == 0:
		return math.MinInt32
	}
	return s.failures*2 + int(math.Round(math.Log2(s.figure)))
}

func (s *store) isDead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead || s.mark != markOurs
}

// doubtful tells whether the store is to be looked at: it seems to be in trouble, and
// nothing was heard of it for so long.
func (s *store) doubtful(now time.Time, d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (s.failures > 0 || s.mark != markOurs || s.figure > slowFigure) && now.Sub(s.seen) >= d
}

func (s *store) health() StoreHealth {
	s.mu.Lock()
	defer s.mu.Unlock()
	return StoreHealth{Name: s.Name(), Delay: s.delay, Failures: s.failures, Dead: s.dead || s.mark != markOurs, Absent: s.mark == markGone}
}

// note judges a task of a store by how it ended. ctx is the task's.
func (c *Coder) note(ctx context.Context, s *store, began time.Time, bytes int64, err error) {
	now := c.o.Clock.Now()
	switch {
	case errors.Is(err, errShut): // its memory was taken away, which is not its fault
	case err == nil, errors.Is(err, chunks.ErrNotFound):
		s.done(now, now.Sub(began), bytes) // a store that lacks a blob is well itself
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTimeout) && !errors.Is(context.Cause(ctx), errLagging):
		s.cancelled(now.Sub(began), bytes)
	default:
		if s.failed(now) {
			c.states.Add(1)
			c.count(EventDead, s.Name(), 1)
			c.log.Warn().Str("store", s.Name()).Err(err).Msg("store is taken for dead")
		}
	}
}

// errTimeout is the cause of a task's end that took longer than Options.TaskTimeout.
var errTimeout = errors.New("the task took too long")

// pick chooses the stores of the n blobs of a version: they go round by the version, so
// that all stores hold parts of all kinds, dead ones only if there aren't others enough.
func (c *Coder) pick(turn uint64, n int) []*store {
	m := uint64(len(c.stores))
	order := make([]*store, 0, m)
	for i := range m {
		order = append(order, c.stores[(turn+i)%m])
	}
	slices.SortStableFunc(order, func(a, b *store) int { return cmp.Compare(dead(a), dead(b)) })
	return order[:n]
}

// alive counts the stores that aren't dead.
func (c *Coder) alive() int {
	n := 0
	for _, s := range c.stores {
		n += 1 - dead(s)
	}
	return n
}

func dead(s *store) int {
	if s.isDead() {
		return 1
	}
	return 0
}

// byRank orders chunks by the stores that have them, the best first; those of blobs that
// lack, or may be damaged, come last.
func (c *Coder) byRank(v *held, list []object.Chunk) {
	ranks := make(map[int]int, 8)
	for _, k := range list {
		if _, ok := ranks[k.Blob]; ok {
			continue
		}
		s := c.named[v.Places[k.Blob].Store]
		switch {
		case s == nil, v.lacks(k.Blob):
			ranks[k.Blob] = math.MaxInt
		default:
			ranks[k.Blob] = s.rank()
		}
	}
	slices.SortStableFunc(list, func(a, b object.Chunk) int { return cmp.Compare(ranks[a.Blob], ranks[b.Blob]) })
}

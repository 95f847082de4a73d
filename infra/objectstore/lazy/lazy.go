// Package lazy holds stores that are opened when they are first needed, and
// again as long as that fails: a site whose store is away must not keep the
// others' movers from starting.
//
// # States
//
// A [Store] is closed until a call needs it; then it is opened, once for all who
// wait, and stays open. A failed opening is the error of the calls that waited
// for it; the next call after [Options.Pause] tries again, those before get the
// same error. An opening that takes longer than [Options.Patience] has failed: who
// waits for a store that doesn't answer would keep others from their turn. After
// Close every call returns [ErrClosed].
package lazy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"penstock/infra/clock"
	"penstock/infra/objectstore"
)

// ErrClosed is returned by every call after Close. Nothing was done.
var ErrClosed = errors.New("the store is closed")

// Options of a store.
type Options struct {
	// Name is for errors.
	Name string
	// Open opens the store. If it is an io.Closer, Close closes it.
	Open func(ctx context.Context) (objectstore.Store, error)
	// Patience is how long an opening may take. Defaults to 30 s.
	Patience time.Duration
	// Pause is for how long a failure is remembered. Defaults to 1 s.
	Pause time.Duration
	// Clock defaults to the machine's.
	Clock clock.Clock
}

// Store opens another one when it is needed. It is safe for concurrent use.
type Store struct {
	o Options

	mu     sync.Mutex
	open   objectstore.Store
	closed bool
	failed error
	until  time.Time     // failed is the answer until then
	busy   chan struct{} // closed when the opening under way ends; nil if none is
}

var _ objectstore.Store = (*Store)(nil)

// New returns a store that isn't open yet.
func New(o Options) *Store {
	o.Patience = cmp.Or(o.Patience, 30*time.Second)
	o.Pause = cmp.Or(o.Pause, time.Second)
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return &Store{o: o}
}

// Ready opens the store unless it is open, and returns what keeps it from being
// used.
func (s *Store) Ready(ctx context.Context) error {
	_, err := s.get(ctx)
	return err
}

// Close closes the store. It may be called twice.
func (s *Store) Close() error {
	s.mu.Lock()
	open := s.open
	s.closed, s.open = true, nil
	s.mu.Unlock()
	if c, ok := open.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func (s *Store) get(ctx context.Context) (objectstore.Store, error) {
	for {
		s.mu.Lock()
		switch {
		case s.closed:
			s.mu.Unlock()
			return nil, fmt.Errorf("store %s: %w", s.o.Name, ErrClosed)
		case s.open != nil:
			defer s.mu.Unlock()
			return s.open, nil
		case s.failed != nil && s.o.Clock.Now().Before(s.until):
			defer s.mu.Unlock()
			return nil, s.failed
		case s.busy == nil:
			s.busy = make(chan struct{})
			s.mu.Unlock()
			if err := s.try(ctx); err != nil {
				return nil, err
			}
			continue
		}
		busy := s.busy
		s.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try opens the store and wakes those who wait for it. A caller whose context
// ended has shown nothing about the store: its error is its own, and is not
// remembered.
func (s *Store) try(ctx context.Context) error {
	open, err := s.within(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.busy)
	s.busy = nil
	switch {
	case err == nil && s.closed:
		if c, ok := open.(io.Closer); ok {
			_ = c.Close() // Nobody has used it, and Close has answered already.
		}
	case err == nil:
		s.open, s.failed = open, nil
	default:
		s.failed = fmt.Errorf("store %s can't be opened: %w", s.o.Name, err)
		s.until = s.o.Clock.Now().Add(s.o.Pause)
		if ctx.Err() != nil {
			s.until = s.o.Clock.Now()
		}
		return s.failed
	}
	return nil
}

// errPatience ends an opening.
var errPatience = errors.New("it takes too long")

// within opens the store for as long as Patience lasts.
func (s *Store) within(ctx context.Context) (objectstore.Store, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := s.o.Clock.NewTimer(s.o.Patience)
	var over sync.WaitGroup
	over.Go(func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			cancel(errPatience)
		case <-ctx.Done():
		}
	})
	defer over.Wait()
	defer cancel(nil)
	open, err := s.o.Open(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errPatience) {
		err = fmt.Errorf("%w: %w", errPatience, err)
	}
	return open, err
}

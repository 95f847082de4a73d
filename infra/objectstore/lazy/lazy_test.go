package lazy

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"penstock/infra/clock"
	"penstock/infra/objectstore"
	"penstock/infra/objectstore/dir"
	"penstock/infra/objectstore/objectstoretest"
)

func openDir(t *testing.T) objectstore.Store {
	t.Helper()
	d, err := dir.Open(t.TempDir(), dir.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestConformance(t *testing.T) {
	objectstoretest.Run(t, func(t *testing.T) objectstore.Store {
		d := openDir(t)
		s := New(Options{Name: "x", Open: func(context.Context) (objectstore.Store, error) { return d, nil }})
		if err := s.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s
	})
}

func TestAFailureIsRememberedForAPause(t *testing.T) {
	c := clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	away, tries := errors.New("away"), 0
	s := New(Options{Name: "east", Clock: c, Open: func(context.Context) (objectstore.Store, error) {
		if tries++; tries < 3 {
			return nil, away
		}
		return openDir(t), nil
	}})
	stat := func() error { _, err := s.Stat(t.Context(), "a"); return err }
	for i, want := range []struct {
		tries int
		ok    bool
		wait  time.Duration
	}{{1, false, 0}, {1, false, time.Second}, {2, false, time.Second}, {3, true, 0}, {3, true, time.Hour}} {
		err := stat()
		if (err == nil) != want.ok || !want.ok && !errors.Is(err, away) || tries != want.tries {
			t.Fatalf("step %d: %v after %d tries; expected %+v", i, err, tries, want)
		}
		c.Advance(want.wait)
	}
	if s.Capabilities() == (objectstore.Capabilities{}) {
		t.Error("an open store has no capabilities")
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	if err := stat(); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestOneOpensForAll(t *testing.T) {
	var tries atomic.Int32
	release, opening := make(chan struct{}), make(chan struct{}, 8)
	s := New(Options{Name: "east", Open: func(context.Context) (objectstore.Store, error) {
		tries.Add(1)
		opening <- struct{}{}
		<-release
		return openDir(t), nil
	}})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := s.Ready(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	<-opening
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Ready(impatient); !errors.Is(err, context.Canceled) {
		t.Errorf("who waits for an opening can't give up: %v", err)
	}
	close(release)
	wg.Wait()
	if tries.Load() != 1 {
		t.Errorf("opened %d times", tries.Load())
	}
}

// TestPatience: an opening without an end fails, and the next one may do better.
func TestPatience(t *testing.T) {
	c := clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	tries := 0
	s := New(Options{Name: "east", Clock: c, Patience: time.Minute, Open: func(ctx context.Context) (objectstore.Store, error) {
		if tries++; tries > 1 {
			return openDir(t), nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	done := make(chan error, 1)
	go func() { done <- s.Ready(t.Context()) }()
	if err := c.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	c.Advance(time.Minute)
	if err := <-done; !errors.Is(err, errPatience) {
		t.Errorf("an opening without an end: %v", err)
	}
	if err := s.Ready(t.Context()); !errors.Is(err, errPatience) || tries != 1 {
		t.Errorf("within the pause: %v, %d tries", err, tries)
	}
	c.Advance(time.Second)
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestGivenUp: a caller whose context ends while it opens the store is told so, and
// has shown nothing about the store: the next one tries at once.
func TestGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	s := New(Options{Name: "east", Pause: time.Hour, Open: func(ctx context.Context) (objectstore.Store, error) {
		if tries++; tries > 1 {
			return openDir(t), nil
		}
		cancel()
		return nil, ctx.Err()
	}})
	if err := s.Ready(ctx); !errors.Is(err, context.Canceled) || tries != 1 {
		t.Fatalf("%v after %d tries", err, tries)
	}
	if err := s.Ready(t.Context()); err != nil || tries != 2 {
		t.Errorf("the next caller: %v after %d tries", err, tries)
	}
}

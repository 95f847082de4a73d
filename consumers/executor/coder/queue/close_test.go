package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// begin does requests aside and notes how they ended, by name.
type begin struct {
	s    *served
	all  sync.WaitGroup
	mu   sync.Mutex
	ends map[string]error
}

func (b *begin) do(name string, r *Request) {
	b.all.Go(func() {
		err := b.s.q.Do(b.s.t.Context(), r)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ends[name] = err
	})
	synctest.Wait()
}

func (b *begin) expect(name string, want error) {
	b.s.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err, some := b.ends[name]; !some || !errors.Is(err, want) {
		b.s.t.Errorf("%s ended: %v, with %v, expected %v", name, some, err, want)
	}
}

// TestDrain: what was accepted comes to its end within the grace; what comes then is
// refused, but for the next segment of an object; background that waits is let go.
func TestDrain(t *testing.T) {
	o := Options{Grace: time.Second, CoreOptions: CoreOptions{Connections: 2, Background: 1}}
	serve(t, o, func(t *testing.T, s *served) {
		b := &begin{s: s, ends: map[string]error{}}
		background := func(store string) *Request {
			r := reading(1, sleeps(store, 100*time.Millisecond))
			r.Background = true
			return r
		}
		b.do("running background", background("r"))
		b.do("waiting background", background("s"))
		b.do("running", reading(1, sleeps("a", 100*time.Millisecond)))
		b.do("waiting", reading(1, sleeps("b", 100*time.Millisecond)))
		from := time.Now()
		var stopped sync.WaitGroup
		stopped.Go(s.stop)
		synctest.Wait()
		b.expect("waiting background", ErrClosed)
		b.do("late", reading(1, sleeps("c", 1)))
		b.expect("late", ErrClosed)
		next := reading(1, sleeps("d", 10*time.Millisecond))
		next.Keep = true
		b.do("next segment", next)
		kept := background("t")
		kept.Keep = true
		b.do("late background", kept)
		b.expect("late background", ErrClosed)
		stopped.Wait()
		b.all.Wait()
		for _, name := range []string{"running background", "running", "waiting", "next segment"} {
			b.expect(name, nil)
		}
		if took := time.Since(from); took != 200*time.Millisecond {
			t.Errorf("it drained in %v", took)
		}
		next = reading(1, sleeps("e", 1))
		next.Keep = true
		b.do("after", next)
		b.expect("after", ErrClosed)
	})
}

// TestGrace: what it is too short for is told to end, the rest of writes too, nothing is
// accepted after it, and Run returns when the last function has.
func TestGrace(t *testing.T) {
	o := Options{Grace: time.Second, CoreOptions: CoreOptions{Connections: 4}}
	serve(t, o, func(t *testing.T, s *served) {
		b := &begin{s: s, ends: map[string]error{}}
		rest := reading(1, sleeps("a", time.Millisecond), sleeps("b", time.Hour), sleeps("c", time.Hour))
		rest.Rest = Finish
		b.do("write", rest)
		b.do("read", reading(1, Task{Store: "d", Run: func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Minute)
			return fmt.Errorf("late: %w", context.Cause(ctx))
		}}))
		repair := reading(1, sleeps("e", time.Hour))
		repair.Background = true
		b.do("repair", repair)
		b.do("waiting", reading(1, sleeps("f", time.Second)))
		from := time.Now()
		var stopped sync.WaitGroup
		stopped.Go(s.stop)
		time.Sleep(30 * time.Second)
		next := reading(1, sleeps("g", time.Hour))
		next.Keep = true
		b.do("next segment", next)
		b.expect("next segment", ErrClosed)
		stopped.Wait()
		if took := time.Since(from); took != time.Second+time.Minute {
			t.Errorf("it stopped in %v", took)
		}
		b.all.Wait()
		b.expect("write", nil)
		for _, name := range []string{"read", "repair", "waiting"} {
			b.expect(name, ErrClosed)
		}
		if st := s.q.State(); st.Done != 1 || st.Cancelled != 4 || st.Dropped != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestBeforeRun: requests wait, and whoever gives up leaves.
func TestBeforeRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, err := New(Options{CoreOptions: CoreOptions{Chooser: Fixed{N: 1, K: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := q.Do(short, reading(1, sleeps("a", 1))); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		done := make(chan error, 2)
		go func() { done <- q.Do(t.Context(), reading(1, sleeps("b", 1))) }()
		synctest.Wait()
		if st := q.State(); st.Backlog != 1 || st.InUse != 0 {
			t.Errorf("%+v", st)
		}
		run, stop := context.WithCancel(t.Context())
		go func() { done <- q.Run(run) }()
		if err := <-done; err != nil {
			t.Error(err)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := q.Run(t.Context()); !errors.Is(err, ErrOptions) {
			t.Errorf("it ran twice: %v", err)
		}
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	one := Fixed{N: 1, K: 1}
	for _, o := range []Options{
		{},
		{Grace: -1, CoreOptions: CoreOptions{Chooser: one}},
		{CoreOptions: CoreOptions{Chooser: one, Connections: -1}},
		{CoreOptions: CoreOptions{Chooser: one, MaxWaiting: -1}},
		{CoreOptions: CoreOptions{Chooser: one, Background: -1}},
	} {
		if _, err := New(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, x := range [][3]int{{0, 0, 4}, {1, 0, 1}, {2, 0, 1}, {8, 3, 3}, {8, 20, 7}, {1, 5, 1}} {
		if got := NewCore(CoreOptions{Chooser: one, Connections: x[0], Background: x[1]}).o.Background; got != x[2] {
			t.Errorf("%d connections, background %d: %d, expected %d", x[0], x[1], got, x[2])
		}
	}
}

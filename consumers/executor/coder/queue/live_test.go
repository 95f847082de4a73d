package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// served is a queue at work in a bubble of virtual time, with its records.
type served struct {
	t    *testing.T
	q    *Queue
	stop func()

	mu      sync.Mutex
	records []Record
}

// serve runs fn with a queue at work, and stops it after.
func serve(t *testing.T, o Options, fn func(t *testing.T, s *served)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServed(t, o)
		fn(t, s)
		s.stop()
	})
}

func newServed(t *testing.T, o Options) *served {
	t.Helper()
	s := &served{t: t}
	o.Observe = func(r Record) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.records = append(s.records, r)
	}
	if o.Chooser == nil {
		o.Chooser = Fixed{N: 1, K: 1}
	}
	q, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.q = q
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	s.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		done <- nil
		if st := q.State(); st.InUse+st.Backlog+st.BackgroundBacklog+st.Queued+st.Alive != 0 {
			t.Errorf("left when Run returned: %+v", st)
		}
	}
	return s
}

// took are the records as "store outcome after", in the order of their ends.
func (s *served) took() (out []string) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		out = append(out, fmt.Sprintf("%s %s %v", r.Store, r.Outcome, r.Took))
	}
	return out
}

// record is the i-th of them; −1 is the last.
func (s *served) record(i int) Record {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if i < 0 {
		i += len(s.records)
	}
	return s.records[i]
}

// sleeps is a task that takes so long, unless it is told to end.
func sleeps(store string, d time.Duration) Task {
	return Task{Store: store, Bytes: 10, Run: func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}}
}

// fails is one that fails after so long.
func fails(store string, d time.Duration) Task {
	t := sleeps(store, d)
	run := t.Run
	t.Run = func(ctx context.Context) error {
		if err := run(ctx); err != nil {
			return err
		}
		return fmt.Errorf("store %s: %w", store, errTest)
	}
	return t
}

// reading is a request of these tasks, of which so many are needed.
func reading(need int, tasks ...Task) *Request {
	return &Request{Plan: func(Code) Plan { return Plan{Tasks: tasks, Need: need} }}
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, expected %q", what, got, want)
	}
}

// TestAnswersAtTheKthSuccess, after which those that run are told to end: their records
// say that they would have lasted at least as long.
func TestAnswersAtTheKthSuccess(t *testing.T) {
	serve(t, Options{CoreOptions: CoreOptions{Connections: 3}}, func(t *testing.T, s *served) {
		ended := false
		r := reading(2, sleeps("a", 30*time.Millisecond), sleeps("b", 10*time.Millisecond), sleeps("c", 20*time.Millisecond), sleeps("d", 50*time.Millisecond), sleeps("e", time.Second))
		r.Op, r.Ended = Write, func() { ended = true }
		from := time.Now()
		if err := s.q.Do(t.Context(), r); err != nil {
			t.Error(err)
		}
		if took := time.Since(from); took != 20*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		synctest.Wait()
		if !ended {
			t.Error("a request has not ended of which nothing is left")
		}
		expect(t, "records", sorted(s.took()), "a cancelled 20ms", "b done 10ms", "c done 20ms", "d cancelled 10ms")
		x := s.record(0)
		if x.Op != Write || x.N != 5 || x.K != 2 || x.Bytes != 10 || x.Wait != 0 || !x.Started.Equal(from) || x.Background {
			t.Errorf("record %+v", x)
		}
		if st := s.q.State(); st.Dropped != 1 || st.Cancelled != 2 || st.Done != 2 {
			t.Errorf("state %+v", st)
		}
	})
}

func sorted(s []string) []string { slices.Sort(s); return s }

// TestAConnectionIsHeldUntilItsTaskReturns: one that is slow to end when told to, and
// ends well after all, is done, and its connection was in use all the time.
func TestAConnectionIsHeldUntilItsTaskReturns(t *testing.T) {
	serve(t, Options{CoreOptions: CoreOptions{Connections: 2}}, func(t *testing.T, s *served) {
		deaf := func(store string, err error) Task {
			return Task{Store: store, Run: func(context.Context) error { time.Sleep(100 * time.Millisecond); return err }}
		}
		if err := s.q.Do(t.Context(), reading(1, deaf("a", errTest), sleeps("b", 10*time.Millisecond))); err != nil {
			t.Error(err)
		}
		if err := s.q.Do(t.Context(), reading(2, sleeps("c", time.Millisecond), deaf("d", nil))); err != nil {
			t.Error(err)
		}
		expect(t, "records", s.took(), "b done 10ms", "c done 1ms", "a cancelled 10ms", "d done 100ms")
		if held := s.record(2).Held; held != 100*time.Millisecond {
			t.Errorf("held for %v", held)
		}
	})
}

// TestHedge: the chunks needed first, the others after the delay, or when one fails.
func TestHedge(t *testing.T) {
	o := Options{CoreOptions: CoreOptions{Connections: 8, Chooser: Fixed{N: 3, K: 1, Hedge: 20 * time.Millisecond}}}
	serve(t, o, func(t *testing.T, s *served) {
		for name, tc := range map[string]struct {
			tasks []Task
			took  time.Duration
			ran   int
		}{
			"in time":  {[]Task{sleeps("a", 15*time.Millisecond), sleeps("b", 1), sleeps("c", 1)}, 15 * time.Millisecond, 1},
			"too slow": {[]Task{sleeps("a", time.Second), sleeps("b", 10*time.Millisecond), sleeps("c", 15*time.Millisecond)}, 30 * time.Millisecond, 3},
			"failed":   {[]Task{fails("a", 5*time.Millisecond), sleeps("b", 10*time.Millisecond), sleeps("c", 1)}, 15 * time.Millisecond, 2},
		} {
			from, before := time.Now(), len(s.took())
			if err := s.q.Do(t.Context(), reading(1, tc.tasks...)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			took := time.Since(from)
			synctest.Wait()
			if ran := len(s.took()) - before; took != tc.took || ran != tc.ran {
				t.Errorf("%s: %v and %d tasks, expected %v and %d", name, took, ran, tc.took, tc.ran)
			}
		}
		if st := s.q.State(); st.Hedged != 1 {
			t.Errorf("state %+v", st)
		}
	})
}

// TestHedgeCountsFromTheAdmission, not from the arrival.
func TestHedgeCountsFromTheAdmission(t *testing.T) {
	o := Options{CoreOptions: CoreOptions{Connections: 1, Chooser: Fixed{N: 2, K: 1, Hedge: 20 * time.Millisecond}}}
	serve(t, o, func(t *testing.T, s *served) {
		var both sync.WaitGroup
		both.Go(func() {
			if err := s.q.Do(t.Context(), reading(1, sleeps("a", 100*time.Millisecond))); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		both.Go(func() {
			if err := s.q.Do(t.Context(), reading(1, sleeps("b", 15*time.Millisecond), sleeps("c", 1))); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		expect(t, "records", s.took(), "a done 100ms", "b done 15ms")
		if s.record(1).Wait != 100*time.Millisecond {
			t.Errorf("it waited %v", s.record(1).Wait)
		}
	})
}

// TestHedgeCountsFromTheLastOfTheFirst: one that waits for a connection is not slow, and
// another that waits behind it would not help.
func TestHedgeCountsFromTheLastOfTheFirst(t *testing.T) {
	o := Options{CoreOptions: CoreOptions{Connections: 1, Chooser: Fixed{N: 3, K: 2, Hedge: 20 * time.Millisecond}}}
	serve(t, o, func(t *testing.T, s *served) {
		from := time.Now()
		err := s.q.Do(t.Context(), reading(2, sleeps("a", 15*time.Millisecond), sleeps("b", 15*time.Millisecond), sleeps("c", 1)))
		if err != nil || time.Since(from) != 30*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(from), err)
		}
		if st := s.q.State(); st.Hedged != 0 || st.Dropped != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// TestFailures: replaced as long as there are others, else all errors together.
func TestFailures(t *testing.T) {
	serve(t, Options{CoreOptions: CoreOptions{Connections: 4}}, func(t *testing.T, s *served) {
		left := 2
		r := reading(2, fails("a", time.Millisecond), fails("b", 5*time.Millisecond))
		r.More = func() (Task, bool) { left--; return sleeps(fmt.Sprint("m", left), time.Millisecond), left >= 0 }
		if err := s.q.Do(t.Context(), r); err != nil {
			t.Error(err)
		}
		expect(t, "records", s.took(), "a failed 1ms", "m1 done 1ms", "b failed 5ms", "m0 done 1ms")
		err := s.q.Do(t.Context(), reading(2, fails("x", 2*time.Millisecond), fails("y", time.Millisecond), sleeps("z", time.Second)))
		if !errors.Is(err, ErrTooFew) || !errors.Is(err, errTest) {
			t.Errorf("%v", err)
		}
		if want := "0 chunks of 2 needed: too few chunks: store y: broken\nstore x: broken"; err.Error() != want {
			t.Errorf("%q, expected %q", err, want)
		}
		plan := &Request{Plan: func(Code) Plan { return Plan{Err: errTest} }}
		if err := s.q.Do(t.Context(), plan); !errors.Is(err, errTest) || errors.Is(err, ErrTooFew) {
			t.Errorf("a plan that fails: %v", err)
		}
	})
}

// TestFinish: the answer comes at the k-th success, the rest comes to its end, whether
// the caller's context lives or not, and Ended tells when.
func TestFinish(t *testing.T) {
	serve(t, Options{CoreOptions: CoreOptions{Connections: 4}}, func(t *testing.T, s *served) {
		ended := make(chan time.Time, 1)
		r := reading(1, sleeps("a", 10*time.Millisecond), sleeps("b", 40*time.Millisecond), fails("c", 20*time.Millisecond))
		r.Op, r.Rest, r.Ended = Write, Finish, func() { ended <- time.Now() }
		ctx, cancel := context.WithCancel(t.Context())
		from := time.Now()
		if err := s.q.Do(ctx, r); err != nil || time.Since(from) != 10*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(from), err)
		}
		cancel()
		if at := <-ended; at.Sub(from) != 40*time.Millisecond {
			t.Errorf("it ended after %v", at.Sub(from))
		}
		expect(t, "records", s.took(), "a done 10ms", "c failed 20ms", "b done 40ms")
	})
}

// TestValuesReachTheTasks, and the caller's deadline ends them as a whole.
func TestValuesReachTheTasks(t *testing.T) {
	type key struct{}
	serve(t, Options{}, func(t *testing.T, s *served) {
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, 7), time.Second)
		defer cancel()
		var saw any
		r := reading(1, Task{Run: func(ctx context.Context) error {
			saw = ctx.Value(key{})
			<-ctx.Done()
			return context.Cause(ctx)
		}})
		if err := s.q.Do(ctx, r); !errors.Is(err, context.DeadlineExceeded) || saw != 7 {
			t.Errorf("%v, %v", err, saw)
		}
		synctest.Wait()
		if st := s.q.State(); st.InUse != 0 || st.Cancelled != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// TestGivingUpWhileWaiting takes the request out of the line, and the others move up.
func TestGivingUpWhileWaiting(t *testing.T) {
	serve(t, Options{CoreOptions: CoreOptions{Connections: 1, MaxWaiting: 1}}, func(t *testing.T, s *served) {
		var all sync.WaitGroup
		ended := map[string]int{}
		var mu sync.Mutex
		do := func(ctx context.Context, store string, want error) {
			all.Go(func() {
				r := reading(1, sleeps(store, 50*time.Millisecond))
				r.Ended = func() {
					mu.Lock()
					defer mu.Unlock()
					ended[store]++
				}
				if err := s.q.Do(ctx, r); !errors.Is(err, want) {
					t.Errorf("%s: %v, expected %v", store, err, want)
				}
			})
			synctest.Wait()
		}
		why := errors.New("the client is gone")
		gone, cancel := context.WithCancelCause(t.Context())
		do(t.Context(), "a", nil)
		do(gone, "b", why)
		do(t.Context(), "c", ErrFull)
		do(t.Context(), "d", ErrFull)
		cancel(why)
		synctest.Wait()
		do(t.Context(), "e", nil)
		do(gone, "f", why) // and so does who comes when it is over already
		all.Wait()
		expect(t, "records", s.took(), "a done 50ms", "e done 50ms")
		if want := map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1}; !maps.Equal(ended, want) {
			t.Errorf("ended: %v, expected %v", ended, want)
		}
		if st := s.q.State(); st.Refused != 2 || st.Broken != 1 || st.Finished != 2 {
			t.Errorf("%+v", st)
		}
	})
}

// TestAnotherSegmentWaits where a new request is refused.
func TestAnotherSegmentWaits(t *testing.T) {
	serve(t, Options{CoreOptions: CoreOptions{Connections: 1, MaxWaiting: 1}}, func(t *testing.T, s *served) {
		var all sync.WaitGroup
		for i, keep := range []bool{false, false, true, true} {
			all.Go(func() {
				r := reading(1, sleeps(fmt.Sprint(i), time.Millisecond))
				r.Keep = keep
				if err := s.q.Do(t.Context(), r); err != nil {
					t.Errorf("%d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		expect(t, "records", s.took(), "0 done 1ms", "1 done 1ms", "2 done 1ms", "3 done 1ms")
	})
}

// TestBackground runs on what would be idle: a client's request begins at once, and
// background goes on when none is there.
func TestBackground(t *testing.T) {
	serve(t, Options{CoreOptions: CoreOptions{Connections: 3, Background: 2}}, func(t *testing.T, s *served) {
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				r := reading(1, sleeps(fmt.Sprint("r", i), 10*time.Millisecond))
				r.Background = true
				if err := s.q.Do(t.Context(), r); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		if st := s.q.State(); st.BackgroundInUse != 2 || st.BackgroundBacklog != 1 || st.Backlog != 0 {
			t.Errorf("%+v", st)
		}
		from := time.Now()
		if err := s.q.Do(t.Context(), reading(1, sleeps("a", 5*time.Millisecond))); err != nil || time.Since(from) != 5*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(from), err)
		}
		all.Wait()
		if took := time.Since(from); took != 20*time.Millisecond {
			t.Errorf("background took %v", took)
		}
		if r := s.record(-1); !r.Background || r.Store != "r2" || r.Wait != 10*time.Millisecond {
			t.Errorf("record %+v", r)
		}
	})
}

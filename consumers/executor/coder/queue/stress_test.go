package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestManyAtOnce: clients that give up at any moment, tasks that fail, hedges and
// replacements, background among them, and an end in the middle of it. Whoever was
// accepted has one end, its Ended was called once and never before all its functions had
// returned, and all tasks are accounted for.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		s := newServed(t, Options{
			Grace:       time.Millisecond,
			CoreOptions: CoreOptions{Connections: 5, MaxWaiting: 8, Chooser: Fixed{N: 4, K: 2, Hedge: 50 * time.Microsecond}},
		})
		var all sync.WaitGroup
		var accepted, refused, endings atomic.Int64
		const clients, each = 12, 150
		for client := range uint64(clients) {
			all.Go(func() {
				rng := rand.New(rand.NewPCG(seed, client))
				for range each {
					switch err := one(t, s.q, rng, &endings); {
					case errors.Is(err, ErrFull):
						refused.Add(1)
					case !errors.Is(err, ErrClosed):
						accepted.Add(1)
					}
				}
			})
		}
		if seed == 2 {
			s.stop() // those that come later are refused
		}
		all.Wait()
		s.stop()
		st := s.q.State()
		if st.Arrived != st.Finished+st.Broken || st.Refused != uint64(refused.Load()) || endings.Load() != clients*each {
			t.Errorf("%d refused, %d endings: %+v", refused.Load(), endings.Load(), st)
		}
		if seed < 2 && (accepted.Load() < 100 || st.Done == 0 || st.Failed == 0 || st.Cancelled == 0 || st.Dropped == 0 || st.Hedged == 0 || st.Replaced == 0) {
			t.Errorf("not all of it happened: %+v", st)
		}
	}
}

// one is a request of chance.
func one(t *testing.T, q *Queue, rng *rand.Rand, endings *atomic.Int64) error {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if rng.IntN(4) == 0 {
		d := time.Duration(rng.IntN(300)) * time.Microsecond
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	var running atomic.Int32
	task := func() Task {
		d, bad := time.Duration(rng.IntN(200))*time.Microsecond, rng.IntN(4) == 0
		return Task{Run: func(ctx context.Context) error {
			running.Add(1)
			defer running.Add(-1)
			select {
			case <-time.After(d):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if bad {
				return errTest
			}
			return nil
		}}
	}
	tasks, others := make([]Task, 4), []Task{task(), task()}
	for i := range tasks {
		tasks[i] = task()
	}
	r := reading(2, tasks...)
	r.Background, r.Keep = rng.IntN(4) == 0, rng.IntN(4) == 0
	if rng.IntN(3) == 0 {
		r.Rest = Finish
	}
	r.More = func() (x Task, ok bool) {
		if ok = len(others) > 0; ok {
			x, others = others[0], others[1:]
		}
		return x, ok
	}
	r.Ended = func() {
		endings.Add(1)
		if n := running.Load(); n != 0 {
			t.Errorf("ended while %d of its tasks run", n)
		}
	}
	return q.Do(ctx, r)
}

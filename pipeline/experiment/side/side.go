// Package side runs pieces of an experiment side by side. What they come to is
// put together by their number, so that a result does not depend on how many run
// at once. It has no state; the first error in order is returned.
package side

import (
	"context"
	"runtime"
	"sync"
)

// Run runs n pieces of work, workers of them at once (0: one a processor). The first error in order is
// returned; work that has not begun by then is left.
func Run(ctx context.Context, workers, n int, work func(i int) error) error {
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	var (
		mu   sync.Mutex
		next int
		errs = make([]error, n)
		done sync.WaitGroup
		bad  bool
	)
	for range min(workers, n) {
		done.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				stop := bad || ctx.Err() != nil
				mu.Unlock()
				if i >= n || stop {
					return
				}
				if err := work(i); err != nil {
					mu.Lock()
					errs[i], bad = err, true
					mu.Unlock()
				}
			}
		})
	}
	done.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Counter tells of progress from any goroutine.
func Counter(tell func(done, all int), all int) func() {
	var mu sync.Mutex
	done := 0
	return func() {
		mu.Lock()
		defer mu.Unlock()
		done++
		if tell != nil {
			tell(done, all)
		}
	}
}

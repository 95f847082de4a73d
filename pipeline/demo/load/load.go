package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"penstock/infra/clock"
)

// Options of a run.
type Options struct {
	Clock clock.Clock
	Pace  Pace
	// Draw says what the next request is, and is called in the order of the plan by
	// the goroutine of Run: so all that is random is the same in each run. What it
	// returns carries the request out, in a goroutine of its own, and returns when it
	// is answered or has failed; ctx ends with the run's.
	Draw func(s Shot) func(ctx context.Context)
	// MaxInFlight is how many requests may be under way; those that fall due beyond
	// are not sent. 0 is no limit.
	MaxInFlight int64
	// MaxLag is how late a request may be sent. 0 is no limit.
	MaxLag time.Duration
}

// Shot is one request of the plan.
type Shot struct {
	Number uint64    // from 0
	Due    time.Time // when it was to be sent: latencies count from here
}

// Report is what the generator did.
type Report struct {
	Due     uint64        // requests that fell due
	Sent    uint64        // of them sent
	Crowded uint64        // of them not sent: too many were under way
	Late    uint64        // sent more than MaxLag after they were due
	MaxLag  time.Duration // of the request that was sent latest after it was due
}

// Run sends the requests of the plan and returns when all have returned, at the
// end of the plan or of the context. ErrLate, ErrCrowded; the context's end is no
// error.
func Run(ctx context.Context, o Options) (Report, error) {
	var r Report
	var underWay atomic.Int64
	var running sync.WaitGroup
	start := o.Clock.Now()
	for {
		at, ok := o.Pace.Next()
		if !ok {
			break
		}
		due := start.Add(at)
		if wait := due.Sub(o.Clock.Now()); wait > 0 && o.Clock.Sleep(ctx, wait) != nil || ctx.Err() != nil {
			break
		}
		shot := Shot{Number: r.Due, Due: due}
		r.Due++
		do := o.Draw(shot)
		if n := underWay.Add(1); o.MaxInFlight > 0 && n > o.MaxInFlight {
			underWay.Add(-1)
			r.Crowded++
			continue
		}
		lag := o.Clock.Now().Sub(due)
		r.MaxLag = max(r.MaxLag, lag)
		if o.MaxLag > 0 && lag > o.MaxLag {
			r.Late++
		}
		r.Sent++
		running.Go(func() {
			defer underWay.Add(-1)
			do(ctx)
		})
	}
	running.Wait()
	switch {
	case r.Crowded > 0:
		return r, fmt.Errorf("%d of %d requests were not sent: %w", r.Crowded, r.Due, ErrCrowded)
	case r.Late > 0:
		return r, fmt.Errorf("%d of %d requests, by up to %v: %w", r.Late, r.Due, r.MaxLag, ErrLate)
	}
	return r, nil
}

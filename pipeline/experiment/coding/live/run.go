package live

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/machine"
)

// The streams of random numbers of a seed, beside those of stores.
const (
	streamArrivals = 1 << 32
	streamObjects  = 1 << 33
)

// Run runs the sweep. The error wraps ErrOptions, ErrPromise or ErrVoid, of which the
// latter two come with a result, or says what failed.
func Run(ctx context.Context, o Options) (r *Result, err error) {
	o, err = o.complete()
	if err != nil {
		return nil, err
	}
	r = o.result()
	if err := o.simulate(ctx, r); err != nil {
		return nil, err
	}
	var arms []*arm
	defer func() {
		for _, a := range arms {
			err = errors.Join(err, a.stop())
		}
	}()
	objects := o.contents()
	for i, p := range policies {
		a, err := o.raise(ctx, i, p, objects)
		if err != nil {
			return nil, err
		}
		arms = append(arms, a)
	}
	for _, l := range o.Loads {
		if err := o.sweep(ctx, r, arms, l); err != nil {
			return nil, err
		}
	}
	for _, a := range arms {
		r.Wrong = append(r.Wrong, a.failures()...)
	}
	return r, r.judge()
}

// plan is instants of requests: a Poisson process of which it is known how many requests
// it has, before those that count and from then on. By chance alone the number of 1,000
// differs by 3 %, and near the capacity that is a quarter of the wait.
type plan []time.Duration

func newPlan(l Load, rate float64, rng *rand.Rand) *plan {
	var p plan
	from := 0.0
	for _, n := range []int{l.Warm, l.Requests} {
		gaps := make([]float64, n+1)
		sum := 0.0
		for i := range gaps {
			gaps[i] = rng.ExpFloat64()
			sum += gaps[i]
		}
		span := float64(n) / rate
		at := 0.0
		for _, g := range gaps[:n] {
			at += g / sum * span
			p = append(p, time.Duration((from+at)*float64(time.Second)))
		}
		from += span
	}
	return &p
}

// Next implements load.Pace.
func (p *plan) Next() (time.Duration, bool) {
	if len(*p) == 0 {
		return 0, false
	}
	at := (*p)[0]
	*p = (*p)[1:]
	return at, true
}

// sweep asks all coders at one load.
func (o *Options) sweep(ctx context.Context, r *Result, arms []*arm, l Load) error {
	o.Say("%d %% of what (1,1) carries: %.1f requests a second, %d of them", l.Percent, o.rate(l), l.Warm+l.Requests)
	m := machine.Start(ctx, o.Clock, nil)
	points := make([]*Point, len(arms))
	errs := make([]error, len(arms))
	var all sync.WaitGroup
	for i, a := range arms {
		all.Go(func() { points[i], errs[i] = a.load(ctx, l) })
	}
	all.Wait()
	r.Machine = append(r.Machine, m.End(fmt.Sprintf("%d %%", l.Percent)))
	if err := errors.Join(errors.Join(errs...), ctx.Err()); err != nil {
		return err
	}
	for _, p := range points {
		*r.point(p.Policy, p.Percent) = p.beside(r.point(p.Policy, p.Percent).Simulated)
		o.Say("  %-6s mean %.0f ms, p99 %.0f ms, %.1f answers a second", p.Policy, p.Mean, p.P99, p.Served)
	}
	return nil
}

// load asks one coder. All coders are asked for the same objects at the same instants.
func (a *arm) load(ctx context.Context, l Load) (*Point, error) {
	arrivals := rand.New(rand.NewPCG(a.o.Seed, streamArrivals+uint64(l.Percent)))
	objects := rand.New(rand.NewPCG(a.o.Seed, streamObjects+uint64(l.Percent)))
	var from, to time.Time
	gets := uint64(0)
	report, err := load.Run(ctx, load.Options{
		Clock: a.o.Clock, Pace: newPlan(l, a.o.rate(l), arrivals),
		Draw: func(s load.Shot) func(context.Context) {
			counts, number := s.Number >= uint64(l.Warm), objects.IntN(len(a.objects))
			if s.Number == uint64(l.Warm) {
				a.chooser.begin()
				from, gets = s.Due, a.store.Counts().Gets
			}
			to = s.Due
			return func(ctx context.Context) { a.note(s.Due, counts, a.read(ctx, number)) }
		},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.name, err)
	}
	p := &Point{Policy: a.name, Percent: l.Percent, PerSecond: a.o.rate(l), Latest: ms(report.MaxLag)}
	admitted, shares, chunks := a.chooser.end()
	p.K, p.Chunks = shares, chunks
	answers, refused := a.take()
	p.Requests, p.Refused = l.Requests, refused
	p.Asked = float64(a.store.Counts().Gets-gets) / max(1, admitted)
	p.measure(answers, from, to)
	return p, nil
}

// failures are reads that failed or came out wrong.
func (a *arm) failures() (out []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, err := range a.bad {
		out = append(out, a.name+": "+strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return out
}

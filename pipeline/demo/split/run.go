package split

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"penstock/infra/clock"
	"penstock/pipeline/demo/links"
	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/processes"
)

// show is a demonstration while it runs.
type show struct {
	*Demo
	sites  []links.Place
	slowAt int // the number of the site with the fault
	clock  clock.Clock
	plan   Plan
	worlds []*world
	meter  *meter
	spans  [][2]int        // marks at the beginning and end of faults
	during atomic.Int64    // the number of the fault that is on, from 1; 0: none
	loads  [][]load.Report // by world and site
}

// Run shows it, and returns what came of it, with ErrPromise if that is not what
// Penstock promises, and ErrVoid if it shows nothing.
func (d *Demo) Run(ctx context.Context) (r *Result, err error) {
	if err := d.complete(); err != nil {
		return nil, err
	}
	s := &show{Demo: d, sites: places, slowAt: d.siteNumber(), clock: clock.System()}
	s.meter = &meter{groups: s.used}
	if err := os.WriteFile(filepath.Join(d.Dir, marker), []byte(head+s.about()+"\n"), 0o644); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	d.Screen.Say("%s\nFiles: %s", s.about(), d.Dir)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.raise(ctx, cancel); err != nil {
		return nil, err
	}
	if err := s.run(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	return s.judge(ctx)
}

// raise builds the worlds and starts what runs in them; a process that ends by
// itself ends everything.
func (s *show) raise(ctx context.Context, cancel context.CancelCauseFunc) error {
	n := addressesOf(len(s.sites))
	// Where to look for ports must differ between runs on one machine.
	list, err := processes.Addresses(ctx, "127.0.0.1", n*len(s.Policies), rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	if err != nil {
		return err
	}
	for i, policy := range s.Policies {
		var at addresses
		at.fill(list[n*i:n*(i+1)], len(s.sites))
		w, err := s.build(policy, at)
		if err != nil {
			return err
		}
		s.worlds = append(s.worlds, w)
	}
	errs := make([]error, len(s.worlds))
	var starting sync.WaitGroup
	for i, w := range s.worlds {
		secrets := rand.New(rand.NewPCG(s.Seed, uint64(i)))
		starting.Go(func() { errs[i] = w.start(ctx, secrets) })
	}
	starting.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, w := range s.worlds {
		for _, g := range []context.Context{w.core.Failed(), w.edge.Failed()} {
			context.AfterFunc(g, func() { cancel(context.Cause(g)) })
		}
		w.seer = newObserver(w.client, names(), s.tell(w))
		var entries []string
		for i := range w.at.sites {
			entries = append(entries, w.at.sites[i].public)
		}
		w.people = newPeople(s.clock, s.Component, names(), entries)
	}
	return nil
}

// run lets people ask while faults come and go.
func (s *show) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watched := make([]error, len(s.worlds))
	s.plan = newPlan(s.clock.Now(), s.durations(), seeded(s.Seed))
	for i, w := range s.worlds {
		watching.Go(func() {
			if watched[i] = w.seer.run(ctx); watched[i] != nil {
				cancel()
			}
		})
	}
	watching.Go(func() { s.watch(ctx) })
	s.Screen.Say("%s  running: %d processes; requests until %s", s.since(s.plan.Start), len(s.worlds)*(2+1+len(s.sites)*6), s.since(s.plan.End))
	first := s.meter.set(s.clock.Now())
	var loading sync.WaitGroup
	loaded := make([]error, len(s.worlds)*len(s.sites))
	s.loads = make([][]load.Report, len(s.worlds))
	for i, w := range s.worlds {
		s.loads[i] = make([]load.Report, len(s.sites))
		for site := range s.sites {
			loading.Go(func() { s.loads[i][site], loaded[i*len(s.sites)+site] = s.load(ctx, w, site) })
		}
	}
	err := s.faults(ctx)
	loading.Wait()
	if err == nil {
		err = ctx.Err()
	}
	s.spans = append(s.spans, [2]int{first, s.meter.set(s.clock.Now())})
	if err == nil {
		err = s.lastWindows(ctx)
	}
	for _, e := range loaded {
		if e != nil && !errors.Is(e, load.ErrLate) && !errors.Is(e, load.ErrCrowded) {
			err = errors.Join(err, e)
		}
	}
	cancel()
	watching.Wait()
	return errors.Join(errors.Join(watched...), err)
}

// lastWindows waits until the last window that ended before the end of the plan has
// closed in all worlds, or for so long that it has been lost.
func (s *show) lastWindows(ctx context.Context) error {
	late := s.clock.Now().Add(2 * width)
	for _, w := range s.worlds {
		for {
			last := w.seer.latest()
			if last != nil && !last.end.Before(s.plan.End.Truncate(width)) || s.clock.Now().After(late) {
				break
			}
			if err := s.clock.Sleep(ctx, 100*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// load sends the requests of a site's people in a world: the same in each.
func (s *show) load(ctx context.Context, w *world, site int) (load.Report, error) {
	pace := load.Until(load.Poisson(s.Rate, rand.New(rand.NewPCG(s.Seed, uint64(1+site)))), s.plan.End.Sub(s.plan.Start))
	return load.Run(ctx, load.Options{
		Clock: s.clock, Pace: pace, Draw: w.people.draw(site, rand.New(rand.NewPCG(s.Seed, uint64(101+site)))),
		MaxInFlight: maxUnderWay, MaxLag: maxLag,
	})
}

// faults makes the replica slow and fast again, in all worlds.
func (s *show) faults(ctx context.Context) error {
	for i, f := range s.plan.Faults {
		if err := s.clock.Sleep(ctx, f.From.Sub(s.clock.Now())); err != nil {
			return err
		}
		if err := s.slow(ctx, s.Added); err != nil {
			return err
		}
		s.during.Store(int64(i + 1))
		s.Screen.Say("%s  fault %d of %d: %s at %s takes %v more", s.since(f.From), i+1, len(s.plan.Faults), s.Component, s.Site, s.Added)
		from := s.meter.set(s.clock.Now())
		if err := s.clock.Sleep(ctx, f.To.Sub(s.clock.Now())); err != nil {
			return err
		}
		if err := s.slow(ctx, 0); err != nil {
			return err
		}
		s.during.Store(0)
		s.spans = append(s.spans, [2]int{from, s.meter.set(s.clock.Now())})
		s.Screen.Say("%s  fault %d is over", s.since(f.To), i+1)
	}
	return nil
}

func (s *show) slow(ctx context.Context, d time.Duration) error {
	errs := make([]error, len(s.worlds))
	var all sync.WaitGroup
	for i, w := range s.worlds {
		all.Go(func() { errs[i] = w.slow(ctx, d) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// used is what the processes of all worlds have used of the processors.
func (s *show) used() (time.Duration, error) {
	var sum time.Duration
	for _, w := range s.worlds {
		used, err := w.used()
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// close ends all that still runs.
func (s *show) close() error {
	errs := make([]error, len(s.worlds))
	var all sync.WaitGroup
	for i, w := range s.worlds {
		all.Go(func() { errs[i] = w.close() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// about says what is shown.
func (s *show) about() string {
	often := "once"
	if s.Faults > 1 {
		often = fmt.Sprintf("%d times", s.Faults)
	}
	return fmt.Sprintf("Six services at each of %d sites with a round trip of %.0f ms between them; %g requests a second enter at each. %s at %s gets %v slower for %v, %s. Policies beside each other: %s. Seed %d.",
		len(s.sites), ms(s.roundTrip(s.sites[0], s.sites[1])), s.Rate, s.Component, s.Site, s.Added, s.Fault, often, strings.Join(s.Policies, ", "), s.Seed)
}

func (s *show) since(t time.Time) string {
	d := t.Sub(s.plan.Start).Round(time.Second)
	return fmt.Sprintf("%02d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

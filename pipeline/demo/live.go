package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/clock"
	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/screen"
	"penstock/pipeline/demo/stage"
	"penstock/pipeline/report"
)

// Live is the demonstration of placement under live traffic.
type Live struct {
	// Dir holds stores, configurations and logs, which stay there. What an earlier
	// demonstration left in it is removed.
	Dir string
	// Fast takes half a minute: narrower windows, fewer people, one journey.
	Fast bool
	// Seed draws people, friendships and what they do.
	Seed uint64
	// People defaults to 300, Rate to 150 requests a second of all of them, Window to
	// 5 s (with Fast: 150, 100, 3 s); Policy to optimal.
	People int
	Rate   float64
	Window time.Duration
	Policy string
	// Attach are the arguments before those of each process, which let it end with
	// this one.
	Attach []string
	Screen *screen.Screen
	Logger zerolog.Logger
}

const (
	// followed is the part of the crowd's notebooks that must have come for its data
	// to count as having followed: some belong to people with friends elsewhere.
	followed = 0.95
	// within is the most windows that it may take.
	within = 2
	// lostAfter is after how many windows data that hasn't come is waited for no
	// longer.
	lostAfter = 8
	// warm is the time before a phase whose requests are not looked at: connections
	// are made, and the last of the data comes.
	warm = time.Second
	// maxLag is how late a request may be sent: a busy machine may be late, and delays
	// count from when a request was due, but one that is later than this shows nothing.
	maxLag = 3 * time.Second
	// maxUnderWay is how many requests may be under way.
	maxUnderWay = 5000
)

// complete fills in what was left out.
func (l *Live) complete() error {
	people, rate, window := 300, 150.0, 5*time.Second
	if l.Fast {
		people, rate, window = 150, 100, 3*time.Second
	}
	l.People, l.Rate, l.Window = cmp.Or(l.People, people), cmp.Or(l.Rate, rate), cmp.Or(l.Window, window)
	l.Policy = cmp.Or(l.Policy, "optimal")
	l.Logger = quiet(l.Logger)
	if l.People < 10 || l.Rate <= 0 {
		return fmt.Errorf("%d people, %g requests a second, expected at least 10 people and more than 0: %w", l.People, l.Rate, ErrOptions)
	}
	dir, err := filepath.Abs(l.Dir)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	l.Dir = dir
	if err := stage.Clear(l.Dir, "penstock.yaml", settingsText); err != nil {
		if errors.Is(err, stage.ErrFolder) {
			err = fmt.Errorf("%w: %w", err, ErrOptions)
		}
		return err
	}
	return nil
}

// journey is where the crowd goes, one site after another.
func (l *Live) journey() []Site {
	if l.Fast {
		return []Site{1}
	}
	return []Site{1, 2}
}

// show is a demonstration while it runs.
type show struct {
	*backstage
	world  *World
	users  *users
	seer   *observer
	clock  clock.Clock
	start  time.Time
	trips  []Trip
	phases []phase
	ended  atomic.Bool // no more requests
	load   load.Report
}

// Run shows it, and returns what came of it, with ErrPromise if that is not what
// Penstock promises.
func (l *Live) Run(ctx context.Context) (r *Result, err error) {
	if err := l.complete(); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(l.Seed, 0))
	w := NewWorld(l.People, rng)
	l.Screen.Say("%d people read and write their own notebooks and their friends'; %d of them are the crowd, at %s. Files: %s", l.People, w.Crowd, w.Regions[0].Name, l.Dir)
	b, err := l.build(ctx, w, rng)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, g := range []context.Context{b.core.Failed(), b.edge.Failed()} {
		defer context.AfterFunc(g, func() { cancel(context.Cause(g)) })()
	}
	s := &show{backstage: b, world: w, clock: clock.System()}
	if err := b.start(ctx, w); err != nil {
		return nil, err
	}
	l.Screen.Say("running: a notes service and an entry point at each of %d sites, a redirector at %s, and the loop at %s", len(w.Regions), b.at.redirector, b.bus.URL())
	s.users = newUsers(w, s.clock, newActs(w, rng), b.mesh, &b.at)
	defer s.users.close()
	s.seer = newObserver(b.client, s.clock.Now)
	if err := s.run(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	return s.judge(ctx)
}

// run lets people act while the crowd makes its journey.
func (s *show) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var watchErr, loadErr error
	running.Go(func() { watchErr = s.seer.run(ctx); cancel() })
	if err := s.seer.await(ctx, func() bool { return len(s.seer.owners) == len(s.world.People) }); err != nil {
		return errors.Join(err, watchErr)
	}
	s.start = s.clock.Now()
	running.Go(func() { s.watch(ctx) })
	var done sync.WaitGroup
	done.Go(func() {
		pace := stoppable{load.Poisson(s.Rate, rand.New(rand.NewPCG(s.Seed, 1))), &s.ended}
		s.load, loadErr = load.Run(ctx, load.Options{Clock: s.clock, Pace: pace, Draw: s.users.draw, MaxInFlight: maxUnderWay, MaxLag: maxLag})
	})
	err := s.travel(ctx)
	s.ended.Store(true)
	done.Wait()
	if errors.Is(loadErr, load.ErrLate) || errors.Is(loadErr, load.ErrCrowded) {
		err = errors.Join(err, fmt.Errorf("this machine could not keep to the plan, so the run says nothing: %w", loadErr))
	}
	return err
}

// stoppable ends a plan when it is told to.
type stoppable struct {
	load.Pace
	ended *atomic.Bool
}

// Next is the pace's, until the end.
func (p stoppable) Next() (time.Duration, bool) {
	at, ok := p.Pace.Next()
	return at, ok && !p.ended.Load()
}

// phase is a time in which nothing changes, or in which data follows.
type phase struct {
	name     string
	from, to time.Time
}

// Trip is a journey of the crowd from one site to another.
type Trip struct {
	From, To string
	Left     time.Time
	Followed time.Time // when the data was there
	Windows  int       // closed since then, up to the one whose decision moved the last of it; the one in which the crowd left included
}

// travel takes the crowd from site to site, and waits for its data each time.
func (s *show) travel(ctx context.Context) error {
	calm := 3 * s.Window
	if s.Fast {
		calm = s.Window * 3 / 2
	}
	if err := s.clock.Sleep(ctx, warm); err != nil {
		return err
	}
	if err := s.stay(ctx, "before", s.clock.Now(), calm); err != nil {
		return err
	}
	crowd := s.crowd()
	at := s.users.where.crowd()
	for _, to := range s.journey() {
		t := Trip{From: s.world.Regions[at].Name, To: s.world.Regions[to].Name, Left: s.clock.Now()}
		s.users.where.moveTo(to)
		at = to
		s.Screen.Say("%s  the crowd leaves %s for %s; its notebooks are behind", s.since(t.Left), t.From, t.To)
		limit, cancel := context.WithTimeout(ctx, lostAfter*s.Window)
		err := s.seer.await(limit, func() bool { return s.seer.arrived(crowd, t.To) >= followed })
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			var decided time.Time
			t.Followed, decided = s.seer.arrival(crowd, t.To, followed)
			t.Windows = int(decided.Sub(t.Left.Truncate(s.Window)) / s.Window)
			s.Screen.Say("%s  %.0f %% of its notebooks are at %s, %.1f s and %s later", s.since(t.Followed), followed*100, t.To, t.Followed.Sub(t.Left).Seconds(), count(t.Windows, "window"))
		}
		s.trips = append(s.trips, t)
		behind := t.Followed
		if behind.IsZero() {
			behind = s.clock.Now()
		}
		s.phases = append(s.phases, phase{"just moved to " + t.To, t.Left, behind})
		if err := s.stay(ctx, "data followed to "+t.To, behind.Add(warm), calm); err != nil {
			return err
		}
	}
	return nil
}

// stay is a phase in which nothing changes.
func (s *show) stay(ctx context.Context, name string, from time.Time, d time.Duration) error {
	if err := s.clock.Sleep(ctx, from.Add(d).Sub(s.clock.Now())); err != nil {
		return err
	}
	s.phases = append(s.phases, phase{name, from, s.clock.Now()})
	return nil
}

// crowd are the owners in it.
func (s *show) crowd() (out []string) {
	for i := range s.world.People {
		if s.world.People[i].Crowd {
			out = append(out, s.world.People[i].Name)
		}
	}
	slices.Sort(out)
	return out
}

func (s *show) since(t time.Time) string {
	d := t.Sub(s.start).Round(time.Second)
	return fmt.Sprintf("%02d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// account waits until everything that was published is in windows, and reads the
// account.
func (s *show) account(ctx context.Context) (*report.Audit, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		a, err := report.NewAudit(ctx, s.client)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(a.Groups, func(g report.GroupAudit) bool { return g.Behind > 0 }) {
			return a, nil
		}
		if err := s.clock.Sleep(ctx, 200*time.Millisecond); err != nil {
			return a, nil // The audit says that something is behind.
		}
	}
}

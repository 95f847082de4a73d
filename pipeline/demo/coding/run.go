package coding

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"penstock/consumers/executor/coder/admin"
	"penstock/infra/clock"
	"penstock/pipeline/demo/coding/delayed"
	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/machine"
	"penstock/pipeline/demo/screen"
)

// show is a demonstration while it runs.
type show struct {
	*Demo
	clock  clock.Clock
	phases []Phase
	start  time.Time    // requests begin
	now    atomic.Int64 // the number of the phase that is on, from 1; 0: none yet
	world  *world
	loads  []load.Report // by arm
	usage  []machine.Usage

	mu   sync.Mutex
	seen [][]sight // by arm
}

// sight is how a coder and its store stood at an instant.
type sight struct {
	at     time.Duration // since requests began
	status admin.Status
	counts delayed.Counts
}

// Run shows it, and returns what came of it, with ErrPromise if that is not what Penstock
// promises, and ErrVoid if it shows nothing.
func (d *Demo) Run(ctx context.Context) (r *Result, err error) {
	if err := d.complete(); err != nil {
		return nil, err
	}
	s := &show{Demo: d, clock: clock.System(), seen: make([][]sight, len(policies)), loads: make([]load.Report, len(policies))}
	s.phases = d.timetable()
	if err := os.WriteFile(filepath.Join(d.Dir, marker), []byte(head+s.about()+"\n"), 0o644); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	d.Screen.Say("%s\nFiles: %s", s.about(), d.Dir)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if s.world, err = s.build(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.world.close()) }()
	if err = s.raise(ctx, cancel); err == nil {
		err = s.run(ctx)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	return s.judge(ctx)
}

// raise starts everything and fills the stores, which have no delays until then; a
// process that ends by itself ends everything.
func (s *show) raise(ctx context.Context, cancel context.CancelCauseFunc) error {
	w := s.world
	if err := w.start(ctx); err != nil {
		return err
	}
	for _, g := range []context.Context{w.core.Failed(), w.edge.Failed()} {
		context.AfterFunc(g, func() { cancel(context.Cause(g)) })
	}
	errs := make([]error, len(w.arms))
	var filling sync.WaitGroup
	for i, a := range w.arms {
		filling.Go(func() {
			if errs[i] = a.people.fill(ctx); errs[i] == nil {
				_, _, errs[i] = w.rest(ctx, a)
			}
		})
	}
	filling.Wait()
	w.seer.say = s.tell
	w.slow(s.delays(false))
	return errors.Join(errs...)
}

// run lets clients ask while loads come and go.
func (s *show) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	s.start = s.clock.Now()
	var watched error
	watching.Go(func() {
		if watched = s.world.seer.run(ctx); watched != nil {
			cancel()
		}
	})
	watching.Go(func() { s.look(ctx) })
	watching.Go(func() { s.watch(ctx) })
	s.Screen.Say("%s  running: %d processes; requests until %s", since(0), 1+len(s.world.arms), since(s.end()))
	var loading sync.WaitGroup
	loaded := make([]error, len(s.world.arms))
	for i, a := range s.world.arms {
		loading.Go(func() { s.loads[i], loaded[i] = s.load(ctx, a) })
	}
	err := s.course(ctx)
	loading.Wait()
	if err == nil {
		err = ctx.Err()
	}
	for _, e := range loaded {
		if e != nil && !errors.Is(e, load.ErrLate) && !errors.Is(e, load.ErrCrowded) {
			err = errors.Join(err, e)
		}
	}
	cancel()
	watching.Wait()
	return errors.Join(watched, err)
}

// load sends the requests of a coder's clients: the same to each.
func (s *show) load(ctx context.Context, a *arm) (load.Report, error) {
	return load.Run(ctx, load.Options{
		Clock: s.clock, Pace: s.instants(s.phases, rand.New(rand.NewPCG(s.Seed, 2))), Draw: a.people.draw(s.Writes, rand.New(rand.NewPCG(s.Seed, 3))),
		MaxInFlight: underWay, MaxLag: maxLag,
	})
}

// course goes through the phases.
func (s *show) course(ctx context.Context) error {
	for i := range s.phases {
		p := &s.phases[i]
		if p.Slower && !s.phases[max(0, i-1)].Slower {
			s.world.slow(s.delays(true))
			s.Screen.Say("%s  the stores take %.0f ms more for each request", since(p.from), s.Scale*slower)
		}
		s.now.Store(int64(i + 1))
		s.Screen.Say("%s  %s: %.1f requests a second, %d %% of what (1,1) carries", since(p.from), p.Name, float64(p.Percent)/100*s.capacity(1, 1), p.Percent)
		m := machine.Start(ctx, s.clock, s.world.used)
		err := s.clock.Sleep(ctx, s.start.Add(p.to).Sub(s.clock.Now()))
		s.usage = append(s.usage, m.End(p.Name))
		if err != nil {
			return err
		}
	}
	return nil
}

// look notes how everything stands, twice a second.
func (s *show) look(ctx context.Context) {
	t := s.clock.NewTicker(500 * time.Millisecond)
	defer t.Stop()
	for {
		for i, a := range s.world.arms {
			status, err := a.desk.Status(ctx)
			if err != nil {
				continue // It is seen the next time; who ends by itself is noticed elsewhere.
			}
			x := sight{s.clock.Now().Sub(s.start), status, a.store.Counts()}
			s.mu.Lock()
			s.seen[i] = append(s.seen[i], x)
			s.mu.Unlock()
		}
		select {
		case <-t.C():
		case <-ctx.Done():
			return
		}
	}
}

// sights are those of an arm, in order.
func (s *show) sights(arm int) []sight {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[arm][:len(s.seen[arm]):len(s.seen[arm])]
}

// end is that of the last phase.
func (s *show) end() time.Duration { return s.phases[len(s.phases)-1].to }

// watch shows scenes until the context ends.
func (s *show) watch(ctx context.Context) {
	t := s.clock.NewTicker(500 * time.Millisecond)
	defer t.Stop()
	s.Screen.Watch(ctx, t, func() screen.Frame {
		c := s.scene()
		return screen.Frame{Picture: c.picture(), Line: c.line()}
	})
}

// about says what is shown.
func (s *show) about() string {
	read, _ := s.truth(false)
	return fmt.Sprintf("%d objects of %d kB behind three coders with %d connections each; a request to their stores takes %.0f + %.0f·MB ms and exponentially %.0f + %.0f·MB ms. (1,1) carries %.1f reads a second, (12,6) %.1f. %.0f %% of requests write. Side by side: tofec by the decider's tables, (1,1) and (12,6). Seed %d.",
		objects, objectBytes/1000, connections, read.Delta, read.DeltaPerMB, read.Psi, read.PsiPerMB, s.capacity(1, 1), s.capacity(12, 6), 100*s.Writes, s.Seed)
}

func since(d time.Duration) string {
	d = d.Round(time.Second)
	return fmt.Sprintf("%02d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

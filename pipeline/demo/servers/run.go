package servers

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
	"penstock/pipeline/demo/load"
	"penstock/pipeline/demo/machine"
	"penstock/pipeline/demo/screen"
	"penstock/schemas/control"
)

// show is a demonstration while it runs.
type show struct {
	*Demo
	clock  clock.Clock
	phases []Phase
	start  time.Time // requests begin
	begun  [2]time.Duration
	world  *world
	loads  [2]load.Report // by site
	usage  []machine.Usage
	fault  atomic.Pointer[string] // what is wrong at the moment, in words
	faults []Fault

	mu    sync.Mutex
	looks []*look
}

// Fault is something that was done to a server of each site.
type Fault struct {
	What   string  `json:"what"` // slow or killed
	Server int     `json:"server"`
	From   float64 `json:"from_s"` // since requests began
	To     float64 `json:"to_s,omitempty"`
}

// Run shows it, and returns what came of it, with ErrPromise if that is not what Penstock
// promises, and ErrVoid if it shows nothing.
func (d *Demo) Run(ctx context.Context) (r *Result, err error) {
	if err := d.complete(); err != nil {
		return nil, err
	}
	s := &show{Demo: d, clock: clock.System(), phases: day(d.Day)}
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

// raise starts everything, until the first servers are on; a process that ends by itself
// ends everything, but for those of servers.
func (s *show) raise(ctx context.Context, cancel context.CancelCauseFunc) error {
	w := s.world
	if err := w.start(ctx); err != nil {
		return err
	}
	for _, g := range []context.Context{w.core.Failed(), w.edge.Failed()} {
		context.AfterFunc(g, func() { cancel(context.Cause(g)) })
	}
	return w.settled(ctx)
}

// run lets clients ask while the day goes by.
func (s *show) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	s.start = s.clock.Now()
	s.begun = s.ran(s.start)
	s.world.seer.say = s.tell
	var watched error
	watching.Go(func() {
		if watched = s.world.seer.run(ctx); watched != nil {
			cancel()
		}
	})
	watching.Go(func() { s.lookOn(ctx) })
	watching.Go(func() { s.watch(ctx) })
	s.Screen.Say("%s  running: %d processes and the servers; requests until %s", since(0), 2+2*points, since(s.Day))
	var loading sync.WaitGroup
	loaded := make([]error, 2)
	for i := range s.world.people {
		loading.Go(func() { s.loads[i], loaded[i] = s.load(ctx, i) })
	}
	loading.Go(func() { s.breaks(ctx) })
	err := s.day(ctx)
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

// load sends the requests of a site's clients: the same to both.
func (s *show) load(ctx context.Context, site int) (load.Report, error) {
	return load.Run(ctx, load.Options{
		Clock: s.clock, Pace: course(s.phases, s.Rate, rand.New(rand.NewPCG(s.Seed, 2))), Draw: s.world.people[site].draw(rand.New(rand.NewPCG(s.Seed, 3))),
		MaxInFlight: maxUnderWay, MaxLag: maxLag,
	})
}

// day goes through the phases.
func (s *show) day(ctx context.Context) error {
	for i := range s.phases {
		p := &s.phases[i]
		s.Screen.Say("%s  %s: from %.0f to %.0f requests a second at each site", since(p.from), p.Name, p.From*s.Rate, p.To*s.Rate)
		m := machine.Start(ctx, s.clock, s.world.used)
		err := s.until(ctx, p.to)
		s.usage = append(s.usage, m.End(p.Name))
		if err != nil {
			return err
		}
	}
	return nil
}

// ran is how long the machines of each site have been on, all together.
func (s *show) ran(now time.Time) (out [2]time.Duration) {
	for i, r := range s.world.rooms {
		for _, m := range r.rack {
			out[i] += m.ran(now)
		}
	}
	return out
}

// lookOn looks at everything twice a second.
func (s *show) lookOn(ctx context.Context) {
	t := s.clock.NewTicker(500 * time.Millisecond)
	defer t.Stop()
	for {
		// Who ends by itself is noticed elsewhere; what can't be seen now is seen later.
		if l, err := s.world.look(ctx); err == nil {
			s.note(l, s.clock.Now().Sub(s.start))
		}
		select {
		case <-t.C():
		case <-ctx.Done():
			return
		}
	}
}

// note keeps a look.
func (s *show) note(l *look, at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.at = at
	if n := len(s.looks); n > 0 {
		last := s.looks[n-1]
		l.seconds = last.seconds
		for i := range last.servers {
			if last.servers[i].on() {
				l.seconds += (at - last.at).Seconds()
			}
			l.servers[i].follow(&last.servers[i])
		}
	}
	s.looks = append(s.looks, l)
}

// seen are all looks so far.
func (s *show) seen() []*look {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks[:len(s.looks):len(s.looks)]
}

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
	return fmt.Sprintf("%d servers of %d workers behind %d entry points, by Penstock (%s, servers on and off), and as many with all servers on and least connections. A day of load takes %v: %.0f requests a second at night, %.0f by day, %.0f in a flash crowd, at each site. A server costs %.0f a second. Seed %d.",
		len(slowness), workers, points, s.Policy, s.Day, night*s.Rate, s.Rate, crowd*s.Rate, cost, s.Seed)
}

// tell says what a table changes.
func (s *show) tell(c *control.Command, before []string) {
	if c.Servers == nil {
		return
	}
	text := ""
	on, off := changes(before, c.Servers.On)
	for _, name := range on {
		text += ", on: " + s.label(name)
	}
	for _, name := range off {
		text += ", off: " + s.label(name)
	}
	if text != "" {
		s.Screen.Say("%s  table %d%s; %s", since(s.clock.Now().Sub(s.start)), c.Epoch, text, reasonText(&c.Reason))
	}
}

// label is the number of a server.
func (s *show) label(name string) string {
	for i, x := range s.world.at.sites[0].servers {
		if x == name {
			return fmt.Sprint(i + 1)
		}
	}
	return name
}

// reasonText is a reason in words.
func reasonText(r *control.Reason) string {
	if r.Text == "" {
		return r.Code
	}
	return r.Code + ": " + strings.TrimSpace(r.Text)
}

func since(d time.Duration) string {
	d = max(0, d.Round(time.Second))
	return fmt.Sprintf("%02d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

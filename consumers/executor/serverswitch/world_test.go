package serverswitch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/infra/clock"
	"penstock/schemas/control"
)

const site1 = "east"

// generous bounds all waiting in tests.
const generous = 60 * time.Second

// machines are servers that can be turned on and off, and requests at them.
type machines struct {
	mu      sync.Mutex
	on      map[string]bool
	unready map[string]bool // they never get ready
	fail    map[string]int  // hooks of "on a", "off a" that are to fail; −1: all
	hang    map[string]chan struct{}
	running map[string]int // requests
	told    []string       // hooks that ended well: "on a", "off a"
	calls   []string       // all hooks that were called, with their keys
	wrong   []string       // what must never be
	blind   bool           // Observe can't tell
	epochs  map[string]uint64
	called  chan string // each call, if somebody listens
}

func newMachines(on ...string) *machines {
	m := &machines{
		on: map[string]bool{}, unready: map[string]bool{}, fail: map[string]int{}, hang: map[string]chan struct{}{}, running: map[string]int{},
		epochs: map[string]uint64{}, called: make(chan string, 1000),
	}
	for _, name := range on {
		m.on[name] = true
	}
	return m
}

func (m *machines) Name() string { return "machines" }

func (m *machines) Switch(ctx context.Context, o Order) error {
	what := "off " + o.Server.Name
	if o.On {
		what = "on " + o.Server.Name
	}
	m.mu.Lock()
	m.calls = append(m.calls, what+" "+o.Key)
	m.epochs[what] = o.Epoch
	hang := m.hang[what]
	m.mu.Unlock()
	m.called <- what
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.fail[what]; n != 0 {
		m.fail[what] = max(n-1, -1)
		return errors.New("the machine says no")
	}
	m.on[o.Server.Name] = o.On
	m.told = append(m.told, what)
	if !o.On {
		m.stopped(o.Server.Name)
	}
	return nil
}

// stopped sees that what was stopped was allowed to be.
func (m *machines) stopped(name string) {
	if m.running[name] > 0 {
		m.wrong = append(m.wrong, fmt.Sprintf("%s was stopped with %d requests", name, m.running[name]))
	}
	for _, on := range m.on {
		if on {
			return
		}
	}
	m.wrong = append(m.wrong, "all are off")
}

func (m *machines) Observe(_ context.Context, s Server) (Power, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.blind:
		return Unseen, nil
	case m.on[s.Name]:
		return PowerOn, nil
	}
	return PowerOff, nil
}

func (m *machines) ready(_ context.Context, s Server) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.on[s.Name] || m.unready[s.Name] {
		return errors.New("connection refused")
	}
	return nil
}

func (m *machines) drained(_, server string, _ uint64) (bool, string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.running[server]; n > 0 {
		return false, fmt.Sprintf("%d in service", n)
	}
	return true, ""
}

// edit changes what machines do.
func (m *machines) edit(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func (m *machines) hooks() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.told)
}

// world is a switch over machines.
type world struct {
	t      testing.TB
	m      *machines
	o      Options
	w      *Switch
	counts *counts
	past   []sent
	ctx    context.Context // of what tests wait for

	mu      sync.Mutex
	answers []string
	failed  map[uint64][]string
	reasons map[string]string
	stop    func() // ends Run
}

type sent struct {
	c  *control.Command
	at time.Time
}

type counts struct {
	mu     sync.Mutex
	all    map[string]int64
	missed chan struct{} // each failure to write the journal
}

func (c *counts) Count(k executor.Counter, reason string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[string(k)+" "+reason] += n
	if k == Unkept {
		select {
		case c.missed <- struct{}{}:
		default:
		}
	}
}

func (c *counts) of(what string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[what]
}

// open makes a switch of servers at the site; nothing runs yet. edit changes its options.
func open(t testing.TB, m *machines, servers string, edit func(o *Options)) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	t.Cleanup(cancel)
	g := &world{t: t, m: m, ctx: ctx, counts: &counts{all: map[string]int64{}, missed: make(chan struct{}, 1)}, failed: map[uint64][]string{}, reasons: map[string]string{}, stop: func() {}}
	g.o = Options{
		Drain: generous, Drained: m.drained, Every: 2 * time.Millisecond, Folder: t.TempDir(), Grace: generous, Look: time.Millisecond, Metrics: g.counts,
		Pause: time.Millisecond, MostPause: 4 * time.Millisecond, Ready: m.ready, ReadyWithin: generous, Timeout: generous,
		History: func(_ context.Context, fn func(c *control.Command, at time.Time) error) error {
			for _, s := range g.past {
				if err := fn(s.c, s.at); err != nil {
					return err
				}
			}
			return nil
		},
	}
	for _, name := range strings.Fields(servers) {
		g.o.Servers = append(g.o.Servers, Server{Name: name, Site: site1, Backend: m, URL: "http://" + name})
	}
	if edit != nil {
		edit(&g.o)
	}
	g.begin()
	t.Cleanup(func() { g.end() })
	return g
}

// begin opens the switch; end closes it, after Run.
func (g *world) begin() {
	g.t.Helper()
	w, err := New(g.o)
	if err != nil {
		g.t.Fatal(err)
	}
	g.w = w
}

func (g *world) end() {
	g.t.Helper()
	g.stop()
	g.stop = func() {}
	_ = g.w.Close()
}

// run resumes and runs the switch until stop is called.
func (g *world) run() *world {
	g.t.Helper()
	if err := g.w.Resume(g.ctx, g.answer); err != nil {
		g.t.Fatal(err)
	}
	g.runOnly()
	return g
}

func (g *world) runOnly() {
	ctx, cancel := context.WithCancel(g.ctx)
	done := make(chan error, 1)
	w := g.w
	go func() { done <- w.Run(ctx) }()
	var once sync.Once
	g.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				g.t.Error(err)
			}
		})
	}
}

func (g *world) answer(_ context.Context, o control.Outcome) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	what := fmt.Sprint(o.Epoch, " ", o.Status)
	if len(o.Failed) > 0 {
		what += " " + strings.Join(o.Failed, ",")
	}
	g.answers = append(g.answers, what)
	g.reasons[fmt.Sprint(o.Epoch, " ", o.Status)] = o.Reason
	if o.Target != control.SwitchTarget {
		g.t.Errorf("answered %+v", o)
	}
	o.Version, o.Kind, o.By, o.At = 1, control.Servers, "test", time.Unix(0, 0)
	b, err := control.Encode(&o)
	if err == nil {
		_, err = control.DecodeOutcome(b)
	}
	if err != nil {
		g.t.Errorf("answered %+v: %v", o, err)
	}
	return nil
}

func (g *world) answered() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.answers)
}

// table makes a command: "a b/c" has a and b on and c off.
func table(epoch uint64, servers string) *control.Command {
	on, off, _ := strings.Cut(servers, "/")
	return &control.Command{
		Version: 1, Kind: control.Servers, Scope: site1, Epoch: epoch, Mode: control.Act, TTL: "1000h",
		Servers: &control.ServersTable{On: strings.Fields(on), Off: strings.Fields(off), ZoneWeights: map[string]float64{site1: 1}},
	}
}

// apply carries a table out to its end.
func (g *world) apply(epoch uint64, servers string) {
	g.t.Helper()
	if err := g.w.Apply(g.ctx, table(epoch, servers), g.answer); err != nil {
		g.t.Fatal(err)
	}
}

// send begins to carry a table out, and returns once it is the one that is wanted. Its
// error comes from the channel.
func (g *world) send(epoch uint64, servers string) <-chan error {
	g.t.Helper()
	done := make(chan error, 1)
	w := g.w
	go func() { done <- w.Apply(g.ctx, table(epoch, servers), g.answer) }()
	g.until("taken up", func(s *site) bool { return s.page.Epoch >= epoch })
	return done
}

// until waits until the site is as expected.
func (g *world) until(what string, is func(s *site) bool) {
	g.t.Helper()
	s := g.w.sites[site1]
	for {
		g.w.mu.Lock()
		ok, changed := is(s), s.changed
		g.w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-g.ctx.Done():
			g.t.Fatalf("never %s: %+v, hooks %v", what, g.w.State(), g.m.hooks())
		}
	}
}

// in waits until a server is in a phase.
func (g *world) in(name string, p Phase) {
	g.t.Helper()
	g.until(name+" "+string(p), func(s *site) bool { return s.unitOf(name).memo.Phase == p })
}

func (g *world) expect(what string, hooks, answers []string) {
	g.t.Helper()
	if got := g.m.hooks(); !slices.Equal(got, hooks) {
		g.t.Errorf("%s: hooks %q, expected %q", what, got, hooks)
	}
	if got := g.answered(); !slices.Equal(got, answers) {
		g.t.Errorf("%s: answers %q, expected %q", what, got, answers)
	}
	g.m.edit(func() {
		if len(g.m.wrong) > 0 {
			g.t.Errorf("%s: %q", what, g.m.wrong)
		}
	})
}

func wait1[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(generous):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// pass moves a clock that stands still until a condition holds: each time that somebody
// waits for it.
func (g *world) pass(c *clock.Manual, step time.Duration, what string, is func() bool) {
	g.t.Helper()
	for !is() {
		soon, cancel := context.WithTimeout(g.ctx, 20*time.Millisecond) // or nobody waits for it any more
		if c.Await(soon, 1) == nil {
			c.Advance(step)
		}
		cancel()
		if g.ctx.Err() != nil {
			g.t.Fatalf("never %s: %+v", what, g.w.State())
		}
	}
}

package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/infra/clock"
	"penstock/infra/shares"
	"penstock/schemas/control"
)

// scripted is a Target that notes what it is told, on top of Local, and can be
// made to fail.
type scripted struct {
	Target
	router *shares.Router
	told   []string
	fail   error // of Put and Clear
	lose   bool  // the next Put finds nothing in force, as after a restart
}

func (s *scripted) Put(ctx context.Context, t shares.Table) (int, error) {
	if s.fail != nil {
		s.told = append(s.told, fmt.Sprintf("put %d: %v", t.Epoch, s.fail))
		return 0, s.fail
	}
	if s.lose {
		_ = s.Target.Clear(ctx, t.From)
		s.lose = false
	}
	n, err := s.Target.Put(ctx, t)
	if n > 0 || err != nil {
		s.told = append(s.told, fmt.Sprintf("put %d", t.Epoch))
	}
	return n, err
}

func (s *scripted) Clear(ctx context.Context, from string) error {
	s.told = append(s.told, "clear")
	if s.fail != nil {
		return s.fail
	}
	return s.Target.Clear(ctx, from)
}

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type past []struct {
	c  *control.Command
	at time.Time
}

func (p past) history(_ context.Context, fn func(*control.Command, time.Time) error) error {
	for _, x := range p {
		if err := fn(x.c, x.at); err != nil {
			return err
		}
	}
	return nil
}

var link = shares.Link{From: "frontend", FromSite: "east", To: "search"}

// table is a table of one row for link, over sites called 0, 1 and so on.
func table(epoch uint64, parts ...float64) shares.Table {
	row := shares.Row{FromSite: link.FromSite, To: link.To}
	for i, s := range parts {
		row.Ratios = append(row.Ratios, shares.Ratio{Site: strconv.Itoa(i), Share: s})
	}
	return shares.Table{From: link.From, Epoch: epoch, Rows: []shares.Row{row}}
}

func order(epoch uint64, mode control.Mode, ttl string, parts ...float64) *control.Command {
	return &control.Command{
		Version: 1, Kind: control.Split, Scope: link.From, Epoch: epoch, Mode: mode, TTL: ttl,
		Split: &control.SplitTable{Table: table(epoch, parts...).Rows},
	}
}

// keeping is a keeper of a scripted target.
type keeping struct {
	t       *testing.T
	k       *Keeper
	target  *scripted
	clock   *clock.Manual
	answers []string
}

func keep(t *testing.T, p past, defaults ...shares.Table) *keeping {
	t.Helper()
	r := shares.New(shares.Options{Sites: []string{"0", "1", "2"}})
	g := &keeping{t: t, clock: clock.NewManual(began), target: &scripted{Target: Local(r), router: r}}
	k, err := NewKeeper(KeeperOptions{Target: g.target, Clock: g.clock, Defaults: defaults, History: p.history})
	if err != nil {
		t.Fatal(err)
	}
	g.k = k
	return g
}

func (g *keeping) answer(_ context.Context, o control.Outcome) error {
	if o.Scope != link.From || o.Status == control.Done && o.Target != "router" {
		g.t.Errorf("outcome %+v", o)
	}
	g.answers = append(g.answers, fmt.Sprintf("%d %s", o.Epoch, o.Status))
	return nil
}

func (g *keeping) apply(c *control.Command) error {
	g.t.Helper()
	return g.k.Apply(executor.WithSent(g.t.Context(), g.clock.Now()), c, g.answer)
}

// look is what Run does at each tick.
func (g *keeping) look() {
	for _, from := range g.k.known() {
		if err := g.k.look(g.t.Context(), from); err != nil && !errors.Is(err, executor.ErrAgain) {
			g.t.Errorf("a look ended with %v", err)
		}
	}
}

// expect compares what was told and answered since the last call.
func (g *keeping) expect(what string, told, answers []string) {
	g.t.Helper()
	if !slices.Equal(g.target.told, told) || !slices.Equal(g.answers, answers) {
		g.t.Errorf("%s: told %q, answered %q; want %q, %q", what, g.target.told, g.answers, told, answers)
	}
	g.target.told, g.answers = nil, nil
}

func (g *keeping) site(what, want string) {
	g.t.Helper()
	if c := g.target.router.Pick(link, "key"); c.Site != want {
		g.t.Errorf("%s: requests go to %+v, not %s", what, c, want)
	}
}

// TestKeeperEpochs: older refused, same answered, rejected not sent again while
// the last good one stays (P37).
func TestKeeperEpochs(t *testing.T) {
	t.Parallel()
	g := keep(t, nil)
	for _, step := range []struct {
		what          string
		c             *control.Command
		told, answers []string
		site          string
	}{
		{"new", order(5, control.Act, "10m", 0, 1), []string{"put 5"}, []string{"5 done"}, "1"},
		{"same", order(5, control.Act, "10m", 0, 1), nil, []string{"5 already-applied"}, "1"},
		{"older", order(4, control.Act, "10m", 1), nil, []string{"4 refused"}, "1"},
		{"bad", order(6, control.Act, "10m", 0, 0, 0, 1), nil, []string{"6 failed"}, "1"},
		{"bad again", order(6, control.Act, "10m", 0, 0, 0, 1), nil, []string{"6 failed"}, "1"},
		{"changed", order(7, control.Act, "10m", 1), []string{"put 7"}, []string{"7 done"}, "0"},
	} {
		if err := g.apply(step.c); err != nil {
			t.Fatal(step.what, err)
		}
		g.expect(step.what, step.told, step.answers)
		g.site(step.what, step.site)
	}
	g.target.fail = shares.ErrTable
	for range 3 {
		if err := g.apply(order(8, control.Act, "10m", 0, 1)); err != nil {
			t.Fatal(err)
		}
		g.target.fail = nil // it would take it now, but it isn't sent again
	}
	g.expect("rejected by the target", []string{"put 8: " + shares.ErrTable.Error()}, []string{"8 failed", "8 failed", "8 failed"})
	g.site("rejected by the target", "0")
	if s, has := g.k.State(link.From); !has || s.Table.Epoch != 7 || !s.Until.Equal(began.Add(10*time.Minute)) {
		t.Errorf("state %+v", s)
	}
}

// TestPlaceReadyWeight: no share rises where nothing is ready, and a share that
// falls waits for nothing.
func TestPlaceReadyWeight(t *testing.T) {
	t.Parallel()
	g := keep(t, nil)
	g.target.router.Up(shares.Replica{Component: link.To, Site: "1"}, false)
	for range 2 {
		if err := g.apply(order(1, control.Act, "10m", 0.5, 0.5)); !errors.Is(err, ErrNotReady) {
			t.Errorf("to a site that isn't ready: %v", err)
		}
	}
	g.expect("not ready", nil, nil)
	g.target.router.Up(shares.Replica{Component: link.To, Site: "1"}, true)
	if err := g.apply(order(1, control.Act, "10m", 0.5, 0.5)); err != nil {
		t.Fatal(err)
	}
	g.target.router.Up(shares.Replica{Component: link.To, Site: "1"}, false)
	if err := g.apply(order(2, control.Act, "10m", 0.9, 0.1)); err != nil {
		t.Errorf("away from a dead site: %v", err)
	}
	if err := g.apply(order(3, control.Act, "10m", 0.1, 0.9)); !errors.Is(err, ErrNotReady) {
		t.Errorf("to a dead site: %v", err)
	}
	g.expect("in order", []string{"put 1", "put 2"}, []string{"1 done", "2 done"})
}

// TestKeeperExpires: after the ttl, from the time the server stored the command,
// the default is in force.
func TestKeeperExpires(t *testing.T) {
	t.Parallel()
	for _, hasDefault := range []bool{true, false} {
		var defaults []shares.Table
		after, told := "east", "clear"
		if hasDefault {
			defaults, after, told = []shares.Table{table(0, 0, 0, 1)}, "2", "put 0"
		}
		g := keep(t, nil, defaults...)
		sent := executor.WithSent(t.Context(), began.Add(-4*time.Minute))
		if err := g.k.Apply(sent, order(1, control.Act, "5m", 0, 1), g.answer); err != nil {
			t.Fatal(err)
		}
		g.clock.Advance(59 * time.Second)
		g.look()
		g.expect("before", []string{"put 1"}, []string{"1 done"})
		g.clock.Advance(time.Second)
		g.target.fail = ErrUnreachable
		g.look()
		g.site("can't be told", "1")
		g.target.fail, g.target.told = nil, nil
		g.look()
		g.look()
		g.expect("after", []string{told}, nil)
		g.site("after", after)
		if err := g.apply(order(2, control.Act, "5m", 0, 1)); err != nil {
			t.Fatal(err)
		}
		g.site("another", "1")
	}
}

// TestKeeperPutsAgain what the target has lost, until it rejects it.
func TestKeeperPutsAgain(t *testing.T) {
	t.Parallel()
	g := keep(t, nil)
	if err := g.apply(order(1, control.Act, "10m", 0, 1)); err != nil {
		t.Fatal(err)
	}
	g.look()
	g.expect("nothing lost", []string{"put 1"}, []string{"1 done"})
	g.target.lose = true
	g.look()
	g.look()
	g.expect("lost", []string{"put 1"}, nil)
	g.target.fail = ErrUnreachable
	g.look()
	g.look()
	g.target.told, g.target.fail = nil, nil
	g.target.fail = shares.ErrAbsent
	g.look()
	g.look()
	g.expect("rejected", []string{"put 1: " + shares.ErrAbsent.Error()}, nil)
	if s, _ := g.k.State(link.From); !errors.Is(s.Lost, shares.ErrAbsent) {
		t.Errorf("state %+v", s)
	}
	g.target.fail = nil
	if err := g.apply(order(2, control.Act, "10m", 1)); err != nil {
		t.Fatal(err)
	}
	if s, _ := g.k.State(link.From); s.Lost != nil || s.Table.Epoch != 2 {
		t.Errorf("state %+v", s)
	}
}

// TestKeeperOptions that can't work.
func TestKeeperOptions(t *testing.T) {
	t.Parallel()
	r, h := Local(shares.New(shares.Options{})), past{}.history
	for name, o := range map[string]KeeperOptions{
		"no target":     {History: h},
		"no history":    {Target: r},
		"negative time": {Target: r, History: h, Every: -1},
		"an epoch":      {Target: r, History: h, Defaults: []shares.Table{table(1, 1)}},
		"two defaults":  {Target: r, History: h, Defaults: []shares.Table{table(0, 1), table(0, 1)}},
	} {
		if _, err := NewKeeper(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewKeeper(KeeperOptions{Target: r, History: h, Defaults: []shares.Table{table(0, 0)}}); !errors.Is(err, shares.ErrShares) {
		t.Errorf("a default of nothing: %v", err)
	}
}

// TestKeeperPassesProbesOn: what a command orders to be probed is probed, from the
// start on, and again when the target has lost it.
func TestKeeperPassesProbesOn(t *testing.T) {
	t.Parallel()
	c := order(1, control.Act, "10m", 1, 0)
	c.Split.Probes = []control.Probe{{FromSite: link.FromSite, To: link.To, Site: "1", Share: 1}}
	for name, p := range map[string]past{"new": nil, "from the bus": {{c, began}}} {
		g := keep(t, p)
		if err := g.k.Resume(t.Context(), g.answer); err != nil {
			t.Fatal(name, err)
		}
		if err := g.apply(c); err != nil {
			t.Fatal(name, err)
		}
		probed := func(what string) {
			t.Helper()
			if site, ok := g.target.router.Probe(link); !ok || site != "1" {
				t.Errorf("%s, %s: %q is probed", name, what, site)
			}
		}
		probed("put")
		others, _ := g.target.router.Table(link.From)
		others.Probes = nil
		if _, err := g.target.router.Put(t.Context(), others); err != nil {
			t.Fatal(name, err)
		}
		g.target.told = nil
		g.look()
		g.look()
		probed("lost")
		g.expect(name, []string{"put 1"}, []string{"1 done"})
	}
}

// TestLocalErrors: those of the router say to the executor what to do.
func TestLocalErrors(t *testing.T) {
	t.Parallel()
	r := shares.New(shares.Options{})
	l := Local(r)
	if _, err := l.Put(t.Context(), table(2, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Put(t.Context(), table(1, 1)); !errors.Is(err, executor.ErrOlder) || !errors.Is(err, shares.ErrOlder) || errors.Is(err, executor.ErrAgain) {
		t.Errorf("older: %v", err)
	}
	replica := shares.Replica{Component: link.To, Site: "0"}
	r.Up(replica, false)
	if err := l.Ready(t.Context(), replica); !errors.Is(err, ErrNotReady) || !errors.Is(err, shares.ErrNotReady) || !errors.Is(err, executor.ErrAgain) {
		t.Errorf("down: %v", err)
	}
}

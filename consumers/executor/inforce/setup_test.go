package inforce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor"
	"penstock/infra/clock"
	"penstock/infra/wholefile"
	"penstock/schemas/control"
)

var (
	began    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	errTable = errors.New("not a table of this test")
)

// one is what a process goes by: a table's first server that is on, "all" by default. A
// table without one can't be.
type one struct {
	mu   sync.Mutex
	held *Held[control.ServersTable]
}

func (x *one) Put(t *control.ServersTable, epoch uint64, until time.Time) error {
	if len(t.On) == 0 {
		return errTable
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.held = &Held[control.ServersTable]{Epoch: epoch, Until: until, Table: *t}
	return nil
}

func (x *one) Held() (h Held[control.ServersTable], some bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.held == nil {
		return h, false
	}
	return *x.held, true
}

func (x *one) Expire(now time.Time) bool {
	h, some := x.Held()
	if !some || h.Until.After(now) {
		return false
	}
	x.GiveWay()
	return true
}

func (x *one) GiveWay() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.held = nil
}

func (x *one) on() string {
	if h, some := x.Held(); some {
		return h.Table.On[0]
	}
	return "all"
}

// file is a list.
type file struct {
	wholefile.JSON[[]Held[control.ServersTable]]
}

func (f *file) Read() ([]Held[control.ServersTable], error) {
	all, _, err := f.JSON.Read()
	return all, err
}

var kind = Kind[control.ServersTable]{
	Kind: control.Servers, Scope: "site", ErrTable: errTable,
	Of:  func(c *control.Command) *control.ServersTable { return c.Servers },
	Log: func(*zerolog.Event, *control.ServersTable) {},
	File: func(name string) File[control.ServersTable] {
		return &file{wholefile.JSON[[]Held[control.ServersTable]]{Name: name}}
	},
}

// order is a command whose table has servers on.
func order(site string, epoch uint64, mode control.Mode, ttl string, on ...string) *control.Command {
	return &control.Command{
		Version: 1, Kind: control.Servers, Scope: site, Epoch: epoch, Mode: mode, TTL: ttl,
		Window: control.Window{Start: began.Add(-10 * time.Second), End: began}, Reason: control.Reason{Code: "NewTable"}, Servers: &control.ServersTable{On: on},
	}
}

// past is commands that the bus holds.
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

// counts is what executors count.
type counts struct {
	mu sync.Mutex
	n  map[string]int64
}

func (c *counts) Count(x executor.Counter, reason string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[string(x)+"/"+reason] += n
}

// steered is a target of two sites.
type steered struct {
	t       *testing.T
	target  *Target[control.ServersTable]
	clock   *clock.Manual
	counts  *counts
	of      map[string]*one
	answers []string
}

func steer(t *testing.T, p past, file string, c *clock.Manual) *steered {
	t.Helper()
	s := &steered{t: t, clock: c, counts: &counts{n: map[string]int64{}}, of: map[string]*one{"here": {}, "there": {}}}
	holders := map[string]Holder[control.ServersTable]{}
	for site, x := range s.of {
		holders[site] = x
	}
	var err error
	s.target, err = New(kind, holders, Options{Clock: c, File: file, History: p.history, Metrics: s.counts, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *steered) answer(_ context.Context, o control.Outcome) error {
	if o.Target != "test" {
		s.t.Errorf("outcome %+v", o)
	}
	s.answers = append(s.answers, strings.TrimSpace(fmt.Sprintf("%s %d %s %s", o.Scope, o.Epoch, o.Status, o.Reason)))
	return nil
}

func (s *steered) apply(c *control.Command, sent time.Time) {
	s.t.Helper()
	if err := s.target.Apply(executor.WithSent(s.t.Context(), sent), c, s.answer); err != nil {
		s.t.Errorf("%s %d: %v", c.Scope, c.Epoch, err)
	}
}

func (s *steered) resume() {
	s.t.Helper()
	if err := s.target.Resume(s.t.Context(), s.answer); err != nil {
		s.t.Fatal(err)
	}
}

// run lets the target run for one look.
func (s *steered) run() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.target.Run(ctx) }()
	if err := s.clock.Await(ctx, 1); err != nil {
		s.t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		s.t.Error(err)
	}
}

// expect compares what is on at the sites and the answers since the last call.
func (s *steered) expect(what, here, there string, answers ...string) {
	s.t.Helper()
	for site, want := range map[string]string{"here": here, "there": there} {
		if got := s.of[site].on(); got != want {
			s.t.Errorf("%s: on %s is %s, expected %s", what, site, got, want)
		}
	}
	if !slices.Equal(s.answers, answers) {
		s.t.Errorf("%s: answers %q, expected %q", what, s.answers, answers)
	}
	s.answers = nil
}

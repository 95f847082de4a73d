package codes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"penstock/consumers/executor"
	"penstock/consumers/executor/coder/queue"
	"penstock/infra/clock"
	"penstock/schemas/control"
)

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// order is a command with the table of one static code.
func order(coder string, epoch uint64, mode control.Mode, ttl string, n, k int) *control.Command {
	table := always(control.CodingStatic, n, k)
	return &control.Command{
		Version: 1, Kind: control.Coding, Scope: coder, Epoch: epoch, Mode: mode, TTL: ttl,
		Window: control.Window{Start: began.Add(-10 * time.Second), End: began}, Reason: control.Reason{Code: "NewTable"}, Coding: &table,
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

// steered is a target of two coders, whose defaults are (1,1).
type steered struct {
	t       *testing.T
	target  *Target
	clock   *clock.Manual
	counts  *counts
	of      map[string]*Chooser
	answers []string
}

func steer(t *testing.T, p past, file string, c *clock.Manual) *steered {
	t.Helper()
	s := &steered{t: t, clock: c, counts: &counts{n: map[string]int64{}}, of: map[string]*Chooser{}}
	for _, name := range []string{"objects", "safe"} {
		s.of[name] = chooser(t, always(control.CodingStatic, 1, 1), 0)
	}
	var err error
	s.target, err = NewTarget(TargetOptions{Choosers: s.of, Clock: c, File: file, History: p.history, Metrics: s.counts})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *steered) answer(_ context.Context, o control.Outcome) error {
	if o.Target != "coder" {
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

// expect compares the codes in force and the answers since the last call.
func (s *steered) expect(what string, objects, safe queue.Code, answers ...string) {
	s.t.Helper()
	for name, want := range map[string]queue.Code{"objects": objects, "safe": safe} {
		if got := s.of[name].Choose(queue.Read, 16); got != want {
			s.t.Errorf("%s: the code of %s is %+v, expected %+v", what, name, got, want)
		}
	}
	if !slices.Equal(s.answers, answers) {
		s.t.Errorf("%s: answers %q, expected %q", what, s.answers, answers)
	}
	s.answers = nil
}

func c(n, k int) queue.Code { return queue.Code{N: n, K: k} }

// TestTablesComeIntoForce by scope and epoch, and give way to the default.
func TestTablesComeIntoForce(t *testing.T) {
	t.Parallel()
	s := steer(t, nil, "", clock.NewManual(began))
	s.resume()
	s.expect("at the start", c(1, 1), c(1, 1))
	s.apply(order("objects", 5, control.Act, "10m", 4, 2), began.Add(-time.Minute))
	s.expect("a table", c(4, 2), c(1, 1), "objects 5 done")
	s.apply(order("objects", 5, control.Act, "10m", 3, 1), began)
	s.expect("the same epoch", c(4, 2), c(1, 1), "objects 5 already-applied")
	s.apply(order("objects", 4, control.Act, "10m", 3, 1), began)
	s.expect("an older one", c(4, 2), c(1, 1), "objects 4 refused older-epoch")
	s.apply(order("safe", 1, control.Act, "1h", 6, 4), began)
	s.expect("the other coder's", c(4, 2), c(6, 4), "safe 1 done")
	s.apply(order("elsewhere", 9, control.Act, "1h", 3, 1), began)
	s.expect("another process's", c(4, 2), c(6, 4), "elsewhere 9 advised not-concerned")
	empty := order("objects", 6, control.Act, "10m", 3, 1)
	empty.Coding = nil
	s.apply(empty, began)
	s.expect("none", c(4, 2), c(6, 4), `objects 6 failed "objects", epoch 6, has none: not a table of codes`)
	bad := order("objects", 7, control.Act, "10m", 3, 1)
	bad.Coding.Read.RMax = 0
	s.apply(bad, began)
	if len(s.answers) != 1 || !strings.HasPrefix(s.answers[0], "objects 7 failed") {
		s.t.Errorf("a table that can't be: %q", s.answers)
	}
	s.answers = nil
	for _, x := range []struct {
		coder string
		s     control.Status
	}{{"objects", control.Advised}, {"objects", control.Expired}, {"elsewhere", control.Advised}} {
		if err := s.target.Decline(t.Context(), order(x.coder, 8, control.Advise, "10m", 3, 1), x.s, s.answer); err != nil {
			t.Error(err)
		}
	}
	s.expect("declined", c(4, 2), c(6, 4), "objects 8 advised", "objects 8 expired", "elsewhere 8 advised not-concerned")
}

// TestTheTTLCountsFromTheServersTime, and what follows is the default, as Run sees to.
func TestTheTTLCountsFromTheServersTime(t *testing.T) {
	t.Parallel()
	s := steer(t, nil, "", clock.NewManual(began))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.target.Run(ctx) }()
	s.apply(order("objects", 5, control.Act, "10s", 4, 2), began.Add(-7*time.Second))
	s.apply(order("safe", 5, control.Act, "10s", 6, 4), began)
	if err := s.clock.Await(ctx, 1); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.clock.Advance(time.Second)
	}
	s.expect("before", c(4, 2), c(6, 4), "objects 5 done", "safe 5 done")
	s.clock.Advance(time.Second)
	for s.of["objects"].State().Epoch != 0 {
		if err := clock.System().Sleep(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	s.expect("after", c(1, 1), c(6, 4))
	// The epoch stays what it was: the decider sends another.
	s.apply(order("objects", 5, control.Act, "10m", 4, 2), began)
	s.expect("again", c(1, 1), c(6, 4), "objects 5 already-applied")
	s.apply(order("objects", 6, control.Act, "10m", 4, 2), began)
	s.expect("another", c(4, 2), c(6, 4), "objects 6 done")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s.counts.n["outcomes/ttl-over"] != 1 {
		t.Errorf("%v", s.counts.n)
	}
}

// TestResume takes up the last table of each coder that is to be acted on.
func TestResume(t *testing.T) {
	t.Parallel()
	at := began.Add(-time.Minute)
	good := order("objects", 5, control.Act, "10m", 4, 2)
	bad := order("objects", 6, control.Act, "10m", 3, 1)
	bad.Coding.Policy = "best"
	other := &control.Command{Kind: control.Split, Scope: "objects", Mode: control.Act}
	for name, tc := range map[string]struct {
		p    past
		want queue.Code
		then string // what the delivery of good is answered
	}{
		"nothing":          {nil, c(1, 1), "done"},
		"one":              {past{{good, at}}, c(4, 2), "done"},
		"the last":         {past{{order("objects", 4, control.Act, "10m", 3, 1), at}, {good, at}}, c(4, 2), "done"},
		"advice":           {past{{good, at}, {order("objects", 6, control.Advise, "10m", 3, 1), at}}, c(4, 2), "done"},
		"an old one":       {past{{good, at.Add(-time.Hour)}}, c(1, 1), "done"},
		"after an old one": {past{{good, at}, {order("objects", 6, control.Act, "10s", 3, 1), at}}, c(1, 1), "done"},
		"a later one":      {past{{good, at}, {order("objects", 6, control.Act, "10m", 3, 1), at}}, c(3, 1), "refused older-epoch"},
		"others'":          {past{{order("elsewhere", 7, control.Act, "10m", 3, 1), at}, {other, at}}, c(1, 1), "done"},
		"a bad one":        {past{{good, at}, {bad, at}}, c(1, 1), "done"},
	} {
		s := steer(t, tc.p, "", clock.NewManual(began))
		s.resume()
		s.expect(name, tc.want, c(1, 1))
		s.apply(good, began)
		after := c(4, 2)
		if tc.then != "done" {
			after = tc.want
		}
		s.expect(name+", delivered", after, c(1, 1), "objects 5 "+tc.then)
		if tc.then == "done" {
			s.apply(good, began)
			s.expect(name+", twice", after, c(1, 1), "objects 5 already-applied")
		}
	}
	failing := errors.New("the bus is away")
	target, err := NewTarget(TargetOptions{Choosers: map[string]*Chooser{"objects": chooser(t, always(control.CodingStatic, 1, 1), 0)}, History: func(context.Context, func(*control.Command, time.Time) error) error { return failing }})
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Resume(t.Context(), nil); !errors.Is(err, failing) {
		t.Errorf("%v", err)
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

// TestTheFileKeepsTables over a restart without a bus, until their ttl is over, and what
// the bus says comes before it.
func TestTheFileKeepsTables(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "coding.json")
	time0 := clock.NewManual(began)
	s := steer(t, nil, file, time0)
	if some, err := s.target.Restore(); some || err != nil {
		t.Errorf("no file: %v, %v", some, err)
	}
	s.apply(order("objects", 5, control.Act, "10m", 4, 2), began)
	s.apply(order("safe", 7, control.Act, "1m", 6, 4), began)
	s.run()
	time0.Advance(time.Minute)
	s = steer(t, nil, file, time0)
	if some, err := s.target.Restore(); !some || err != nil {
		t.Errorf("%v, %v", some, err)
	}
	s.resume()
	s.expect("after a restart", c(4, 2), c(1, 1))
	if st := s.of["objects"].State(); st.Epoch != 5 || !st.Until.Equal(began.Add(10*time.Minute)) {
		t.Errorf("%+v", st)
	}
	if s.counts.n["rejected/held-ttl-over"] != 1 {
		t.Errorf("%v", s.counts.n)
	}
	// A new bus begins anew; its first table is no older one.
	s.apply(order("objects", 1, control.Act, "10m", 3, 1), began)
	s.expect("a new bus", c(3, 1), c(1, 1), "objects 1 done")

	s = steer(t, past{{order("objects", 6, control.Act, "10m", 2, 2), began}}, file, time0)
	if some, err := s.target.Restore(); !some || err != nil {
		t.Errorf("%v, %v", some, err)
	}
	s.expect("before the bus", c(4, 2), c(1, 1))
	s.resume()
	s.expect("by the bus", c(2, 2), c(1, 1))
	time0.Advance(10 * time.Minute)
	s.target.look()
	s.run()
	if b, err := os.ReadFile(file); err != nil || string(b) != "[]" {
		t.Errorf("the file of defaults: %s, %v", b, err)
	}
}

// TestAFileThatIsBroken holds nothing up.
func TestAFileThatIsBroken(t *testing.T) {
	t.Parallel()
	until := began.Add(time.Hour).Format(time.RFC3339)
	table := func(coder, rmax string) string {
		codes := `{"k":[1e9],"n":[1e9,1e9],"r_max":` + rmax + `}`
		return `{"coder":"` + coder + `","epoch":4,"until":"` + until + `","table":{"policy":"static","read":` + codes + `,"write":` + codes + `}}`
	}
	for name, tc := range map[string]struct {
		body string
		some bool
		err  error
		want queue.Code
	}{
		"empty":        {"", false, ErrFile, c(1, 1)},
		"half":         {"[" + table("objects", "3")[:40], false, ErrFile, c(1, 1)},
		"another form": {`{"objects": 1}`, false, ErrFile, c(1, 1)},
		"whole":        {"[" + table("objects", "3") + "]", true, nil, c(3, 2)},
		"one is bad":   {"[" + table("safe", "0") + "," + table("objects", "3") + "]", true, ErrTable, c(3, 2)},
		"coder gone":   {"[" + table("gone", "3") + "]", false, nil, c(1, 1)},
	} {
		file := filepath.Join(t.TempDir(), "coding.json")
		if err := os.WriteFile(file, []byte(tc.body), 0o600); err != nil {
			t.Fatal(err)
		}
		s := steer(t, nil, file, clock.NewManual(began))
		if some, err := s.target.Restore(); some != tc.some || !errors.Is(err, tc.err) || tc.err == nil && err != nil {
			t.Errorf("%s: %v, %v", name, some, err)
		}
		s.expect(name, tc.want, c(1, 1))
		if !tc.some && len(s.counts.n) != 1 {
			t.Errorf("%s is counted as %v", name, s.counts.n)
		}
	}
}

// TestAFileThatCanNotBeWritten is counted and tried again.
func TestAFileThatCanNotBeWritten(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "later")
	s := steer(t, nil, filepath.Join(folder, "coding.json"), clock.NewManual(began))
	s.apply(order("objects", 5, control.Act, "10m", 4, 2), began)
	s.target.keep()
	if s.counts.n["retried/held-file"] != 1 {
		t.Errorf("%v", s.counts.n)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	s.target.keep()
	if b, err := os.ReadFile(filepath.Join(folder, "coding.json")); err != nil || !strings.Contains(string(b), `"epoch":5`) {
		t.Errorf("%s, %v", b, err)
	}
}

func TestTargetOptions(t *testing.T) {
	t.Parallel()
	one := chooser(t, always(control.CodingStatic, 1, 1), 0)
	for _, o := range []TargetOptions{{}, {Choosers: map[string]*Chooser{"a": nil}}, {Choosers: map[string]*Chooser{"a": one}, Every: -1}} {
		if _, err := NewTarget(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

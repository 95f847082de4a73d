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
	"penstock/consumers/executor/inforce"
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

func steer(t *testing.T, file string, c *clock.Manual) *steered {
	t.Helper()
	s := &steered{t: t, clock: c, counts: &counts{n: map[string]int64{}}, of: map[string]*Chooser{}}
	for _, name := range []string{"objects", "safe"} {
		s.of[name] = chooser(t, always(control.CodingStatic, 1, 1), 0)
	}
	var err error
	s.target, err = NewTarget(s.of, inforce.Options{Clock: c, File: file, Metrics: s.counts})
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

// TestTablesComeIntoForce at their choosers, and give way to the default.
func TestTablesComeIntoForce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "coding.json")
	s := steer(t, file, clock.NewManual(began))
	s.apply(order("objects", 5, control.Act, "10m", 4, 2), began.Add(-time.Minute))
	s.expect("a table", c(4, 2), c(1, 1), "objects 5 done")
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

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.target.Run(ctx) }()
	if err := s.clock.Await(ctx, 1); err != nil {
		t.Fatal(err)
	}
	s.clock.Advance(9 * time.Minute)
	for s.of["objects"].State().Epoch != 0 {
		if err := clock.System().Sleep(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	s.expect("its ttl is over", c(1, 1), c(6, 4))
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}

	s = steer(t, file, s.clock)
	if some, err := s.target.Restore(); !some || err != nil {
		t.Errorf("%v, %v", some, err)
	}
	s.expect("after a restart", c(1, 1), c(6, 4))
	if b, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(b), `[{"coder":"safe","epoch":1,"until":"2026-03-01T13:00:00Z","table":{"policy":"static",`) {
		t.Errorf("the file has %s, %v", b, err)
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
		"empty":        {"", false, inforce.ErrFile, c(1, 1)},
		"half":         {"[" + table("objects", "3")[:40], false, inforce.ErrFile, c(1, 1)},
		"another form": {`{"objects": 1}`, false, inforce.ErrFile, c(1, 1)},
		"whole":        {"[" + table("objects", "3") + "]", true, nil, c(3, 2)},
		"one is bad":   {"[" + table("safe", "0") + "," + table("objects", "3") + "]", true, ErrTable, c(3, 2)},
		"coder gone":   {"[" + table("gone", "3") + "]", false, nil, c(1, 1)},
	} {
		file := filepath.Join(t.TempDir(), "coding.json")
		if err := os.WriteFile(file, []byte(tc.body), 0o600); err != nil {
			t.Fatal(err)
		}
		s := steer(t, file, clock.NewManual(began))
		if some, err := s.target.Restore(); some != tc.some || !errors.Is(err, tc.err) || tc.err == nil && err != nil {
			t.Errorf("%s: %v, %v", name, some, err)
		}
		s.expect(name, tc.want, c(1, 1))
		if !tc.some && len(s.counts.n) != 1 {
			t.Errorf("%s is counted as %v", name, s.counts.n)
		}
	}
}

func TestTargetOptions(t *testing.T) {
	t.Parallel()
	one := chooser(t, always(control.CodingStatic, 1, 1), 0)
	for _, x := range []struct {
		choosers map[string]*Chooser
		o        inforce.Options
	}{{}, {choosers: map[string]*Chooser{"a": nil}}, {map[string]*Chooser{"a": one}, inforce.Options{Every: -1}}} {
		if _, err := NewTarget(x.choosers, x.o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

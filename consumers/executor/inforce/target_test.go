package inforce

import (
	"context"
	"errors"
	"testing"
	"time"

	"penstock/infra/clock"
	"penstock/schemas/control"
)

// TestTablesComeIntoForce by scope and epoch; others are answered and change nothing.
func TestTablesComeIntoForce(t *testing.T) {
	t.Parallel()
	s := steer(t, nil, "", clock.NewManual(began))
	s.resume()
	s.expect("at the start", "all", "all")
	s.apply(order("here", 5, control.Act, "10m", "a"), began.Add(-time.Minute))
	s.expect("a table", "a", "all", "here 5 done")
	s.apply(order("here", 5, control.Act, "10m", "c"), began)
	s.expect("the same epoch", "a", "all", "here 5 already-applied")
	s.apply(order("here", 4, control.Act, "10m", "c"), began)
	s.expect("an older one", "a", "all", "here 4 refused older-epoch")
	s.apply(order("there", 1, control.Act, "1h", "b"), began)
	s.expect("the other site's", "a", "b", "there 1 done")
	s.apply(order("nowhere", 9, control.Act, "1h", "c"), began)
	s.expect("another process's", "a", "b", "nowhere 9 advised not-concerned")
	none := order("here", 6, control.Act, "10m")
	none.Servers = nil
	s.apply(none, began)
	s.expect("none", "a", "b", `here 6 failed "here", epoch 6, has none: not a table of this test`)
	s.apply(order("here", 7, control.Act, "10m"), began)
	s.expect("one that can't be", "a", "b", `here 7 failed "here", epoch 7: not a table of this test`)
	for _, x := range []struct {
		site string
		s    control.Status
	}{{"here", control.Advised}, {"here", control.Expired}, {"nowhere", control.Advised}} {
		if err := s.target.Decline(t.Context(), order(x.site, 8, control.Advise, "10m", "c"), x.s, s.answer); err != nil {
			t.Error(err)
		}
	}
	s.expect("declined", "a", "b", "here 8 advised", "here 8 expired", "nowhere 8 advised not-concerned")
	if s.target.Kind() != control.Servers {
		t.Error("another kind")
	}
}

// TestTheTTLCountsFromTheServersTime, and what follows is the default, as Run sees to.
func TestTheTTLCountsFromTheServersTime(t *testing.T) {
	t.Parallel()
	s := steer(t, nil, "", clock.NewManual(began))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.target.Run(ctx) }()
	s.apply(order("here", 5, control.Act, "10s", "a"), began.Add(-7*time.Second))
	s.apply(order("there", 5, control.Act, "10s", "b"), began)
	if err := s.clock.Await(ctx, 1); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.clock.Advance(time.Second)
	}
	s.expect("before", "a", "b", "here 5 done", "there 5 done")
	s.clock.Advance(time.Second)
	for s.of["here"].on() != "all" {
		if err := clock.System().Sleep(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	s.expect("after", "all", "b")
	// The epoch stays what it was: the decider sends another.
	s.apply(order("here", 5, control.Act, "10m", "a"), began)
	s.expect("again", "all", "b", "here 5 already-applied")
	s.apply(order("here", 6, control.Act, "10m", "a"), began)
	s.expect("another", "a", "b", "here 6 done")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s.counts.n["outcomes/ttl-over"] != 1 {
		t.Errorf("%v", s.counts.n)
	}
}

// TestResume takes up the last table of each site that is to be acted on.
func TestResume(t *testing.T) {
	t.Parallel()
	at := began.Add(-time.Minute)
	good := order("here", 5, control.Act, "10m", "a")
	bad := order("here", 6, control.Act, "10m")
	other := &control.Command{Kind: control.Split, Scope: "here", Mode: control.Act}
	for name, tc := range map[string]struct {
		p    past
		want string
		then string // what the delivery of good is answered
	}{
		"nothing":          {nil, "all", "done"},
		"one":              {past{{good, at}}, "a", "done"},
		"the last":         {past{{order("here", 4, control.Act, "10m", "c"), at}, {good, at}}, "a", "done"},
		"advice":           {past{{good, at}, {order("here", 6, control.Advise, "10m", "c"), at}}, "a", "done"},
		"an old one":       {past{{good, at.Add(-time.Hour)}}, "all", "done"},
		"after an old one": {past{{good, at}, {order("here", 6, control.Act, "10s", "c"), at}}, "all", "done"},
		"a later one":      {past{{good, at}, {order("here", 6, control.Act, "10m", "c"), at}}, "c", "refused older-epoch"},
		"others'":          {past{{order("nowhere", 7, control.Act, "10m", "c"), at}, {other, at}}, "all", "done"},
		"a bad one":        {past{{good, at}, {bad, at}}, "all", "done"},
	} {
		s := steer(t, tc.p, "", clock.NewManual(began))
		s.resume()
		s.expect(name, tc.want, "all")
		s.apply(good, began)
		after := "a"
		if tc.then != "done" {
			after = tc.want
		}
		s.expect(name+", delivered", after, "all", "here 5 "+tc.then)
		if tc.then == "done" {
			s.apply(good, began)
			s.expect(name+", twice", after, "all", "here 5 already-applied")
		}
	}
	failing := errors.New("the bus is away")
	s := steer(t, nil, "", clock.NewManual(began))
	s.target.o.History = func(context.Context, func(*control.Command, time.Time) error) error { return failing }
	if err := s.target.Resume(t.Context(), nil); !errors.Is(err, failing) {
		t.Errorf("%v", err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	here := map[string]Holder[control.ServersTable]{"here": &one{}}
	for _, x := range []struct {
		holders map[string]Holder[control.ServersTable]
		o       Options
	}{{nil, Options{Name: "test"}}, {here, Options{}}, {here, Options{Name: "test", Every: -1}}} {
		if _, err := New(kind, x.holders, x.o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", x.o, err)
		}
	}
}

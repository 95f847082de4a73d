package pool

import (
	"errors"
	"math"
	"testing"
	"time"
)

func one(t *testing.T, o Options, servers ...Server) *world {
	t.Helper()
	w := newWorld(t, o)
	w.servers(servers...)
	return w
}

func (w *world) state(name string) (queued, in int) {
	s := w.pool.known[name]
	return s.queued, s.in
}

func (w *world) want(name string, queued, in int) {
	w.t.Helper()
	if q, i := w.state(name); q != queued || i != in {
		w.t.Errorf("%s has %d queued and %d in service, expected %d and %d", name, q, i, queued, in)
	}
}

// TestServerLeaves: what is queued there is placed anew, as old as it is; what is in
// service ends; coming back meanwhile, it has no more than M.
func TestServerLeaves(t *testing.T) {
	t.Parallel()
	for _, policy := range Policies() {
		w := one(t, Options{Policy: policy}, Server{Name: "a", M: 2})
		for range 5 {
			_, _ = w.arrive(Request{Size: 1000})
		}
		w.want("a", 3, 2)
		w.now += int64(time.Millisecond)
		w.servers(Server{Name: "b", M: 1})
		w.want("a", 0, 2)
		w.want("b", 2, 1)
		for _, g := range gauges(w.pool, w.now) {
			if g.Leaving != (g.Server == "a") || g.Usable != (g.Server == "b") {
				t.Errorf("%s: %+v", policy, g)
			}
		}
		w.servers(Server{Name: "a", M: 2})
		w.want("a", 2, 2)
		w.want("b", 0, 1)
		w.until(w.now + second)
		w.want("a", 0, 0)
		if c := w.pool.Counts(); c.Started != 5 || c.Done != 5 || c.Moved != 5 {
			t.Errorf("%s: %+v", policy, c)
		}
		if len(gauges(w.pool, w.now)) != 1 {
			t.Errorf("%s: who has left with nothing in service has no gauge", policy)
		}
	}
}

// TestWaitedSinceArrival: a request that is placed anew has waited since it came.
func TestWaitedSinceArrival(t *testing.T) {
	t.Parallel()
	w := one(t, Options{}, Server{Name: "a", M: 1})
	_, _ = w.arrive(Request{})
	_, _ = w.arrive(Request{})
	w.now += 1000
	moved, starts, err := w.pool.SetServers(w.now, []Server{{Name: "b", M: 1}}, nil, nil)
	if err != nil || len(moved) != 1 || len(starts) != 1 || starts[0].Waited != 1000 || starts[0].Server != "b" {
		t.Errorf("%v, %v, %v", moved, starts, err)
	}
}

// TestNobodyUsable: those that wait go on waiting, others are refused; when a server is
// usable they are served, the oldest first.
func TestNobodyUsable(t *testing.T) {
	t.Parallel()
	w := one(t, Options{Policy: RR}, Server{Name: "a", M: 1})
	for range 4 {
		_, _ = w.arrive(Request{})
	}
	moved, starts := w.pool.SetUsable(w.now, nil, nil, nil)
	if len(moved) != 3 || len(starts) != 0 || moved[0].Server != "" || !moved[0].Queued {
		t.Errorf("%v, %v", moved, starts)
	}
	if _, err := w.arrive(Request{}); !errors.Is(err, ErrNoServer) {
		t.Errorf("%v", err)
	}
	if queued, in := w.pool.Len(); queued != 3 || in != 1 {
		t.Errorf("%d queued, %d in service", queued, in)
	}
	w.pool.Cancel(w.now, 3, nil)
	w.now += second
	if v := w.pool.Potential(w.now); v < 2*0.49 || v > 2*0.51 { // two, half a second late
		t.Errorf("potential %v", v)
	}
	w.until(w.now)
	moved, starts = w.pool.SetUsable(w.now, []string{"a", "unknown"}, nil, nil)
	if len(moved) != 2 || len(starts) != 1 || starts[0].ID != 2 {
		t.Errorf("%v, %v", moved, starts)
	}
	w.want("a", 1, 1)
}

// TestSlots: M = 0 is a usable server that has no slot for this switch. It is chosen
// only where no server has one, and starts what it has when it gets one.
func TestSlots(t *testing.T) {
	t.Parallel()
	for _, policy := range Policies() {
		w := one(t, Options{Policy: policy}, Server{Name: "a"}, Server{Name: "b"})
		for range 4 {
			if p, err := w.arrive(Request{}); err != nil || !p.Queued {
				t.Fatalf("%s: %+v, %v", policy, p, err)
			}
		}
		w.servers(Server{Name: "a"}, Server{Name: "b", M: 2})
		w.want("a", 0, 0)
		w.want("b", 2, 2)
		w.servers(Server{Name: "a"}, Server{Name: "b", M: 4})
		w.want("b", 0, 4)
		_, _ = w.arrive(Request{})
		w.servers(Server{Name: "a"}, Server{Name: "b", M: 1})
		w.want("b", 1, 4)
		for range 3 {
			e := w.ends[0]
			w.ends = w.ends[1:]
			if starts := w.pool.Done(w.now, e.id, Outcome{OK: true}, nil); len(starts) > 0 {
				t.Errorf("%s: %v is started above M", policy, starts)
			}
		}
		w.want("b", 1, 1)
	}
}

// TestTried: a request goes where it hasn't been, full or not, and to where it was only
// if there is nobody else.
func TestTried(t *testing.T) {
	t.Parallel()
	for _, policy := range Policies() {
		w := one(t, Options{Policy: policy, Queue: 1}, Server{Name: "a", M: 4}, Server{Name: "b", M: 1})
		for _, want := range []string{"b", "b", "a", "a"} {
			p, err := w.arrive(Request{Avoid: []string{"a"}})
			if err != nil || p.Server != want {
				t.Errorf("%s: %+v, %v, expected %s", policy, p, err, want)
			}
		}
	}
}

func TestFull(t *testing.T) {
	t.Parallel()
	for _, policy := range Policies() {
		w := one(t, Options{Policy: policy, Queue: 2}, Server{Name: "a", M: 1}, Server{Name: "b", M: 1})
		for range 6 {
			if _, err := w.arrive(Request{}); err != nil {
				t.Errorf("%s: %v", policy, err)
			}
		}
		if _, err := w.arrive(Request{}); !errors.Is(err, ErrFull) {
			t.Errorf("%s: %v", policy, err)
		}
		if v := w.pool.Wait(w.now); v <= 0 {
			t.Errorf("%s: all lines are full and the wait is %v", policy, v)
		}
		w.usable("b") // what is admitted isn't turned away
		w.want("b", 4, 1)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{},
		{Classes: []Class{{Limit: -1}}},
		{Classes: []Class{{Penalty: math.NaN()}}},
		{Classes: []Class{{}}, Policy: "best"},
		{Classes: []Class{{}}, Queue: -1},
		{Classes: []Class{{}}, CostDecay: math.Inf(1)},
		{Classes: []Class{{}}, Near: -1},
		{Classes: []Class{{}}, Near: math.NaN()},
	} {
		if _, err := New(o); !errors.Is(err, ErrOption) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	w := one(t, Options{}, Server{Name: "a", M: 1})
	for _, s := range [][]Server{
		{{Name: ""}}, {{Name: "a"}, {Name: "a"}}, {{Name: "a", M: -1}}, {{Name: "a", Weight: math.NaN()}}, {{Name: "a", Weight: -1}},
	} {
		if _, _, err := w.pool.SetServers(0, s, nil, nil); !errors.Is(err, ErrServers) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if _, _, err := w.pool.Arrive(0, Request{Class: 1}, nil); !errors.Is(err, ErrClass) {
		t.Errorf("%v", err)
	}
	for _, size := range []float64{math.NaN(), math.Inf(1), -1, 1e300} {
		if _, err := w.arrive(Request{Size: size, Entered: math.MinInt64}); err != nil {
			t.Errorf("%v", err)
		}
	}
	if _, _, err := w.pool.Arrive(0, Request{ID: 1}, nil); !errors.Is(err, ErrKnown) {
		t.Errorf("%v", err)
	}
	w.pool.Done(w.now, 2, Outcome{}, nil) // queued
	w.pool.Done(w.now, 99, Outcome{}, nil)
	w.pool.Cancel(w.now, 99, nil)
	if c := w.pool.Counts(); c.Unknown != 3 || c.Done != 0 {
		t.Errorf("%+v", c)
	}
}

// TestFailures: what fails at once doesn't make a server look fast, what fails late makes
// it look slow.
func TestFailures(t *testing.T) {
	t.Parallel()
	w := one(t, Options{Policy: PeakEWMA}, Server{Name: "a", M: 1})
	w.load(time.Second, 20)
	s := w.pool.known["a"]
	before := estimates(s, w.now)
	p, _ := w.arrive(Request{Size: 5000})
	w.pool.Done(w.now, p.ID, Outcome{Service: 1e-6}, nil)
	for i, v := range estimates(s, w.now) {
		if v != before[i] {
			t.Errorf("estimate %d: %v, before it failed %v", i, v, before[i])
		}
	}
	p, _ = w.arrive(Request{Size: 5000})
	w.pool.Done(w.now, p.ID, Outcome{Service: 1}, nil)
	if got := s.model.Service(5000, false); got <= before[3] || s.peak.now(w.now) < 1 {
		t.Errorf("service %v, peak %v, before %v", got, s.peak.now(w.now), before[3])
	}
}

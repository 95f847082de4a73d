package simservers

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"penstock/consumers/executor/dispatcher/pool"
	"penstock/pipeline/experiment/serving/loads"
)

const ms = int64(1e6)

// queue is a switch with one line for all servers, first come, first served.
type queue struct {
	servers []pool.Server
	in      map[string]int
	at      map[uint64]string
	waits   []uint64
}

func newQueue() *queue { return &queue{in: map[string]int{}, at: map[uint64]string{}} }

func (q *queue) next(starts []pool.Start) []pool.Start {
	for _, s := range q.servers {
		for len(q.waits) > 0 && q.in[s.Name] < s.M {
			id := q.waits[0]
			q.waits = q.waits[1:]
			q.in[s.Name]++
			q.at[id] = s.Name
			starts = append(starts, pool.Start{ID: id, Server: s.Name})
		}
	}
	return starts
}

func (q *queue) Arrive(_ int64, r pool.Request, starts []pool.Start) (pool.Placed, []pool.Start, error) {
	q.waits = append(q.waits, r.ID)
	return pool.Placed{ID: r.ID}, q.next(starts), nil
}

func (q *queue) Done(_ int64, id uint64, _ pool.Outcome, starts []pool.Start) []pool.Start {
	q.in[q.at[id]]--
	delete(q.at, id)
	return q.next(starts)
}

func (q *queue) SetServers(_ int64, servers []pool.Server, moved []pool.Placed, starts []pool.Start) ([]pool.Placed, []pool.Start, error) {
	q.servers = slices.Clone(servers)
	return moved, q.next(starts), nil
}

func (q *queue) Potential(int64) float64      { return float64(len(q.waits)) }
func (q *queue) Len() (queued, inService int) { return len(q.waits), len(q.at) }
func request(at, before, disk, behind, database int64) loads.Request {
	return loads.Request{At: at * ms, KB: 10, Dynamic: database > 0, Before: before * ms, Disk: disk * ms, Behind: behind * ms, Database: database * ms}
}

// one is a zone of one server.
func one(requests ...loads.Request) Options {
	return Options{
		Requests: requests, Length: 1000 * ms, Classes: []Class{{Limit: 0.1, Penalty: 2}}, Servers: []Server{{Name: "a1", Speed: 1}},
		Zones: []Switch{newQueue()}, Databases: 1, M: 2, Hop: ms, Cost: 3, Period: 100 * ms,
	}
}

func run(t *testing.T, o Options) *Outcome {
	t.Helper()
	out, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

// TestWhatARequestTakes: the way there, CPU, disk, CPU, database and the way back, and what
// it costs to be late.
func TestWhatARequestTakes(t *testing.T) {
	t.Parallel()
	out := run(t, one(request(0, 10, 20, 30, 60)))
	if !near(out.Mean, 0.122) || out.Late != 1 || !near(out.Penalty, 2*0.022) || !near(out.ServerCost, 3) || !near(out.Cost, 3.044) {
		t.Errorf("%+v, expected 122 ms, 22 of them late, and a second of a server", out)
	}
	// Twice as fast, but for the database and the ways; and of a slower time only its part:
	// 10 ms of its CPU's second work of 15 ms are done before it, the rest takes twice as long.
	o := one(request(0, 10, 20, 30, 60))
	o.Servers[0].Speed = 2
	o.Servers[0].Slow = &Window{From: 26 * ms, To: 500 * ms, Factor: 2}
	if out := run(t, o); math.Abs(out.Mean-(0.001+0.005+0.010+0.010+0.010+0.060+0.001)) > 1e-6 {
		t.Errorf("mean %v", out.Mean)
	}
}

// TestStationsServeOneAfterAnother: the second waits at the CPU, then for the disk, and the
// third for a place, and all three for the only database.
func TestStationsServeOneAfterAnother(t *testing.T) {
	t.Parallel()
	o := one(request(0, 10, 40, 10, 0), request(0, 10, 40, 10, 0), request(0, 10, 40, 10, 0))
	o.Hop = 0
	out := run(t, o)
	// CPU 0–10, 10–20; disk 10–50, 50–90; back at 60 and 100. The third goes in at 60: CPU
	// 60–70, disk 90–130, CPU 130–140.
	if !near(out.Mean, (0.060+0.100+0.140)/3) || !near(out.P99, 0.140) || !near(out.P50, 0.100) {
		t.Errorf("%+v", out)
	}
	o = one(request(0, 1, 1, 1, 100), request(0, 1, 1, 1, 100))
	o.Hop = 0
	// The CPU is free for the first's second turn at 2, and ends it at 3; the databases
	// answer at 103 and 203.
	if out := run(t, o); !near(out.P99, 0.203) {
		t.Errorf("%+v", out)
	}
}

// plan turns servers on and off at steps.
type plan struct {
	first   []int
	on, off map[int][]int // by step, from 1
	step    int
	seen    [][]State
}

func (p *plan) First() []int { return p.first }

func (p *plan) Step(l *Look) (on, off []int) {
	p.step++
	p.seen = append(p.seen, slices.Clone(l.Servers))
	return p.on[p.step], p.off[p.step]
}

// TestServersGoOnAndOff: a starting server costs and serves nobody, a draining one ends what
// it has, and one that is told off while it starts is off at once.
func TestServersGoOnAndOff(t *testing.T) {
	t.Parallel()
	o := one(request(0, 50, 500, 50, 0), request(350, 1, 1, 1, 0))
	o.Servers = []Server{{Name: "a1", Speed: 1}, {Name: "a2", Speed: 1}, {Name: "a3", Speed: 1}}
	o.StartDelay = 150 * ms
	p := &plan{first: []int{0}, on: map[int][]int{1: {1, 2}}, off: map[int][]int{2: {2}, 3: {0}}}
	o.Switcher = p
	out := run(t, o)
	// a1: on 0–300, draining until 601. a2: from 100 on. a3: 100–200.
	if want := 3 * (0.601 + 0.9 + 0.1); !near(out.ServerCost, want) || out.Changes != 4 {
		t.Errorf("servers cost %v after %d changes, expected %v after 4", out.ServerCost, out.Changes, want)
	}
	if !slices.Equal(out.Started, []int{1, 1, 0}) {
		t.Errorf("started %v", out.Started)
	}
	for step, want := range map[int][]State{0: {On, Off, Off}, 1: {On, Starting, Starting}, 2: {On, On, Off}, 3: {Draining, On, Off}, 6: {Off, On, Off}} {
		if !slices.Equal(p.seen[step], want) {
			t.Errorf("step %d: %v, expected %v", step+1, p.seen[step], want)
		}
	}
}

// TestStartedAnew: a server that is told off and on again while it starts takes its whole
// time from then on; one that drains goes on at once.
func TestStartedAnew(t *testing.T) {
	t.Parallel()
	o := one(request(0, 1, 1, 1, 0))
	o.Servers = append(o.Servers, Server{Name: "a2", Speed: 1})
	o.StartDelay = 250 * ms
	p := &plan{first: []int{0}, on: map[int][]int{1: {1}, 3: {1}}, off: map[int][]int{2: {1}}}
	o.Switcher = p
	run(t, o)
	// Begun at 300: on at 550, and so from the sixth look on.
	if p.seen[4][1] != Starting || p.seen[5][1] != On {
		t.Errorf("%v", p.seen)
	}
}

// TestFirstLevel: by load the zone with the least requests for its places; by penalty that
// with the least potential penalty per request.
func TestFirstLevel(t *testing.T) {
	t.Parallel()
	s := &system{Options: Options{Zones: make([]Switch, 3)}, inZone: []int{4, 3, 0}, places: []int{8, 4, 0}, stale: []float64{8, 3, 0}}
	if z := s.zone(); z != 0 {
		t.Errorf("zone %d by load", z)
	}
	s.ByPenalty = true
	if z := s.zone(); z != 1 {
		t.Errorf("zone %d by penalty", z)
	}
	s.stale = []float64{4, 3, 0} // 1 each: by load
	if z := s.zone(); z != 0 {
		t.Errorf("zone %d of equals", z)
	}
}

// broken switches start what they must not.
type broken struct {
	*queue
	start func(id uint64) []pool.Start
}

func (b *broken) Arrive(_ int64, r pool.Request, starts []pool.Start) (pool.Placed, []pool.Start, error) {
	if b.start == nil {
		return pool.Placed{}, starts, pool.ErrFull
	}
	return pool.Placed{}, append(starts, b.start(r.ID)...), nil
}

// TestSwitchesThatBreakTheirContract are found out.
func TestSwitchesThatBreakTheirContract(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(id uint64) []pool.Start{
		"refuses": nil,
		"never":   func(uint64) []pool.Start { return nil },
		"twice":   func(id uint64) []pool.Start { return []pool.Start{{ID: id, Server: "a1"}, {ID: id, Server: "a1"}} },
		"nowhere": func(id uint64) []pool.Start { return []pool.Start{{ID: id, Server: "z9"}} },
		"nobody":  func(uint64) []pool.Start { return []pool.Start{{ID: 99, Server: "a1"}} },
		"where it is full": func(id uint64) []pool.Start {
			return []pool.Start{{ID: 1, Server: "a1"}, {ID: 2, Server: "a1"}, {ID: 3, Server: "a1"}}
		},
	} {
		o := one(request(0, 10, 10, 10, 0), request(900, 10, 10, 10, 0), request(901, 10, 10, 10, 0))
		o.Zones = []Switch{&broken{newQueue(), start}}
		if _, err := Run(context.Background(), o); !errors.Is(err, ErrSwitch) {
			t.Errorf("%s: got %v, expected ErrSwitch", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, one(request(0, 1, 1, 1, 0))); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, expected the context's end", err)
	}
}

// TestAllCome back, whatever the policy, the load and the plan of servers: no response is
// shorter than the request's own times, servers cost at most all of the time, and the same
// run gives the same outcome.
func TestAllComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom(pool.Policies()).Draw(t, "policy")
		var requests []loads.Request
		at := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			at += rapid.Int64Range(0, 40).Draw(t, "after")
			r := request(at, rapid.Int64Range(1, 60).Draw(t, "before"), rapid.Int64Range(1, 60).Draw(t, "disk"), 10, rapid.Int64Range(0, 1).Draw(t, "dynamic")*80)
			r.KB = float64(r.Disk / ms)
			requests = append(requests, r)
		}
		p := plan{first: []int{0, 1, 2, 3}, on: map[int][]int{}, off: map[int][]int{}}
		for step := range 40 {
			switch rapid.IntRange(0, 5).Draw(t, "change") {
			case 0: // never the first of a zone, so that there is always one
				p.off[step] = []int{1 + 2*rapid.IntRange(0, 1).Draw(t, "off")}
			case 1:
				p.on[step] = []int{1 + 2*rapid.IntRange(0, 1).Draw(t, "on")}
			}
		}
		outcome := func() *Outcome {
			o := Options{
				Requests: requests, Length: 500 * ms, Classes: []Class{{Limit: 0.1, Penalty: 2}},
				Servers:   []Server{{Name: "a1", Speed: 1, Weight: 1}, {Name: "a2", Speed: 2, Weight: 2}, {Name: "b1", Zone: 1, Speed: 1, Weight: 1}, {Name: "b2", Zone: 1, Speed: 0.5, Weight: 1}},
				Databases: 1, M: 2, Hop: ms, Cost: 1, Period: 50 * ms, StartDelay: 70 * ms, ByPenalty: at%2 == 0,
			}
			for range 2 {
				w, err := pool.New(pool.Options{Policy: policy, Classes: []pool.Class{{Limit: 0.1, Penalty: 2}}, Ramp: 1e8})
				if err != nil {
					t.Fatal(err)
				}
				o.Zones = append(o.Zones, w)
			}
			mine := p
			o.Switcher = &mine
			out, err := Run(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		a, b := outcome(), outcome()
		if a.Cost != b.Cost || a.Mean != b.Mean || !slices.Equal(a.Started, b.Started) {
			t.Fatalf("%+v, and the second time %+v", a, b)
		}
		started := 0
		for _, n := range a.Started {
			started += n
		}
		least := 0.0
		for i := range requests {
			r := &requests[i]
			least += (float64(r.Before+r.Disk+r.Behind)/2 + float64(r.Database)) / 1e9 / float64(len(requests))
		}
		if started != len(requests) || a.Requests != len(requests) || a.Mean < least+0.002-1e-9 || a.Penalty < 0 || a.P50 > a.P90 || a.P90 > a.P99 {
			t.Fatalf("%+v of %d requests of at least %v s", a, len(requests), least)
		}
	})
}

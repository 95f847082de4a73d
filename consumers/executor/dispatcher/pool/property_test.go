package pool

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"penstock/consumers/executor/dispatcher/line"
)

// account is what a test knows of a request.
type account struct {
	state   state
	server  string
	number  int // when it was put into its line
	arrived int64
	placed  int64
	trial   bool
}

// ledger follows a pool from outside and holds it to what it promises.
type ledger struct {
	t        *rapid.T
	pool     *Pool
	twin     *Pool // is told the same, and must answer the same
	now      int64
	id       uint64
	number   int
	requests map[uint64]*account
	servers  []Server
	usable   map[string]bool // nil: all
	arrived  uint64
	ended    uint64
	starts   uint64
	heard    map[string]int64 // when a request began or ended there last, but for trials that make it no younger
	trials   map[string]uint64
	series   map[string][]float64 // answers of trials that follow one another, see thought
}

func (l *ledger) server(name string) (Server, bool) {
	i := slices.IndexFunc(l.servers, func(s Server) bool { return s.Name == name })
	if i < 0 {
		return Server{}, false
	}
	return l.servers[i], l.usable == nil || l.usable[name]
}

func (l *ledger) in(state state, server string) []uint64 {
	var ids []uint64
	for id, a := range l.requests {
		if a.state == state && a.server == server {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// started holds starts to account: of whom waits, at usable servers, never above M.
func (l *ledger) started(starts []Start) {
	for _, s := range starts {
		a := l.requests[s.ID]
		if a == nil || a.state == running {
			l.t.Fatalf("%d is started and is %+v", s.ID, a)
		}
		if _, moves := l.pool.policy.(mover); a.server != s.Server && !moves {
			l.t.Fatalf("%d is started at %s, queued at %s", s.ID, s.Server, a.server)
		}
		server, usable := l.server(s.Server)
		if !usable {
			l.t.Fatalf("%d is started at %s, which is not usable", s.ID, s.Server)
		}
		a.state, a.server = running, s.Server
		if a.trial = l.tried(s.ID, s.Server); !a.trial {
			l.heard[s.Server] = l.now
		}
		if n := len(l.in(running, s.Server)); n > server.M {
			l.t.Fatalf("%d are in service at %s, M is %d", n, s.Server, server.M)
		}
		if s.Waited != l.now-a.arrived || s.Service < 0 {
			l.t.Fatalf("%+v, arrived %v ago", s, l.now-a.arrived)
		}
		l.starts++
	}
}

// tried reports whether a start is a trial, and holds it to account: one at a time at a
// server, none while it is heard of, none of what is late or has tried other servers.
func (l *ledger) tried(id uint64, server string) bool {
	s, j := l.pool.known[server], l.pool.jobs[id]
	if s.trials == l.trials[server] {
		return false
	}
	l.trials[server] = s.trials
	others := 0
	for _, i := range l.in(running, server) {
		if i != id && l.requests[i].trial {
			others++
		}
	}
	switch after := l.pool.options.Trial; {
	case after <= 0 || !estimators[l.pool.options.Policy]:
		l.t.Fatalf("a trial at %s, and there are to be none", server)
	case s.trial != j || others > 0:
		l.t.Fatalf("a trial at %s beside %d others", server, others)
	case l.now-l.heard[server] < int64(after):
		l.t.Fatalf("a trial at %s, of which was heard %v ago, not %v", server, time.Duration(l.now-l.heard[server]), after)
	case j.due < l.now || len(j.avoid) > 0:
		l.t.Fatalf("a trial at %s with a request due %v ago that avoids %v", server, time.Duration(l.now-j.due), j.avoid)
	}
	return true
}

// ends notes that a request in service ends. A trial that was answered a tenth sooner than was
// thought before its series makes what is known no younger, unless it is the last.
func (l *ledger) ends(id uint64, ok bool) {
	a := l.requests[id]
	if a.state != running {
		return
	}
	s, j := l.pool.known[a.server], l.pool.jobs[id]
	if ok && a.trial {
		took, estimate := float64(l.now-j.started)/second, s.model.Service(j.size, j.dynamic)
		if p, is := l.pool.policy.(*auto); is {
			estimate = s.auto.f * (p.work.of(j) + p.work.others*float64(j.found))
			if p.work.n < settled {
				estimate = 0 // it is a request like others
			}
		}
		times := max(took, 1e-9) / max(estimate, 1e-9) * thought(l.series[a.server])
		l.series[a.server] = append(l.series[a.server], times)
		if times < sooner && len(l.series[a.server]) < settling {
			return
		}
	}
	l.heard[a.server] = l.now
	delete(l.series, a.server)
}

// thought is how many times longer than before a series is thought after it.
func thought(series []float64) float64 {
	switch {
	case len(series) == 0:
		return 1
	case len(series) == 1 && (series[0] > alike || series[0] < 1/alike):
		return math.Sqrt(min(max(series[0], 1./mostLonger), mostLonger))
	case len(series) == 1:
		return 0.75 + 0.25*series[0]
	}
	sum := 0.0
	for _, times := range series {
		sum += min(times, mostLonger)
	}
	return sum / float64(len(series))
}

// placed holds a placing to account.
func (l *ledger) placed(p Placed) {
	a := l.requests[p.ID]
	l.number++
	a.server, a.number, a.state, a.placed = p.Server, l.number, queued, l.now
	if p.Server == "" {
		a.state = unplaced
		return
	}
	if _, usable := l.server(p.Server); !usable {
		l.t.Fatalf("%d is placed at %s, which is not usable", p.ID, p.Server)
	}
	if p.Service < 0 || p.Wait < 0 || math.IsNaN(p.Increase) {
		l.t.Fatalf("%+v", p)
	}
}

func (l *ledger) arrive() {
	l.id++
	r := Request{
		ID: l.id, Class: rapid.IntRange(0, 2).Draw(l.t, "class"), Size: rapid.Float64Range(0, 1e6).Draw(l.t, "size"),
		Dynamic: rapid.Bool().Draw(l.t, "dynamic"), Impact: rapid.Uint8Range(0, 2).Draw(l.t, "impact"),
	}
	if len(l.servers) > 0 && rapid.IntRange(0, 3).Draw(l.t, "tried") == 0 {
		r.Avoid = []string{rapid.SampledFrom(l.servers).Draw(l.t, "avoid").Name}
	}
	if rapid.Bool().Draw(l.t, "earlier") {
		r.Entered = max(1, l.now-rapid.Int64Range(0, second).Draw(l.t, "entered"))
	}
	placed, starts, err := l.pool.Arrive(l.now, r, nil)
	placed2, starts2, err2 := l.twin.Arrive(l.now, r, nil)
	l.same([]any{placed, starts, err}, []any{placed2, starts2, err2})
	live, room, others := 0, 0, 0
	for _, s := range l.servers {
		if _, usable := l.server(s.Name); usable {
			live++
			if len(l.in(running, s.Name)) < s.M || len(l.in(queued, s.Name)) < l.pool.options.Queue {
				room++
				if !slices.Contains(r.Avoid, s.Name) {
					others++
				}
			}
		}
	}
	switch {
	case errors.Is(err, ErrNoServer) && live == 0, errors.Is(err, ErrFull) && live > 0 && room == 0:
		return
	case err != nil:
		l.t.Fatalf("%v: %d usable, %d with room", err, live, room)
	case slices.Contains(r.Avoid, placed.Server) && others > 0 && l.slots(r.Avoid):
		l.t.Fatalf("%d was placed at %s, which it avoids", r.ID, placed.Server)
	}
	l.arrived++
	l.requests[r.ID] = &account{arrived: l.now}
	l.placed(placed)
	if placed.Queued != (len(starts) == 0) {
		l.t.Fatalf("%+v and %v", placed, starts)
	}
	l.started(starts)
}

// slots reports whether a usable server with slots and room is none of the avoided.
func (l *ledger) slots(avoid []string) bool {
	return slices.ContainsFunc(l.servers, func(s Server) bool {
		_, usable := l.server(s.Name)
		return usable && s.M > 0 && !slices.Contains(avoid, s.Name) &&
			(len(l.in(running, s.Name)) < s.M || len(l.in(queued, s.Name)) < l.pool.options.Queue)
	})
}

// next says whom a server is to serve next, by its discipline.
func (l *ledger) next(server string) (uint64, bool) {
	ids := l.in(queued, server)
	if len(ids) == 0 {
		return 0, false
	}
	s := l.pool.known[server]
	plain := line.NewPlain(l.pool.policy.discipline())
	plain.SetDecay(l.pool.options.CostDecay)
	s.line.Each(func(it line.Item) bool { // in the line's order, which is kept
		plain.Insert(l.now, it)
		return true
	})
	switch l.pool.policy.discipline() {
	case line.FIFO:
		slices.SortFunc(ids, func(a, b uint64) int { return l.requests[a].number - l.requests[b].number })
		return ids[0], true
	case line.Cheapest:
		var first uint64
		s.line.Each(func(it line.Item) bool { first = it.ID; return false })
		return first, true
	case line.Deadline, line.Lateness, line.Cost:
	}
	it, ok := plain.Peek(l.now)
	return it.ID, ok
}

func (l *ledger) done() {
	ids := l.of(running)
	if len(ids) == 0 {
		return
	}
	id := rapid.SampledFrom(ids).Draw(l.t, "done")
	a := l.requests[id]
	next, some := l.next(a.server)
	if s, usable := l.server(a.server); !usable || len(l.in(running, a.server)) > s.M {
		some = false
	}
	o := Outcome{OK: rapid.IntRange(0, 9).Draw(l.t, "ok") > 0}
	l.ends(id, o.OK)
	starts := l.pool.Done(l.now, id, o, nil)
	l.same(starts, l.twin.Done(l.now, id, o, nil))
	delete(l.requests, id)
	l.ended++
	if _, moves := l.pool.policy.(mover); !moves { // a mover says itself who is next
		if some != (len(starts) == 1) || some && starts[0].ID != next {
			l.t.Fatalf("%s starts %v after %d, expected %d (%v)", a.server, starts, id, next, some)
		}
	}
	l.started(starts)
}

func (l *ledger) of(states ...state) []uint64 {
	var ids []uint64
	for id, a := range l.requests {
		if slices.Contains(states, a.state) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (l *ledger) cancel() {
	ids := l.of(queued, running, unplaced)
	if len(ids) == 0 {
		return
	}
	l.cancelThis(rapid.SampledFrom(ids).Draw(l.t, "cancel"))
}

func (l *ledger) cancelThis(id uint64) {
	l.ends(id, false)
	starts := l.pool.Cancel(l.now, id, nil)
	l.same(starts, l.twin.Cancel(l.now, id, nil))
	delete(l.requests, id)
	l.ended++
	l.started(starts)
}

func (l *ledger) setServers() {
	l.servers = nil
	for i := range rapid.IntRange(0, 4).Draw(l.t, "servers") {
		if rapid.IntRange(0, 3).Draw(l.t, "out") == 0 {
			continue
		}
		l.servers = append(l.servers, Server{
			Name: fmt.Sprintf("s%d", i), M: rapid.IntRange(0, 3).Draw(l.t, "M"),
			Weight: float64(rapid.IntRange(0, 3).Draw(l.t, "weight")),
		})
	}
	moved, starts, err := l.pool.SetServers(l.now, l.servers, nil, nil)
	moved2, starts2, err2 := l.twin.SetServers(l.now, l.servers, nil, nil)
	l.same([]any{moved, starts, err}, []any{moved2, starts2, err2})
	if err != nil {
		l.t.Fatal(err)
	}
	l.settled(moved, starts)
}

func (l *ledger) setUsable() {
	var names []string
	for i := range 4 {
		if rapid.IntRange(0, 3).Draw(l.t, "usable") > 0 {
			names = append(names, fmt.Sprintf("s%d", i))
		}
	}
	l.usable = map[string]bool{}
	for _, n := range names {
		l.usable[n] = true
	}
	moved, starts := l.pool.SetUsable(l.now, names, nil, nil)
	moved2, starts2 := l.twin.SetUsable(l.now, names, nil, nil)
	l.same([]any{moved, starts}, []any{moved2, starts2})
	l.settled(moved, starts)
}

func (l *ledger) settled(moved []Placed, starts []Start) {
	once := map[uint64]bool{}
	for _, p := range moved {
		if a := l.requests[p.ID]; a == nil || a.state == running || once[p.ID] {
			l.t.Fatalf("%d is moved and is %+v", p.ID, a)
		}
		once[p.ID] = true
		l.placed(p)
	}
	l.started(starts)
}

func (l *ledger) same(a, b any) {
	if !reflect.DeepEqual(a, b) {
		l.t.Fatalf("two pools that were told the same differ:\n%+v\n%+v", a, b)
	}
}

func gauges(p *Pool, now int64) []Gauge {
	var all []Gauge
	p.Gauges(now, func(g Gauge) { all = append(all, g) })
	return all
}

// check holds the whole state to account.
func (l *ledger) check() {
	queuedAll, inService := l.pool.Len()
	if queuedAll != len(l.of(queued, unplaced)) || inService != len(l.of(running)) {
		l.t.Fatalf("%d queued and %d in service, expected %d and %d", queuedAll, inService, len(l.of(queued, unplaced)), len(l.of(running)))
	}
	seen := map[string]bool{}
	live := 0
	all := gauges(l.pool, l.now)
	for _, g := range all {
		seen[g.Server] = true
		s, usable := l.server(g.Server)
		if usable {
			live++
		}
		if g.Usable != usable || g.Queued != len(l.in(queued, g.Server)) || g.InService != len(l.in(running, g.Server)) ||
			g.QueuedStatic+g.QueuedDynamic != g.Queued || g.QueuedStatic < 0 || g.QueuedDynamic < 0 {
			l.t.Fatalf("%+v, expected usable %v, queued %v, in service %v", g, usable, l.in(queued, g.Server), l.in(running, g.Server))
		}
		for _, v := range []float64{g.Potential, g.Late, g.Wait, g.ServiceError, g.WaitError, g.StaticBytes, g.DynamicBytes, g.Slowdown - 1} {
			if !(v >= 0) || math.IsInf(v, 1) {
				l.t.Fatalf("%+v", g)
			}
		}
		if usable && g.Queued > 0 && g.InService < s.M {
			l.t.Fatalf("a slot is free and requests wait: %+v", g)
		}
		if !usable && g.Queued > 0 {
			l.t.Fatalf("requests wait for who is not usable: %+v", g)
		}
	}
	for id, a := range l.requests {
		if a.state == unplaced && live > 0 {
			l.t.Fatalf("%d has no server though one is usable", id)
		}
		if a.server != "" && !seen[a.server] {
			l.t.Fatalf("%d is at %s, which has no gauge", id, a.server)
		}
	}
	potential := l.pool.Potential(l.now)
	if !(potential >= 0) {
		l.t.Fatalf("potential %v", potential)
	}
	if v := l.pool.Wait(l.now); !(v >= 0) {
		l.t.Fatalf("wait %v", v)
	}
	// A line's questions may change how its sums are rounded: the twin is asked too.
	l.same(all, gauges(l.twin, l.now))
	l.same(potential, l.twin.Potential(l.now))
	c := l.pool.Counts()
	if c.Arrived != l.arrived || c.Started != l.starts || c.Done+c.Cancelled != l.ended || c.Unknown != 0 ||
		len(l.pool.jobs) != len(l.requests) {
		l.t.Fatalf("%+v, expected %d arrived, %d started, %d ended, %d here", c, l.arrived, l.starts, l.ended, len(l.requests))
	}
}

// TestAnySequence: whatever happens, each request is started once at a server that may
// have it or is cancelled, no M is exceeded, the line's order is its discipline's, no
// penalty is negative, and two pools that are told the same do the same.
func TestAnySequence(t *testing.T) {
	t.Parallel()
	for _, policy := range Policies() {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { anySequence(t, policy) })
		})
	}
}

func anySequence(t *rapid.T, policy Policy) {
	o := Options{
		Policy: policy, Classes: []Class{{Limit: 0.05, Penalty: 1}, {Limit: 0.5, Penalty: 3}, {}}, Queue: 5,
		Seed: rapid.Uint64Range(0, 3).Draw(t, "seed"), Elapsed: rapid.Bool().Draw(t, "elapsed"),
		FreeFirst: rapid.Bool().Draw(t, "free first"), Near: rapid.SampledFrom([]float64{0, 0.1, 1}).Draw(t, "near"), Ramp: 300 * time.Millisecond,
		Trial: rapid.SampledFrom([]time.Duration{0, 50 * time.Millisecond, 300 * time.Millisecond}).Draw(t, "trial"),
	}
	l := &ledger{t: t, requests: map[uint64]*account{}, heard: map[string]int64{}, trials: map[string]uint64{}, series: map[string][]float64{}, now: rapid.SampledFrom([]int64{0, 1.8e18}).Draw(t, "begin")}
	for _, p := range []**Pool{&l.pool, &l.twin} {
		var err error
		if *p, err = New(o); err != nil {
			t.Fatal(err)
		}
	}
	l.setServers()
	t.Repeat(map[string]func(*rapid.T){
		"":            func(t *rapid.T) { l.t = t; l.check() },
		"arrive":      func(t *rapid.T) { l.t = t; l.arrive() },
		"arrive more": func(t *rapid.T) { l.t = t; l.arrive() },
		"arrive most": func(t *rapid.T) { l.t = t; l.arrive() },
		"done":        func(t *rapid.T) { l.t = t; l.done() },
		"done more":   func(t *rapid.T) { l.t = t; l.done() },
		"cancel":      func(t *rapid.T) { l.t = t; l.cancel() },
		"servers":     func(t *rapid.T) { l.t = t; l.setServers() },
		"usable":      func(t *rapid.T) { l.t = t; l.setUsable() },
		"advance":     func(t *rapid.T) { l.now += rapid.Int64Range(0, 200*int64(time.Millisecond)).Draw(t, "by") },
	})
	l.t = t
	for _, id := range l.of(queued, unplaced, running) {
		if l.requests[id] != nil {
			l.cancelThis(id)
		}
	}
	l.check()
	for name, s := range l.pool.known {
		if s.in != 0 || s.queued != 0 || s.line.Len() != 0 || len(s.running) != 0 || s.serving != 0 || s.board != (board{}) {
			t.Fatalf("%s is left with %+v", name, s)
		}
	}
}

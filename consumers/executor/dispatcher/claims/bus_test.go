package claims

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/infra/clock"
	"penstock/schemas/subject"
)

// site is servers that several dispatchers of this process share, over a real bus. It counts
// what is in service at each server, of all of them.
type site struct {
	t       *testing.T
	servers []Server

	mu      sync.Mutex
	all     map[string]int // in service by server
	most    map[string]int // the most that ever were at once
	changed chan struct{}  // closed when a limit has changed, and at each round
}

func newSite(t *testing.T, m ...int) *site {
	s := &site{t: t, all: map[string]int{}, most: map[string]int{}, changed: make(chan struct{})}
	for i, n := range m {
		s.servers = append(s.servers, Server{Name: fmt.Sprint("s", i), Zone: "east", M: n})
	}
	return s
}

// worker is one dispatcher: it begins requests wherever its limits let it, and ends them at
// random.
type worker struct {
	s      *site
	c      *Claims
	client *bus.Client
	stop   context.CancelFunc // of Claims
	done   chan struct{}
	halt   context.CancelFunc // of its requests
	halted chan struct{}
	epoch  uint64

	inUse  map[string]int // guarded by s.mu
	limit  map[string]int
	rounds int
}

func (s *site) start(client *bus.Client, name string, change ...func(*Options)) *worker {
	s.t.Helper()
	o := Options{Client: client, Name: name, Site: "the site", Servers: s.servers, Logger: zerolog.Nop(), Every: 200 * time.Millisecond, Grace: 500 * time.Millisecond}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	w := &worker{s: s, c: c, client: client, inUse: map[string]int{}, limit: map[string]int{}, done: make(chan struct{}), halted: make(chan struct{}), epoch: 7}
	c.Observe(func(fn func(zone, server string, inService, queued int, potential float64)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for server, n := range w.inUse {
			fn("east", server, n, 1, 0.5)
		}
		w.rounds++
		close(s.changed)
		s.changed = make(chan struct{})
	}, func() uint64 { return w.epoch })
	c.Watch(w.reshare)
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go func() {
		defer close(w.done)
		if err := c.Run(ctx); err != nil {
			s.t.Errorf("run: %v", err)
		}
	}()
	working, halt := context.WithCancel(context.Background())
	w.halt = halt
	go w.work(working, rand.New(rand.NewPCG(uint64(len(name)), uint64(name[len(name)-1]))))
	s.t.Cleanup(w.leave)
	return w
}

// reshare takes the limits over, as a pool does.
func (w *worker) reshare() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	for _, server := range w.s.servers {
		w.limit[server.Name] = w.c.Share(server.Name, math.MaxInt)
	}
	close(w.s.changed)
	w.s.changed = make(chan struct{})
}

// work begins and ends requests every few milliseconds; once halted it has none.
func (w *worker) work(ctx context.Context, rnd *rand.Rand) {
	defer close(w.halted)
	tick := clock.System().NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			w.s.mu.Lock()
			for server, n := range w.inUse {
				w.s.all[server] -= n
				delete(w.inUse, server)
			}
			w.s.mu.Unlock()
			return
		case <-tick.C():
		}
		w.s.mu.Lock()
		for _, server := range w.s.servers {
			for w.inUse[server.Name] > 0 && rnd.IntN(5) == 0 {
				w.inUse[server.Name]--
				w.s.all[server.Name]--
			}
			for w.inUse[server.Name] < w.limit[server.Name] {
				w.inUse[server.Name]++
				w.s.all[server.Name]++
			}
			w.s.most[server.Name] = max(w.s.most[server.Name], w.s.all[server.Name])
		}
		w.s.mu.Unlock()
	}
}

// leave ends the requests and then the claims.
func (w *worker) leave() {
	w.halt()
	<-w.halted
	w.stop()
	<-w.done
}

// die ends it without a word: its connection is gone first.
func (w *worker) die() {
	w.client.Close()
	w.leave()
}

// total is the sum of a worker's limits; the lock is held.
func (w *worker) total() int {
	n := 0
	for _, limit := range w.limit {
		n += limit
	}
	return n
}

// await waits until the limits of workers are what ok says, with the lock held.
func (s *site) await(what string, ok func() bool) {
	s.t.Helper()
	deadline := clock.System().NewTimer(bustest.Timeout)
	defer deadline.Stop()
	for {
		s.mu.Lock()
		done, changed := ok(), s.changed
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-deadline.C():
			s.t.Fatalf("after %v still not: %s", bustest.Timeout, what)
		}
	}
}

// fair waits until these workers have all places, and as many each but for one.
func (s *site) fair(what string, workers ...*worker) {
	s.t.Helper()
	s.await(what, func() bool {
		places, sum, least, most := 0, 0, math.MaxInt, 0
		for _, server := range s.servers {
			places += server.M
		}
		for _, w := range workers {
			n := w.total()
			sum, least, most = sum+n, min(least, n), max(most, n)
		}
		return sum == places && most-least <= 1
	})
}

// kept fails if a server ever had more than M.
func (s *site) kept(when string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.servers {
		if s.most[server.Name] > server.M {
			s.t.Errorf("%s: %s had %d in service, of %d", when, server.Name, s.most[server.Name], server.M)
		}
		s.most[server.Name] = 0
	}
}

// TestOverABus is the life of a pool with several dispatchers at work: they join, one leaves,
// one dies, and the bus is restarted and has lost its memory. M is kept throughout, and
// everyone has a fair share each time.
func TestOverABus(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	s := newSite(t, 7, 4, 2)
	patient := func(o *Options) { o.Grace = 2 * time.Second } // whoever comes back may be slow
	one := s.start(bustest.Client(t, b), "one", patient)
	s.fair("one alone has all", one)
	two := s.start(bustest.Client(t, b), "two", patient)
	three := s.start(bustest.Client(t, b), "three", patient)
	four := s.start(bustest.Client(t, b), "four", patient)
	s.fair("four share", one, two, three, four)
	s.kept("four joined")
	four.leave()
	s.fair("one left", one, two, three)
	s.kept("one left")
	bustest.Restart(t, b)
	s.rounds(one, two, three)
	s.fair("the bus was restarted", one, two, three)
	s.kept("the bus was restarted")
	three.die()
	s.fair("one died", one, two)
	s.kept("one died")
	for _, w := range []*worker{one, two} {
		if st := w.c.State(); st.Live != 2 || st.Away || st.Counts.Rounds == 0 {
			t.Errorf("state %+v", st)
		}
	}
}

// rounds waits until each has begun three more, of which at least one is written unless
// others' came before.
func (s *site) rounds(workers ...*worker) {
	s.t.Helper()
	s.mu.Lock()
	from := map[*worker]int{}
	for _, w := range workers {
		from[w] = w.rounds
	}
	s.mu.Unlock()
	s.await("three more rounds", func() bool {
		for w, n := range from {
			if w.rounds < n+3 {
				return false
			}
		}
		return true
	})
}

// TestManyJoinAtOnce: eight race for the key at the same instant.
func TestManyJoinAtOnce(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	s := newSite(t, 5, 5, 1, 1, 1)
	var all []*worker
	for i := range 8 {
		all = append(all, s.start(bustest.Client(t, b), fmt.Sprint("dispatcher", i)))
	}
	s.fair("all share", all...)
	s.kept("all joined")
}

// TestBusAway: while the bus is away limits stay; one that starts then takes all places, and
// gives them back when it is there.
func TestBusAway(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	s := newSite(t, 6)
	one := s.start(bustest.Client(t, b), "one")
	s.fair("one alone", one)
	away := bustest.Client(t, b)
	b.Suspend()
	two := s.start(away, "two", func(o *Options) { o.Patience = 50 * time.Millisecond })
	s.await("two has all for it can't ask", func() bool { return two.total() == 6 })
	s.await("one keeps what it has", func() bool { return one.total() == 6 })
	if !two.c.State().Away {
		t.Error("it doesn't say that the bus is away")
	}
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	s.fair("the bus is back", one, two)
}

// TestViewAndOthers: what dispatchers say is seen by the server switch and by each other.
func TestViewAndOthers(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	client := bustest.Client(t, b)
	viewer, err := NewViewer(client, nil, "the site")
	if err != nil {
		t.Fatal(err)
	}
	look := func() View {
		v, err := viewer.Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := look(); v.Settled || len(v.Rows) != 0 {
		t.Errorf("of no key: %+v", v)
	}
	s := newSite(t, 4, 4)
	one := s.start(bustest.Client(t, b), "one")
	two := s.start(bustest.Client(t, b), "two")
	s.fair("both share", one, two)
	s.rounds(one, two)
	v := look()
	if len(v.Rows) != 2 || v.Rows[0].Name != "one" || v.Rows[1].Name != "two" || v.Rows[0].Epoch != 7 || v.Rows[0].Servers["s0"].Claim != 2 || v.Rows[0].Age > ttl {
		t.Errorf("got %+v", v)
	}
	// Each has up to four in service and two queued, of which the other hears.
	l, some := one.c.Zone("east")
	if !some || l.Requests < 2 || l.Requests > 6 || l.Potential != 1 || clock.System().Now().Sub(l.At) > bustest.Timeout {
		t.Errorf("two is said to have %+v, %v", l, some)
	}
	if l, _ := one.c.Zone("west"); l.Requests != 0 {
		t.Errorf("in the other zone it has %+v", l)
	}
	if rows := one.c.View().Rows; len(rows) != 1 || rows[0].Name != "two" {
		t.Errorf("one sees %+v", rows)
	}
	two.leave()
	s.fair("one is alone", one)
	s.rounds(one)
	if _, some := one.c.Zone("east"); some {
		t.Error("one that left is still heard of")
	}
	one.leave()
	if v := look(); len(v.Rows) != 0 {
		t.Errorf("after all left: %+v", v)
	}
}

// TestForeignContent of the key is written over, and counted.
func TestForeignContent(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	client := bustest.Client(t, b)
	kv, err := client.KV(t.Context(), subject.MembersKV)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.PutString(t.Context(), key("the site"), "no book"); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, 3)
	one := s.start(client, "one")
	s.fair("it has all", one)
	if n := one.c.State().Counts.Unreadable; n != 1 {
		t.Errorf("%d are counted", n)
	}
}

// TestBucketIsMadeAgain that a restarted server has lost.
func TestBucketIsMadeAgain(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	client := bustest.Client(t, b)
	s := newSite(t, 3)
	one := s.start(client, "one")
	s.fair("it has all", one)
	if err := client.JS.DeleteKeyValue(t.Context(), client.Stream(subject.MembersKV)); err != nil {
		t.Fatal(err)
	}
	s.rounds(one)
	s.fair("it has all again", one)
	if err := b.Check(t.Context()); err != nil {
		t.Errorf("it isn't as it should be: %v", err)
	}
	s.kept("the bucket was made")
}

// TestServersChange: one that is taken out is given back, one that is added is claimed.
func TestServersChange(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	s := newSite(t, 3, 5)
	one := s.start(bustest.Client(t, b), "one")
	s.fair("it has all", one)
	if err := one.c.SetServers([]Server{{Name: "s0", M: 2}, {Name: "s9", M: 4}}); err != nil {
		t.Fatal(err)
	}
	if got := one.c.Share("s1", 5) + one.c.Share("s0", 9); got > 2 {
		t.Errorf("limits that were taken are still %d", got)
	}
	s.await("the new one is claimed", func() bool { return one.c.Share("s9", 9) == 4 && one.c.Share("s0", 9) == 2 })
}

package pool

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// world drives a pool with requests and servers that serve them, in a time of its own.
type world struct {
	t       testing.TB
	pool    *Pool
	rnd     *rand.Rand
	now     int64
	id      uint64
	ends    ends
	service func(server string, now int64) float64 // s
	placed  map[string]int                         // requests by server, since it was cleared
	refused int
}

type end struct {
	at int64
	id uint64
	s  float64
}

type ends []end

func (e ends) Len() int { return len(e) }
func (e ends) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].id < e[j].id
}
func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)   { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newWorld(t testing.TB, o Options) *world {
	t.Helper()
	if o.Classes == nil {
		o.Classes = []Class{{Limit: 0.5, Penalty: 1}}
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &world{
		t: t, pool: p, rnd: rand.New(rand.NewPCG(7, 11)), now: second, placed: map[string]int{},
		service: func(string, int64) float64 { return 0.02 },
	}
}

func (w *world) servers(servers ...Server) {
	w.t.Helper()
	moved, starts, err := w.pool.SetServers(w.now, servers, nil, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.settled(moved, starts)
}

func (w *world) usable(names ...string) { w.settled(w.pool.SetUsable(w.now, names, nil, nil)) }

func (w *world) settled(moved []Placed, starts []Start) {
	for _, m := range moved {
		w.placed[m.Server]++
	}
	w.start(starts)
}

func (w *world) start(starts []Start) {
	for _, s := range starts {
		took := w.service(s.Server, w.now) * (0.8 + 0.4*w.rnd.Float64())
		heap.Push(&w.ends, end{w.now + nanoseconds(took), s.ID, took})
	}
}

func (w *world) arrive(r Request) (Placed, error) {
	w.id++
	r.ID = w.id
	placed, starts, err := w.pool.Arrive(w.now, r, nil)
	if err != nil {
		w.refused++
		return placed, err
	}
	w.placed[placed.Server]++
	w.start(starts)
	return placed, nil
}

// until lets requests end up to an instant.
func (w *world) until(at int64) {
	for len(w.ends) > 0 && w.ends[0].at <= at {
		e := heap.Pop(&w.ends).(end)
		w.now = max(w.now, e.at)
		w.start(w.pool.Done(w.now, e.id, Outcome{OK: true, Service: e.s}, nil))
	}
	w.now = at
}

// load has requests arrive for a time, so many a second, and returns where they went.
func (w *world) load(d time.Duration, rate float64) map[string]int {
	clear(w.placed)
	for stop := w.now + int64(d); ; {
		next := w.now + nanoseconds(w.rnd.ExpFloat64()/rate)
		if next >= stop {
			w.until(stop)
			return w.placed
		}
		w.until(next)
		_, _ = w.arrive(Request{Size: 1000 + 20000*w.rnd.Float64(), Impact: uint8(w.rnd.IntN(2))})
	}
}

// estimates are all that is known of a server.
func estimates(s *server, now int64) []float64 {
	var all []float64
	for _, size := range []float64{100, 2e3, 5e4, 3e5, 1e7} {
		all = append(all, s.model.Service(size, false), s.model.Service(size, true), s.model.Wait(size, size))
	}
	a, b, c := s.model.WaitWeights()
	e, f := s.model.Error()
	all = append(all, a, b, c, e, f, s.peak.now(now))
	return append(all, s.answers.seconds[:]...)
}

func four() []Server {
	return []Server{{Name: "a", M: 8}, {Name: "b", M: 8}, {Name: "c", M: 8}, {Name: "d", M: 8}}
}

func sum(m map[string]int) int {
	n := 0
	for _, v := range m {
		n += v
	}
	return n
}

// TestNewServerRamps (PROBLEMS P30): a new server has requests in its first second, and
// never more than its fair share while it ramps; no estimate of another's changes by its
// coming; then it has what the policy gives it.
func TestNewServerRamps(t *testing.T) {
	t.Parallel()
	for _, policy := range Policies() {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, Options{Policy: policy, FreeFirst: true})
			w.servers(four()...)
			w.load(3*time.Second, 600)
			before := map[string][]float64{}
			for _, s := range w.pool.servers {
				before[s.name] = estimates(s, w.now)
			}
			w.servers(append(four(), Server{Name: "new", M: 8})...)
			for _, s := range w.pool.servers {
				if s.name != "new" && !slices.Equal(before[s.name], estimates(s, w.now)) {
					t.Errorf("estimates of %s have changed by a new server", s.name)
				}
			}
			fresh := w.pool.known["new"]
			if got, others := fresh.model.Service(5000, false), w.pool.known["a"].model.Service(5000, false); got < others/2 || got > 2*others {
				t.Errorf("a new server is estimated at %v, others at %v", got, others)
			}
			for second := range 10 {
				placed := w.load(time.Second, 600)
				n, share := placed["new"], float64(sum(placed))/5
				if second == 0 && n == 0 || float64(n) > share+1 {
					t.Errorf("second %d: %d requests, the fair share is %.0f", second, n, share)
				}
			}
			if w.refused > 0 {
				t.Errorf("%d refused", w.refused)
			}
			if fresh.ramping = false; policy != WRR { // which knows no load
				if placed := w.load(3*time.Second, 600); placed["new"] == 0 {
					t.Errorf("after the ramp: %v", placed)
				}
			}
		})
	}
}

// TestColdStart: servers that begin together don't ramp.
func TestColdStart(t *testing.T) {
	t.Parallel()
	for _, policy := range Policies() {
		w := newWorld(t, Options{Policy: policy, FreeFirst: true})
		w.servers(four()[:2]...)
		w.now += int64(100 * time.Millisecond)
		w.servers(four()...)
		placed := w.load(time.Second, 1000)
		for _, s := range four() {
			if n := placed[s.Name]; n < sum(placed)/10 {
				t.Errorf("%s: %s has %d of %d", policy, s.Name, n, sum(placed))
			}
		}
		for _, g := range gauges(w.pool, w.now) {
			if g.Ramping {
				t.Errorf("%s: %s ramps", policy, g.Server)
			}
		}
	}
}

// TestFastAgain: a server that was slow is tried again when it no longer is, and has its
// part of the load.
func TestFastAgain(t *testing.T) {
	t.Parallel()
	for _, policy := range []Policy{A1, A2, A3, LL, P2C, PeakEWMA, Prequal, ICBS} {
		w := newWorld(t, Options{Policy: policy, FreeFirst: true, Elapsed: true})
		w.servers(four()...)
		slow := w.now + 2*second
		w.service = func(server string, now int64) float64 {
			if server == "b" && now >= slow && now < slow+3*second {
				return 0.2
			}
			return 0.02
		}
		w.load(40*time.Second, 1000)
		placed := w.load(5*time.Second, 1000)
		if n, fair := placed["b"], sum(placed)/4; 2*n < fair {
			t.Errorf("%s: %d requests, the fair share is %d", policy, n, fair)
		}
	}
}

// TestSlowServer: a server that becomes ten times slower has less than half of its fair
// share in the second after the next, by every policy that looks at load or time. With
// Elapsed it does before any slow answer has come.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	for _, policy := range []Policy{A1, A2, A3, LL, P2C, PeakEWMA, Prequal, ICBS, Auto} {
		for _, factor := range []float64{10, 1e6} {
			w := newWorld(t, Options{Policy: policy, FreeFirst: true, Elapsed: true})
			w.servers(four()...)
			w.load(3*time.Second, 600)
			slow := w.now
			w.service = func(server string, now int64) float64 {
				if server == "b" && now >= slow {
					return 0.02 * factor
				}
				return 0.02
			}
			w.load(time.Second, 600)
			placed := w.load(time.Second, 600)
			if n, fair := placed["b"], sum(placed)/4; 2*n > fair {
				t.Errorf("%s, %gx slower: %d requests, its fair share is %d", policy, factor, n, fair)
			}
		}
	}
}

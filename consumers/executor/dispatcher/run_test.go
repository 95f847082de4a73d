package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"penstock/schemas/event"
)

// Once a second each server that may be used or has work says what it has.
func TestGauges(t *testing.T) {
	t.Parallel()
	g := &gauges{more: make(chan struct{}, 1)}
	w := begin(t, func(o *Options) { o.Gauges = g }, zoneOf("z", "a", "b", "c"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	tick := func(n int) []string {
		t.Helper()
		if err := w.clock.Await(ctx, 1); err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(time.Second)
		late := time.After(20 * time.Second)
		for {
			g.mu.Lock()
			if len(g.all) >= n {
				defer g.mu.Unlock()
				var out []string
				for i := range g.all {
					x := &g.all[i]
					if err := x.Check(); err != nil || x.Backlog != event.NullInt || x.Site != "here" {
						t.Errorf("%v: %+v", err, x)
					}
					out = append(out, fmt.Sprintf("%d %s: %d %d %d+%d %d", x.Time-began.UnixMicro(), x.Server, x.InService, x.Queued, x.QueuedStatic, x.QueuedDynamic, x.PotentialOverdue))
				}
				g.all = nil
				return out
			}
			g.mu.Unlock()
			select {
			case <-g.more:
			case <-late:
				t.Fatal("no gauges")
			}
		}
	}
	expect := func(got []string, want ...string) {
		t.Helper()
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	expect(tick(3), "1000000 a: 0 0 0+0 0", "1000000 b: 0 0 0+0 0", "1000000 c: 0 0 0+0 0")
	for range 3 {
		w.ask(Facts{Class: "dynamic"})
	}
	w.ask(Facts{Class: "static"})
	w.Usable([]string{"a"})
	w.clock.Advance(500 * time.Millisecond) // gauges come with seconds
	got := tick(3)
	if len(got) != 3 || !strings.HasPrefix(got[0], "2500000 a: 1 1 1+0 ") || got[1] != "2500000 b: 1 0 0+0 0" {
		t.Errorf("got %q", got)
	}
	w.Usable(nil)
	got = tick(4)
	if len(got) != 4 || !strings.HasPrefix(got[3], "3500000 : 0 1 ") || !strings.HasSuffix(got[3], " 1500000") {
		t.Errorf("got %q", got) // the static one waits for 2.5 s, its limit is 1 s, a second costs 1
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Metrics say what the state says.
func TestMetrics(t *testing.T) {
	t.Parallel()
	r := prometheus.NewPedanticRegistry()
	w := begin(t, func(o *Options) { o.Registerer = r }, zoneOf("z", "a"), zoneOf("y", "b"))
	w.ask(Facts{Class: "static"})
	w.ask(Facts{Class: "static"})
	w.ask(Facts{Class: "static"})
	w.next().served(time.Second)
	want := `
# HELP penstock_dispatcher_answers_total Requests that the server answered.
# TYPE penstock_dispatcher_answers_total counter
penstock_dispatcher_answers_total{server="a",site="here",zone="z"} 1
penstock_dispatcher_answers_total{server="b",site="here",zone="y"} 0
# HELP penstock_dispatcher_in_service Requests in service at the server, of this entry point.
# TYPE penstock_dispatcher_in_service gauge
penstock_dispatcher_in_service{server="a",site="here",zone="z"} 1
penstock_dispatcher_in_service{server="b",site="here",zone="y"} 1
# HELP penstock_dispatcher_requests_total Requests that asked for a place at a server, by what became of that.
# TYPE penstock_dispatcher_requests_total counter
penstock_dispatcher_requests_total{result="full",site="here"} 0
penstock_dispatcher_requests_total{result="left",site="here"} 0
penstock_dispatcher_requests_total{result="no-server",site="here"} 0
penstock_dispatcher_requests_total{result="started",site="here"} 3
# HELP penstock_dispatcher_service_seconds_total Service times of the requests that the server answered.
# TYPE penstock_dispatcher_service_seconds_total counter
penstock_dispatcher_service_seconds_total{server="a",site="here",zone="z"} 1
penstock_dispatcher_service_seconds_total{server="b",site="here",zone="y"} 0
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "penstock_dispatcher_answers_total", "penstock_dispatcher_service_seconds_total", "penstock_dispatcher_in_service", "penstock_dispatcher_requests_total"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(r); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// Whatever happens at once, no server has more than its places, each request has one
// place at most, and in the end nothing is left.
func TestAllAtOnce(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"A1", "A2", "A3", "ll", "p2c", "icbs", "auto"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			const m = 3
			sh := &shares{m: map[string]int{}}
			s, err := New(Options{
				Site: "here", Policy: policy, InService: m, Queue: 20, Shares: sh, Zones: []Zone{zoneOf("x", "a", "b"), zoneOf("y", "c", "d")},
				Classes: []Class{{Name: "dynamic", Limit: time.Millisecond, Penalty: 1, Dynamic: true}},
			})
			if err != nil {
				t.Fatal(err)
			}
			var in [4]atomic.Int64
			var left, refused, ended atomic.Int64
			var clients sync.WaitGroup
			var epoch atomic.Uint64
			change := func(r *rand.Rand) {
				switch r.IntN(5) {
				case 0:
					s.Usable([][]string{{"a", "b", "c", "d"}, {"a"}, nil, {"b", "d"}}[r.IntN(4)])
				case 1:
					off := []string{"a", "c"}[:r.IntN(3)]
					_ = s.Put(table(off, map[string]float64{"x": 1, "y": float64(r.IntN(3))}, "b", "d"), epoch.Add(1), time.Time{})
				case 2:
					sh.set([]string{"a", "b", "c", "d"}[r.IntN(4)], r.IntN(m+1))
				case 3:
					s.State()
					s.gauge()
				case 4:
					s.giveWay()
				}
			}
			for i := range 24 {
				clients.Go(func() {
					r := rand.New(rand.NewPCG(uint64(i), 1))
					for range 100 {
						if r.IntN(20) == 0 {
							change(r)
						}
						ctx, cancel := context.WithCancel(context.Background())
						if r.IntN(4) == 0 {
							time.AfterFunc(time.Duration(r.IntN(300))*time.Microsecond, cancel)
						}
						ticket, err := s.Admit(ctx, Facts{Class: []string{"dynamic", ""}[r.IntN(2)], Key: uint64(r.IntN(9)), Body: int64(r.IntN(1000))})
						switch {
						case err == nil:
							server := &in[ticket.Server()[0]-'a']
							if n := server.Add(1); n > m {
								t.Errorf("%s has %d", ticket.Server(), n)
							}
							for range r.IntN(200) {
								server.Load()
							}
							server.Add(-1)
							ticket.Done(Result{OK: r.IntN(9) > 0, Gone: r.IntN(9) == 0, Answer: int64(r.IntN(10_000))})
							ended.Add(1)
						case errors.Is(err, ErrFull) || errors.Is(err, ErrNoServer):
							refused.Add(1)
						default:
							left.Add(1)
						}
						cancel()
					}
				})
			}
			done := make(chan struct{})
			go func() { clients.Wait(); close(done) }()
			tick := time.NewTicker(10 * time.Millisecond) // what Run does
			defer tick.Stop()
		wait:
			for late := time.After(60 * time.Second); ; {
				select {
				case <-done:
					break wait
				case <-late:
					t.Fatalf("they don't end: %+v", s.State())
				case <-tick.C:
					s.Usable([]string{"a", "b", "c", "d"})
					for _, name := range []string{"a", "b", "c", "d"} {
						sh.set(name, m)
					}
				}
			}
			c := s.State().Counts
			if c.Arrived != c.Started+c.Full+c.NoServer+c.Left || c.Started != c.Answered+c.Failed+c.Gone || len(s.waiting) > 0 {
				t.Errorf("counted %+v, %d wait", c, len(s.waiting))
			}
			if uint64(ended.Load()) > c.Started || uint64(refused.Load()) != c.Full+c.NoServer {
				t.Errorf("%d ended, %d left, %d refused: %+v", ended.Load(), left.Load(), refused.Load(), c)
			}
			for _, z := range s.State().Zones {
				if z.Requests != 0 {
					t.Errorf("zone %s has %d", z.Name, z.Requests)
				}
			}
		})
	}
}

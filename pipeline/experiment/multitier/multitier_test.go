package multitier

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"penstock/consumers/decider/split"
)

// pair is an application of two sites: web calls db.
func pair() *App {
	return &App{
		Sites: []Site{{Name: "A", Egress: 0.1}, {Name: "B", Egress: 0.2}}, Entry: Call{Bytes: 1000, Answer: 2000},
		RTT:    [][]time.Duration{{0, 40 * time.Millisecond}, {40 * time.Millisecond, 0}},
		Within: Way{Rate: 1e12}, Between: Way{Rate: 1e12},
		Components: []Component{
			{Name: "web", Servers: []int{4, 4}, Service: 5 * time.Millisecond, CV: 1, Heavy: 1, Calls: []Call{{To: 1, Light: 1, Heavy: 1, Times: 1, Bytes: 100, Answer: 300}}},
			{Name: "db", Servers: []int{2, 2}, Service: 10 * time.Millisecond, CV: 1, Heavy: 3},
		},
	}
}

func options(t *testing.T, a *App, policy string) *Options {
	t.Helper()
	c := split.Config{Policy: policy}
	var rate []float64
	for i, s := range a.Sites {
		c.Sites = append(c.Sites, split.Site{Name: s.Name, Lon: float64(10 * i)})
		rate = append(rate, 40)
	}
	p, err := split.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &Options{
		App: a, Arrivals: Arrivals{Rate: rate, Day: time.Hour}, Users: 100, Policy: p, Seed: 1, Length: 3 * time.Minute,
		Feedback: 2 * time.Second, Deadline: 5 * time.Second, Queue: 1000, Focus: 1, From: time.Minute, To: 3 * time.Minute,
	}
}

func run(t *testing.T, o *Options) *Measured {
	t.Helper()
	m, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTheAgendaIsInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var a agenda
	var want []item
	for i := range 2000 {
		at := int64(r.IntN(300))
		a.put(at, entering, int32(i))
		want = append(want, item{at: at, seq: uint64(i + 1), what: entering, who: int32(i)})
	}
	slices.SortStableFunc(want, func(x, y item) int { return cmp.Compare(x.at, y.at) })
	for i := range want {
		if got := a.take(); got != want[i] {
			t.Fatalf("number %d: got %+v, expected %+v", i, got, want[i])
		}
	}
}

// TestAQueueIsAsTheTheorySays: the mean of one server's queue is that of Pollaczek
// and Khinchine, of two with exponential-like variation near Erlang's.
func TestAQueueIsAsTheTheorySays(t *testing.T) {
	for _, c := range []struct {
		cv, load float64
	}{{0, 0.5}, {0.5, 0.7}} {
		a := pair()
		a.Sites, a.RTT = a.Sites[:1], [][]time.Duration{{0}}
		a.Entry = Call{}
		a.Components = []Component{{Name: "one", Servers: []int{1}, Service: 10 * time.Millisecond, CV: c.cv, Heavy: 1}}
		o := options(t, a, split.Closest)
		o.Arrivals.Rate = []float64{c.load / 0.010}
		o.Length, o.Focus, o.Deadline, o.Queue = 20*time.Minute, 0, time.Hour, 1_000_000
		m := run(t, o)
		var sum float64
		for _, r := range m.Requests {
			sum += float64(r.Latency)
		}
		got := sum / float64(len(m.Requests)) / 1000
		want := 10 + c.load*10*(1+c.cv*c.cv)/(2*(1-c.load))
		if math.Abs(got-want) > 0.05*want {
			t.Errorf("variation %v, load %v: mean %.2f ms, the theory says %.2f", c.cv, c.load, got, want)
		}
		if n := float64(len(m.Requests)) / o.Length.Seconds(); math.Abs(n-o.Arrivals.Rate[0]) > 0.03*n {
			t.Errorf("%v requests a second, expected %v", n, o.Arrivals.Rate[0])
		}
	}
}

// TestASeedIsARun: the same seed gives the same run, another another; arrivals do
// not depend on the policy.
func TestASeedIsARun(t *testing.T) {
	first := run(t, options(t, pair(), split.Greedy))
	if again := run(t, options(t, pair(), split.Greedy)); !reflect.DeepEqual(first, again) {
		t.Error("the same seed gave another run")
	}
	o := options(t, pair(), split.Greedy)
	o.Seed = 2
	if other := run(t, o); reflect.DeepEqual(first.Requests, other.Requests) {
		t.Error("another seed gave the same run")
	}
	arrivals := func(m *Measured) []int64 {
		var out []int64
		for _, r := range m.Requests {
			out = append(out, r.At*2+int64(r.Site))
		}
		slices.Sort(out)
		return out
	}
	if !slices.Equal(arrivals(first), arrivals(run(t, options(t, pair(), split.Closest)))) {
		t.Error("two policies met different arrivals")
	}
}

// TestEveryFaultIsFelt: each change does what it says, where it says, while it
// lasts.
func TestEveryFaultIsFelt(t *testing.T) {
	const from, to = 60 * time.Second, 110 * time.Second
	p50 := func(m *Measured, site int, a, b time.Duration) float64 {
		return float64(m.Latency(site, a, b).P50.Microseconds()) / 1000
	}
	calm := run(t, options(t, pair(), split.Closest))
	for _, c := range []struct {
		name   string
		change Change
		least  float64 // ms that the median at A rises by
	}{
		{"servers", Change{Component: 1, Servers: 0.5}, 2},
		{"latency", Change{Component: 1, Latency: 100 * time.Millisecond}, 99},
		{"spread latency", Change{Component: 1, Latency: 100 * time.Millisecond, Spread: true}, 50},
		{"slow", Change{Component: 1, Slow: 3}, 10},
		{"within", Change{Within: 20 * time.Millisecond}, 38},
		{"arrivals", Change{Arrivals: 4}, 2},
		{"heavy", Change{Heavy: 3}, 2},
		{"between", Change{Between: time.Second}, 0},
	} {
		o := options(t, pair(), split.Closest)
		o.Heavy = 0.1
		base := run(t, o)
		o = options(t, pair(), split.Closest)
		o.Heavy = 0.1
		c.change.From, c.change.To = from, to
		o.Changes = []Change{c.change}
		m := run(t, o)
		before, during, after := p50(m, 0, 0, from), p50(m, 0, from, to), p50(m, 0, to+30*time.Second, o.Length)
		if rise := during - p50(base, 0, from, to); rise < c.least || c.least == 0 && rise > 0.5 {
			t.Errorf("%s: the median at A rose by %.1f ms, expected at least %.1f", c.name, rise, c.least)
		}
		if math.Abs(before-p50(base, 0, 0, from)) > 1 || math.Abs(after-p50(base, 0, to+30*time.Second, o.Length)) > 2 {
			t.Errorf("%s: medians of %.1f ms before and %.1f ms after, without it %.1f", c.name, before, after, p50(base, 0, 0, from))
		}
		if b, without := p50(m, 1, from, to), p50(base, 1, from, to); math.Abs(b-without) > 1 {
			t.Errorf("%s: the median at B is %.1f ms, without it %.1f", c.name, b, without)
		}
	}
	if calm.Bytes != 0 || calm.Moved != 0 || calm.Tables != 0 || calm.USD != 0 {
		t.Errorf("without a fault the nearest site moved %d calls, %d bytes, %d tables", calm.Moved, calm.Bytes, calm.Tables)
	}
}

// TestTheLoopLeavesWhatIsSlow: a slow replica loses its calls within a few windows
// and has them back afterwards; bytes between sites are those of the calls moved.
func TestTheLoopLeavesWhatIsSlow(t *testing.T) {
	o := options(t, pair(), split.Greedy)
	o.Length, o.From, o.To = 10*time.Minute, 2*time.Minute, 5*time.Minute
	o.Changes = []Change{{From: o.From, To: o.To, Component: 1, Latency: 300 * time.Millisecond}}
	m := run(t, o)
	width := int(o.Policy.Width().Seconds())
	for _, n := range []int{2*60/width + 5, 4 * 60 / width} {
		if m.Shares[n] > 0.1 {
			t.Errorf("window %d: a share of %.2f stayed at the slow replica", n, m.Shares[n])
		}
	}
	if m.Shares[5] != 1 || m.Shares[9*60/width] < 0.95 {
		t.Errorf("shares of %.2f before and %.2f long after", m.Shares[5], m.Shares[9*60/width])
	}
	if m.Moved == 0 || m.Bytes < m.Moved*100 || m.USD <= 0 || m.Probes <= 0 || m.Probes > 0.1 {
		t.Errorf("%d calls moved, %d bytes, %v dollars, probes of %v", m.Moved, m.Bytes, m.USD, m.Probes)
	}
}

// TestWhatFails: a full queue and a deadline are failures, counted as the
// deadline; nobody waits longer.
func TestWhatFails(t *testing.T) {
	o := options(t, pair(), split.Closest)
	o.Queue, o.Arrivals.Rate = 5, []float64{300, 40}
	l := run(t, o).Latency(0, o.From, o.To)
	if part := float64(l.Failed) / float64(l.Requests); part < 0.25 || part > 0.42 || l.P99 != o.Deadline {
		t.Errorf("300 a second on 200: %v failed, p99 %v", part, l.P99)
	}
	o = options(t, pair(), split.Closest)
	o.Queue, o.Arrivals.Rate, o.Deadline = 1_000_000, []float64{300, 40}, 500*time.Millisecond
	m := run(t, o)
	if l := m.Latency(0, o.From, o.To); l.Failed*4 < l.Requests || l.P90 != o.Deadline {
		t.Errorf("beyond the deadline: %d of %d failed, p90 %v", l.Failed, l.Requests, l.P90)
	}
	if l := m.Latency(1, o.From, o.To); l.Failed > 0 {
		t.Errorf("%d failed at the other site", l.Failed)
	}
	if l := m.Latency(Everywhere, time.Hour, 2*time.Hour); l != (Latency{}) {
		t.Errorf("without a request: %+v", l)
	}
}

func TestApplicationsThatAreNone(t *testing.T) {
	for name, spoil := range map[string]func(*App, *Options){
		"no sites":       func(a *App, _ *Options) { a.Sites = nil },
		"backward call":  func(a *App, _ *Options) { a.Components[1].Calls = []Call{{To: 0, Times: 1}} },
		"unknown call":   func(a *App, _ *Options) { a.Components[1].Calls = []Call{{To: 7, Times: 1}} },
		"never called":   func(a *App, _ *Options) { a.Components[0].Calls[0].Times = 0 },
		"no service":     func(a *App, _ *Options) { a.Components[0].Service = 0 },
		"no rate":        func(a *App, _ *Options) { a.Between.Rate = 0 },
		"servers":        func(a *App, _ *Options) { a.Components[0].Servers = []int{1} },
		"slow feedback":  func(_ *App, o *Options) { o.Feedback = 10 * time.Second },
		"no queue":       func(_ *App, o *Options) { o.Queue = 0 },
		"nobody":         func(_ *App, o *Options) { o.Users = 0 },
		"no round trips": func(a *App, _ *Options) { a.RTT = nil },
	} {
		a := pair()
		o := options(t, a, split.Greedy)
		spoil(a, o)
		if _, err := Run(context.Background(), o); !errors.Is(err, ErrApp) {
			t.Errorf("%s: got %v, expected ErrApp", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, options(t, pair(), split.Greedy)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, expected the context's end", err)
	}
}

func BenchmarkRun(b *testing.B) {
	b.ReportAllocs()
	var calls int64
	for b.Loop() {
		a := pair()
		p, err := split.New(split.Config{Sites: []split.Site{{Name: "A"}, {Name: "B", Lon: 10}}})
		if err != nil {
			b.Fatal(err)
		}
		m, err := Run(context.Background(), &Options{
			App: a, Arrivals: Arrivals{Rate: []float64{40, 40}, Day: time.Hour}, Users: 100, Policy: p, Seed: 1, Length: 10 * time.Minute,
			Feedback: 2 * time.Second, Deadline: 5 * time.Second, Queue: 100, To: 10 * time.Minute,
		})
		if err != nil {
			b.Fatal(err)
		}
		calls += m.Calls
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(calls), "ns/call")
}

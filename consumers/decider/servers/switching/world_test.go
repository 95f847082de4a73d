package switching

import (
	"math"
	"math/rand/v2"
	"time"
)

// world is a site whose servers do as the rule says: requests come by a rate, wait in one
// queue a zone, and take a time in service. Its clock is whole seconds.
type world struct {
	rule  *Rule
	rng   *rand.Rand
	opts  Options
	delay int // s that a server takes to start
	limit float64
	// rate of requests a second at a second, and their mean time in service, s.
	rate func(second int) float64
	mean float64
	// dies says whether a server that is started at a second fails to.
	dies func(server, second int) bool

	now     int
	state   []State
	ready   []int // second in which one that starts is on
	busy    [][]int
	waiting [][]int // by zone: seconds of arrival
	load    []Load
	weights []float64

	lag  int // how many seconds old the loads are that the rule sees
	late [][]Load

	arrived, served, penalty, cost float64
	events                         []change
	least                          int
}

// change is a server that was turned on or off.
type change struct {
	at, server int
	on         bool
	code       Code
}

func newWorld(o Options, seed uint64, on int) (*world, error) {
	rule, err := New(o)
	if err != nil {
		return nil, err
	}
	o = rule.opts
	w := &world{
		rule: rule, rng: rand.New(rand.NewPCG(seed, 7)), opts: o, delay: int(o.StartDelay / time.Second), limit: 1, mean: 1,
		state: make([]State, len(o.Servers)), ready: make([]int, len(o.Servers)), busy: make([][]int, len(o.Servers)),
		waiting: make([][]int, rule.zones), load: make([]Load, rule.zones), least: len(o.Servers),
		dies: func(int, int) bool { return false },
	}
	for i := range on {
		w.state[i] = On
	}
	w.weights = make([]float64, rule.zones)
	for z := range w.weights {
		w.weights[z] = 1 / float64(rule.zones)
	}
	return w, nil
}

// run runs so many seconds.
func (w *world) run(seconds int) {
	for range seconds {
		w.second()
	}
}

func (w *world) second() {
	clear(w.load)
	w.finish()
	w.arrive()
	running := 0
	for i, s := range w.state {
		if s == Starting && w.now >= w.ready[i] {
			w.state[i] = On
			if w.dies(i, w.now) {
				w.state[i] = Failed
			}
		}
		if s == On || s == Starting {
			running++
			w.cost += w.opts.Servers[i].Cost
		}
	}
	w.start()
	w.least = min(w.least, running)
	o := w.observe()
	d := w.rule.Step(o)
	w.apply(&d)
	w.now++
}

func (w *world) finish() {
	for i := range w.busy {
		left := w.busy[i][:0]
		for _, end := range w.busy[i] {
			if end > w.now {
				left = append(left, end)
				continue
			}
			w.served++
		}
		if w.busy[i] = left; w.state[i] == Draining && len(left) == 0 {
			w.state[i] = Off
		}
	}
}

func (w *world) arrive() {
	for range poisson(w.rng, w.rate(w.now)) {
		w.arrived++
		x, z := w.rng.Float64(), 0
		for z < len(w.weights)-1 && x >= w.weights[z] {
			x -= w.weights[z]
			z++
		}
		w.waiting[z] = append(w.waiting[z], w.now)
	}
}

// start gives what waits to the servers that are on.
func (w *world) start() {
	for i, s := range w.state {
		z := w.opts.Servers[i].Zone
		for s == On && len(w.busy[i]) < w.opts.Servers[i].Slots && len(w.waiting[z]) > 0 {
			came := w.waiting[z][0]
			w.waiting[z] = w.waiting[z][1:]
			took := max(1, int(math.Round(w.rng.ExpFloat64()*w.mean)))
			w.busy[i] = append(w.busy[i], w.now+took)
			late := max(0, float64(w.now-came)-w.limit)
			l := &w.load[z]
			l.Requests++
			l.Service += float64(took)
			l.Penalty += late
			w.penalty += late
		}
	}
}

func (w *world) observe() Observation {
	for z := range w.load {
		w.load[z].Queued = float64(len(w.waiting[z]))
		for _, came := range w.waiting[z] {
			w.load[z].Potential += max(0, float64(w.now-came)-w.limit)
		}
	}
	for i := range w.busy {
		w.load[w.opts.Servers[i].Zone].InService += float64(len(w.busy[i]))
	}
	seen := w.load
	if w.lag > 0 {
		w.late = append(w.late, append([]Load(nil), w.load...))
		seen = w.late[max(0, len(w.late)-1-w.lag)]
		w.late = w.late[max(0, len(w.late)-1-w.lag):]
	}
	return Observation{At: int64(w.now+1) * int64(time.Second), Zones: seen, Servers: append([]State(nil), w.state...), Gauged: true}
}

func (w *world) apply(d *Decision) {
	for _, i := range d.On {
		w.events = append(w.events, change{w.now, i, true, d.Code})
		if w.state[i] == Draining {
			w.state[i] = On
			continue
		}
		w.state[i], w.ready[i] = Starting, w.now+w.delay
	}
	for _, i := range d.Off {
		w.events = append(w.events, change{w.now, i, false, d.Code})
		w.state[i] = Draining
	}
	w.weights = d.Weights
}

// poisson draws a number of that mean.
func poisson(rng *rand.Rand, mean float64) (n int) {
	if mean > 50 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*rng.NormFloat64())))
	}
	for x := rng.ExpFloat64(); x < mean; x += rng.ExpFloat64() {
		n++
	}
	return n
}

// day is the rate of a day that swings between two rates, lowest at its begin.
func day(low, high float64) func(int) float64 {
	return func(second int) float64 {
		return low + (high-low)*(1-math.Cos(2*math.Pi*float64(second%86400)/86400))/2
	}
}

// small are n servers of 4 places in so many zones, in turn.
func small(n, zones int) []Server {
	out := make([]Server, n)
	for i := range out {
		out[i] = Server{Zone: i % zones, Slots: 4}
	}
	return out
}

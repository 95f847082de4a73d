package codes

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"testing"

	"penstock/consumers/decider/coding/threshold"
	"penstock/consumers/executor/coder/queue"
	"penstock/schemas/control"
)

// world is the queue's core with its chooser in front of a store of independent delays,
// event by event.
type world struct {
	core *queue.Core
	rng  *rand.Rand
	now  float64 // ms
	due  due

	done      int
	sum, sum2 float64 // of delays
	used      float64 // ms of connections
	most      int     // of them in use
}

// The store of PAPERS §3.2 and the size of a read (MB).
var store, size = threshold.DefaultRead, 3.0

// run is a task's time on a connection.
type run struct {
	began float64
	over  bool
}

// event is the end of a task, or an arrival.
type event struct {
	at   float64
	task *queue.Task
}

type due []event

func (d due) Len() int           { return len(d) }
func (d due) Less(i, j int) bool { return d[i].at < d[j].at }
func (d due) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *due) Push(x any)        { *d = append(*d, x.(event)) }
func (d *due) Pop() any          { x := (*d)[len(*d)-1]; *d = (*d)[:len(*d)-1]; return x }

// simulate serves n reads of 3 MB at a rate (requests a second) over 16 connections.
func simulate(c queue.Chooser, rate float64, n int, seed uint64) *world {
	w := &world{
		core: queue.NewCore(queue.CoreOptions{Connections: 16, MaxWaiting: math.MaxInt, Chooser: c}),
		rng:  rand.New(rand.NewPCG(seed, 3)),
	}
	next := func() { heap.Push(&w.due, event{at: w.now + w.rng.ExpFloat64()*1000/rate}) }
	next()
	for arrived := 0; w.due.Len() > 0; {
		e := heap.Pop(&w.due).(event)
		w.now = e.at
		switch {
		case e.task == nil:
			w.arrive()
			if arrived++; arrived < n {
				next()
			}
		case !e.task.Data.(*run).over:
			w.end(e.task, nil)
		}
		w.settle()
	}
	return w
}

func (w *world) arrive() {
	w.core.Arrive(&queue.Request{Data: w.now, Plan: func(c queue.Code) queue.Plan {
		return queue.Plan{Tasks: make([]queue.Task, c.N), Need: c.K}
	}})
}

// end frees the connection of a task.
func (w *world) end(t *queue.Task, err error) {
	r := t.Data.(*run)
	r.over = true
	w.used += w.now - r.began
	w.core.Done(t, err)
}

func (w *world) settle() {
	for {
		for e, ok := w.core.Event(); ok; e, ok = w.core.Event() {
			switch e.Kind {
			case queue.Cancelled:
				w.end(e.Task, queue.ErrCancelled)
			case queue.Finished:
				d := w.now - e.Request.Data.(float64)
				w.done++
				w.sum += d
				w.sum2 += d * d
			}
		}
		t, ok := w.core.Next()
		if !ok {
			break
		}
		t.Data = &run{began: w.now}
		b := size / float64(t.Request().Code().K)
		heap.Push(&w.due, event{w.now + store.Fixed(b) + w.rng.ExpFloat64()*store.Mean(b), t})
		w.most = max(w.most, w.core.State().InUse)
	}
}

func (w *world) mean() float64 { return w.sum / float64(w.done) }

func (w *world) deviation() float64 {
	return math.Sqrt(w.sum2/float64(w.done) - w.mean()*w.mean())
}

func near(got, want, share float64) bool { return math.Abs(got/want-1) <= share }

// TestTheCoreUsesWhatTheModelSays: where requests hardly meet, one of (n,k) takes
// U = n·Δ + k·Ψ of connections and is answered after S (PAPERS §3.3).
func TestTheCoreUsesWhatTheModelSays(t *testing.T) {
	t.Parallel()
	for _, c := range []queue.Code{{N: 1, K: 1}, {N: 2, K: 1}, {N: 2, K: 2}, {N: 4, K: 2}, {N: 6, K: 3}, {N: 12, K: 6}} {
		const n = 3000
		w := simulate(queue.Fixed(c), 0.2, n, 7)
		if got, want := w.used/n, store.Usage(size, c.N, c.K); !near(got, want, 0.03) {
			t.Errorf("%+v uses %.1f ms of connections, by the model %.1f", c, got, want)
		}
		if got, want := w.mean(), store.Service(size, c.N, c.K); !near(got, want, 0.03) {
			t.Errorf("%+v is answered after %.1f ms, by the model after %.1f", c, got, want)
		}
	}
}

// TestTheCoreUnderLoad shows what the check simulation of PAPERS §3.5 did, of a rule that
// is the same: static codes, the paper's thresholds at a smoothing of 0.02, and greedy,
// whose delays spread more than twice as much while few wait.
func TestTheCoreUnderLoad(t *testing.T) {
	t.Parallel()
	const n = 5000
	const full = 16 / 0.126 // requests a second at (1,1)
	fixed := func(n, k int) func() queue.Chooser { return func() queue.Chooser { return queue.Fixed{N: n, K: k} } }
	by := func(p control.CodingPolicy) func() queue.Chooser {
		return func() queue.Chooser { return chooser(t, tableOf(p, paper), 0.02) }
	}
	deviations := map[float64][2]float64{}
	for _, tc := range []struct {
		name  string
		by    func() queue.Chooser
		load  float64
		want  float64 // ms
		share float64
	}{
		{"(1,1)", fixed(1, 1), .50, 127, .03},
		{"(1,1)", fixed(1, 1), .80, 135, .05},
		{"(12,6)", fixed(12, 6), .05, 42, .03},
		{"(12,6)", fixed(12, 6), .20, 71, .12},
		{"(6,3)", fixed(6, 3), .20, 55, .03},
		{"(3,2)", fixed(3, 2), .50, 86, .05},
		{"tofec", by(control.CodingTOFEC), .05, 42, .03},
		{"tofec", by(control.CodingTOFEC), .20, 54, .04},
		{"tofec", by(control.CodingTOFEC), .50, 91, .04},
		{"tofec", by(control.CodingTOFEC), .80, 151, .06},
		{"greedy", by(control.CodingGreedy), .05, 48, .04},
		{"greedy", by(control.CodingGreedy), .20, 69, .04},
		{"greedy", by(control.CodingGreedy), .50, 100, .04},
	} {
		w := simulate(tc.by(), tc.load*full, n, 11)
		if w.done != n || w.most > 16 {
			t.Fatalf("%s at %v: %d done, %d in use at most", tc.name, tc.load, w.done, w.most)
		}
		if !near(w.mean(), tc.want, tc.share) {
			t.Errorf("%s at %v: %.1f ms, expected %.1f", tc.name, tc.load, w.mean(), tc.want)
		}
		d := deviations[tc.load]
		switch tc.name {
		case "tofec":
			d[0] = w.deviation()
		case "greedy":
			d[1] = w.deviation()
		}
		deviations[tc.load] = d
	}
	for _, load := range []float64{.05, .20} {
		if d := deviations[load]; d[1] < 2*d[0] {
			t.Errorf("at %v the standard deviation of greedy is %.1f ms, that of tofec %.1f", load, d[1], d[0])
		}
	}
}

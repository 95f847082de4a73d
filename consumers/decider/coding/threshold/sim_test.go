package threshold

import (
	"math"
	"math/rand/v2"
)

// world is a coder in front of a store, event by event: the rule of PAPERS §3.4 with
// L connections, tasks that are independent, and cancels that free a connection at
// once. It knows nothing of the formulas that it tests.
type world struct {
	model  Model
	size   float64
	l      int
	alpha  float64
	choose func(q float64) (n, k int)

	rng     *rand.Rand
	now     float64
	events  events
	idle    int
	waiting []*request // from head on
	head    int
	tasks   []*task
	qbar    float64
	ks      map[int]int
	sum     float64
	met     float64 // waiting requests that arrivals found
	done    int
}

type request struct {
	arrived float64
	k, won  int
	tasks   []*task
}

type task struct {
	of      *request
	running bool
	over    bool
}

type happening struct {
	at   float64
	task *task // nil: an arrival
}

// events is a heap by time.
type events []happening

func (e *events) push(x happening) {
	h := append(*e, x)
	i := len(h) - 1
	for i > 0 && h[(i-1)/2].at > x.at {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = x
	*e = h
}

func (e *events) pop() happening {
	h := *e
	first, x := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*e = h
	for i := 0; len(h) > 0; {
		c := 2*i + 1
		if c+1 < len(h) && h[c+1].at < h[c].at {
			c++
		}
		if c >= len(h) || h[c].at >= x.at {
			h[i] = x
			break
		}
		h[i] = h[c]
		i = c
	}
	return first
}

// run serves n requests at a rate (per ms), leaves out a tenth to warm up, and returns
// the mean delay in ms. Requests that never end are cut off: the mean is then huge.
func (w *world) run(seed uint64, rate float64, n int) float64 {
	w.rng = rand.New(rand.NewPCG(seed, 1))
	w.idle, w.ks = w.l, map[int]int{}
	w.events.push(happening{at: w.rng.ExpFloat64() / rate})
	arrived, warm := 0, n/10
	for w.done < n {
		e := w.events.pop()
		w.now = e.at
		if e.task == nil {
			q := float64(len(w.waiting) - w.head)
			w.qbar = w.alpha*q + (1-w.alpha)*w.qbar
			w.met += q
			w.waiting = append(w.waiting, &request{arrived: w.now})
			if arrived++; arrived < n+n/10 {
				w.events.push(happening{at: w.now + w.rng.ExpFloat64()/rate})
			}
		} else if !e.task.over {
			w.finish(e.task, warm)
		}
		w.admit()
	}
	return w.sum / float64(n-warm)
}

func (w *world) finish(t *task, warm int) {
	t.over = true
	w.idle++
	r := t.of
	if r.won++; r.won < r.k {
		return
	}
	for _, x := range r.tasks {
		if !x.over {
			x.over = true
			if x.running {
				w.idle++
			}
		}
	}
	if w.done++; w.done > warm {
		w.sum += w.now - r.arrived
	}
}

func (w *world) admit() {
	for w.idle > 0 {
		for len(w.tasks) > 0 && w.tasks[0].over {
			w.tasks = w.tasks[1:]
		}
		if len(w.tasks) > 0 {
			t := w.tasks[0]
			w.tasks = w.tasks[1:]
			t.running = true
			w.idle--
			b := w.size / float64(t.of.k)
			w.events.push(happening{at: w.now + w.model.Fixed(b) + w.rng.ExpFloat64()*w.model.Mean(b), task: t})
			continue
		}
		if w.head == len(w.waiting) {
			return
		}
		r := w.waiting[w.head]
		w.head++
		n, k := w.choose(w.qbar)
		r.k = k
		w.ks[k]++
		for range n {
			t := &task{of: r}
			r.tasks = append(r.tasks, t)
			w.tasks = append(w.tasks, t)
		}
	}
}

// static and adaptive are what coders choose by.
func static(n, k int) func(float64) (int, int) { return func(float64) (int, int) { return n, k } }

func (t Table) adaptive(rmax float64) func(float64) (int, int) {
	return func(q float64) (int, int) { return t.Code(q, rmax) }
}

// envelope is the best mean (ms) of static codes at a rate, of the few that the formulas
// hold for best: they are right within a few per cent, and those that they hold for
// more than a tenth worse are left out.
func envelope(m Model, l Limits, rate float64, mean func(func(float64) (int, int)) float64) (best float64, bn, bk int) {
	n, k := BestStatic(m, l, rate)
	least, _ := Delay(m, l, n, k, rate)
	best = math.Inf(1)
	for k := 1; k <= l.KMax; k++ {
		for n := k; n <= l.top(k); n++ {
			if d, _ := Delay(m, l, n, k, rate); d > 1.1*least {
				continue
			}
			if x := mean(static(n, k)); x < best {
				best, bn, bk = x, n, k
			}
		}
	}
	return best, bn, bk
}

package solve

import "math"

// ways holds the best site of every choice at every site, given what calls cost
// at replicas and which replicas are open.
type ways struct {
	in    *Instance
	cost  []float64 // µs of a call at a replica itself
	open  []bool
	value []float64 // with the calls it makes
	best  [][]int   // by choice, by from site
	dirty []bool    // by component: a replica of it has changed
	rate  []float64 // scratch of spread: calls at replicas
}

func newWays(in *Instance, cost []float64) *ways {
	w := &ways{
		in: in, cost: cost, open: make([]bool, len(cost)), value: make([]float64, len(cost)),
		best: make([][]int, len(in.Choices)), dirty: make([]bool, in.Components), rate: make([]float64, len(cost)),
	}
	for r := range w.open {
		w.open[r] = true
	}
	for c := range w.best {
		n := 1
		if in.Choices[c].From != Source {
			n = in.Sites
		}
		w.best[c] = make([]int, n)
	}
	w.touch()
	return w
}

// touch says that all costs have changed.
func (w *ways) touch() {
	for j := range w.dirty {
		w.dirty[j] = true
	}
}

func (w *ways) close(r int) {
	w.open[r] = false
	w.dirty[r/w.in.Sites] = true
}

// solve brings values and best sites up to date. Components of which neither a
// replica nor a callee has changed are passed over.
func (w *ways) solve() {
	in := w.in
	for k := len(in.order) - 1; k >= 0; k-- {
		j := in.order[k]
		if !w.dirty[j] && !w.calleeChanged(j) {
			continue
		}
		w.dirty[j] = true
		w.component(j)
	}
	for c := range in.Choices {
		if in.Choices[c].From == Source {
			w.best[c][0], _ = w.pick(&in.Choices[c], 0)
		}
	}
	clear(w.dirty)
}

// calleeChanged relies on callees being dirty until the whole pass is over.
func (w *ways) calleeChanged(j int) bool {
	for _, c := range w.in.outs[j] {
		for i := range w.in.Choices[c].Legs {
			if w.dirty[w.in.Choices[c].Legs[i].To] {
				return true
			}
		}
	}
	return false
}

func (w *ways) component(j int) {
	m := w.in.Sites
	for n := range m {
		r := j*m + n
		w.value[r] = math.Inf(1)
		if w.open[r] {
			w.value[r] = w.cost[r]
		}
	}
	for _, c := range w.in.outs[j] {
		for n := range m {
			p, v := w.pick(&w.in.Choices[c], n)
			w.best[c][n] = p
			w.value[j*m+n] += v
		}
	}
}

// pick returns the best site for a choice from site n, the first of equals, and
// what it costs; −1 and +Inf if there is none.
func (w *ways) pick(ch *Choice, n int) (best int, least float64) {
	m := w.in.Sites
	best, least = -1, math.Inf(1)
	for p := range m {
		var v float64
		for i := range ch.Legs {
			l := &ch.Legs[i]
			v += float64(l.Ratio * (l.Cost[n*m+p] + w.value[l.To*m+p]))
		}
		if v < least {
			best, least = p, v
		}
	}
	return best, least
}

// source returns what a call of source c costs by the best way, +Inf if none.
func (w *ways) source(c int) float64 {
	_, v := w.pick(&w.in.Choices[c], 0)
	return v
}

// spread follows the best ways of the sources with those rates (by choice) and
// returns the load of all replicas. The result is valid until the next call.
func (w *ways) spread(rates []float64) []float64 {
	clear(w.rate)
	in := w.in
	for c, x := range rates {
		if x > 0 {
			w.send(c, 0, x)
		}
	}
	for _, j := range in.order {
		for n := range in.Sites {
			x := w.rate[j*in.Sites+n]
			if x == 0 {
				continue
			}
			for _, c := range in.outs[j] {
				w.send(c, n, x)
			}
		}
	}
	return w.rate
}

func (w *ways) send(c, n int, x float64) {
	p := w.best[c][n]
	for i := range w.in.Choices[c].Legs {
		l := &w.in.Choices[c].Legs[i]
		w.rate[l.To*w.in.Sites+p] += float64(x * l.Ratio)
	}
}

// add puts share times what spread has computed into the plan.
func (w *ways) add(plan *Plan, rates []float64, share float64) {
	in := w.in
	for c, x := range rates {
		if x > 0 {
			plan.Flow[c][w.best[c][0]] += float64(share * x)
		}
	}
	for j := range in.Components {
		for n := range in.Sites {
			x := w.rate[j*in.Sites+n]
			if x == 0 {
				continue
			}
			plan.Load[j*in.Sites+n] += float64(share * x)
			for _, c := range in.outs[j] {
				plan.Flow[c][n*in.Sites+w.best[c][n]] += float64(share * x)
			}
		}
	}
}

// copyBest returns a copy of the best sites.
func (w *ways) copyBest() [][]int {
	out := make([][]int, len(w.best))
	for c := range out {
		out[c] = append([]int(nil), w.best[c]...)
	}
	return out
}

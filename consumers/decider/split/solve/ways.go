package solve

import "math"

// ways holds the best site of every choice at every site, given what calls cost
// at replicas and which replicas are open.
//
// While replicas are only closed, values only rise: a choice whose best site has
// not risen keeps it. So after a replica was closed, little is computed anew.
type ways struct {
	in    *Instance
	cost  []float64 // µs of a call at a replica itself
	open  []bool
	value []float64   // with the calls it makes
	best  [][]int     // by choice, by from site
	way   [][]float64 // what the best costs
	stale bool        // values may have fallen: all is computed anew
	rose  []bool      // by replica, while solve runs
	moved []bool      // by component: one of its replicas rose
	shut  []int       // replicas that were closed since the last solve
	rate  []float64   // scratch of spread: calls at replicas
}

func newWays(in *Instance, cost []float64) *ways {
	w := &ways{
		in: in, cost: cost, open: make([]bool, len(cost)), value: make([]float64, len(cost)), best: make([][]int, len(in.Choices)),
		way: make([][]float64, len(in.Choices)), rose: make([]bool, len(cost)), moved: make([]bool, in.Components), rate: make([]float64, len(cost)), stale: true,
	}
	for r := range w.open {
		w.open[r] = true
	}
	for c := range w.best {
		n := 1
		if in.Choices[c].From != Source {
			n = in.Sites
		}
		w.best[c], w.way[c] = make([]int, n), make([]float64, n)
	}
	return w
}

// touch says that costs have changed, or replicas were opened.
func (w *ways) touch() { w.stale = true }

func (w *ways) close(r int) {
	w.open[r] = false
	w.shut = append(w.shut, r)
}

// solve brings values and best sites up to date.
func (w *ways) solve() {
	in := w.in
	clear(w.rose)
	clear(w.moved)
	for _, r := range w.shut {
		w.rose[r] = w.value[r] < math.Inf(1)
		w.moved[r/in.Sites] = true
	}
	for k := len(in.order) - 1; k >= 0; k-- {
		j := in.order[k]
		if !w.stale && !w.touched(j) {
			continue
		}
		w.moved[j] = true
		for n := range in.Sites {
			w.replica(j, n)
		}
	}
	for c := range in.Choices {
		if in.Choices[c].From == Source {
			w.choose(c, 0)
		}
	}
	w.stale, w.shut = false, w.shut[:0]
}

// touched reports whether a replica of the component was closed or one of its
// callees has been worked on.
func (w *ways) touched(j int) bool {
	if w.moved[j] {
		return true
	}
	for _, c := range w.in.outs[j] {
		for i := range w.in.Choices[c].Legs {
			if w.moved[w.in.Choices[c].Legs[i].To] {
				return true
			}
		}
	}
	return false
}

// replica brings the value of a replica up to date.
func (w *ways) replica(j, n int) {
	r := j*w.in.Sites + n
	v := math.Inf(1)
	if w.open[r] {
		v = w.cost[r]
	}
	changed := w.stale || w.rose[r]
	for _, c := range w.in.outs[j] {
		changed = w.choose(c, n) || changed
		v += w.way[c][n]
	}
	if changed {
		w.rose[r] = w.stale || v > w.value[r]
		w.value[r] = v
	}
}

// choose brings the best site of a choice from site n up to date and reports
// whether what it costs has changed.
func (w *ways) choose(c, n int) bool {
	ch := &w.in.Choices[c]
	if !w.stale {
		p := w.best[c][n]
		if p < 0 {
			return false
		}
		same := true
		for i := range ch.Legs {
			same = same && !w.rose[ch.Legs[i].To*w.in.Sites+p]
		}
		if same {
			return false
		}
	}
	before := w.way[c][n]
	w.best[c][n], w.way[c][n] = w.pick(ch, n)
	return w.stale || w.way[c][n] != before
}

// pick returns the best site for a choice from site n, the first of equals, and
// what it costs; −1 and +Inf if there is none.
func (w *ways) pick(ch *Choice, n int) (best int, least float64) {
	m := w.in.Sites
	best, least = -1, math.Inf(1)
	if len(ch.Legs) == 1 {
		l := &ch.Legs[0]
		cost, value := l.Cost[n*m:(n+1)*m], w.value[l.To*m:(l.To+1)*m]
		for p, x := range cost {
			if v := x + value[p]; v < least {
				best, least = p, v
			}
		}
		return best, float64(l.Ratio * least)
	}
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
func (w *ways) source(c int) float64 { return w.way[c][0] }

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

package solve

import "math"

// maxRounds is how often capacities are given out anew to calls that constraints
// keep from where there is room, before they are passed over altogether.
const maxRounds = 16

// full is the share of a capacity below which what is left counts as nothing.
const full = 1e-9

// loose is by how much more capacities are raised than calls need, so that an
// overloaded component is full nowhere before all its calls are placed.
const loose = 1e-7

// Greedy fills the best combination of replicas until one of them is full,
// closes it, and goes on with the best of what is left (PAPERS §4.2). All sources
// fill at once, in proportion to what they still have: none is served first.
func (in *Instance) Greedy() *Plan {
	plan := in.newPlan()
	capacity := in.scaled(plan)
	w := newWays(in, in.Service)
	w.solve()
	plan.Value = append([]float64(nil), w.value...)
	free := w.copyBest()
	left := append([]float64(nil), capacity...)
	for r, x := range left {
		if x == 0 {
			w.close(r)
		}
	}
	rates := in.rates()
	waiting := make([]float64, len(rates))
	for round := 0; ; round++ {
		in.fill(plan, w, rates, waiting, left, capacity)
		if !anyAbove(waiting) {
			break
		}
		if round == maxRounds+1 {
			copy(plan.Unplaced, waiting)
			for _, x := range waiting {
				plan.Spread -= x
			}
			break
		}
		// What is left has no way through replicas with room: their capacities
		// are given out once more, and in the end none counts.
		for r := range left {
			if left[r] = capacity[r]; round >= maxRounds {
				left[r] = math.Inf(1)
			}
			w.open[r] = w.open[r] || left[r] > 0
		}
		w.touch()
		for c, x := range waiting {
			rates[c], waiting[c] = x, 0
			if round == 0 {
				plan.Spread += x
			}
		}
	}
	w.solve()
	plan.Best = w.copyBest()
	for c := range plan.Best {
		for n, p := range plan.Best[c] {
			if p < 0 {
				plan.Best[c][n] = free[c][n]
			}
		}
	}
	return plan
}

// rates returns the rates of the sources by choice.
func (in *Instance) rates() []float64 {
	out := make([]float64, len(in.Choices))
	for c := range in.Choices {
		if in.Choices[c].From == Source {
			out[c] = in.Choices[c].Rate
		}
	}
	return out
}

func anyAbove(xs []float64) bool {
	for _, x := range xs {
		if x > 0 {
			return true
		}
	}
	return false
}

// fill places rates until all are placed or wait because no way is open.
func (in *Instance) fill(plan *Plan, w *ways, rates, waiting, left, capacity []float64) {
	for {
		w.solve()
		for c, x := range rates {
			if x > 0 && w.best[c][0] < 0 {
				waiting[c], rates[c] = x, 0
			}
		}
		if !anyAbove(rates) {
			return
		}
		load := w.spread(rates)
		share, at := 1.0, -1
		for r, x := range load {
			if x > 0 && left[r] < x*share {
				share, at = left[r]/x, r
			}
		}
		w.add(plan, rates, share)
		for r, x := range load {
			if x == 0 {
				continue
			}
			left[r] = max(0, left[r]-float64(share*x))
			if r == at || !math.IsInf(left[r], 1) && left[r] <= full*capacity[r] {
				left[r] = 0
				w.close(r)
			}
		}
		for c := range rates {
			if rates[c] *= 1 - share; at < 0 {
				rates[c] = 0
			}
		}
	}
}

// scaled returns the capacities, those of overloaded components raised so that
// together they take all calls.
func (in *Instance) scaled(plan *Plan) []float64 {
	out := append([]float64(nil), in.Capacity...)
	for j := range in.Components {
		plan.Overload[j] = 1
		reps := out[j*in.Sites : (j+1)*in.Sites]
		var sum float64
		for n, x := range reps {
			if math.IsInf(in.Service[j*in.Sites+n], 1) {
				reps[n] = 0
				continue
			}
			sum += x
		}
		if sum >= in.load[j] {
			continue
		}
		if sum == 0 {
			// Nobody is meant to take a call, and somebody has to: all alike.
			for n := range reps {
				if !math.IsInf(in.Service[j*in.Sites+n], 1) {
					reps[n] = 1
					sum++
				}
			}
		}
		if sum == 0 {
			continue
		}
		plan.Overload[j] = in.load[j] / sum
		for n := range reps {
			reps[n] *= plan.Overload[j] * (1 + loose)
		}
	}
	return out
}

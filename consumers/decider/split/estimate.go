package split

import (
	"math"
	"slices"
	"time"
)

// leastSamples is how many samples one window must have to be told apart from
// chance: its part of MinSamples.
func (t *Policy) leastSamples() int64 {
	return max(1, t.config.MinSamples/int64(t.config.History))
}

// weight of a window in the moving average: W for the newest, 1 for the oldest, 0
// beyond (PAPERS §4.2).
func (t *Policy) weight(window int64) int64 {
	if len(t.state.windows) == 0 {
		return 0
	}
	age := t.state.windows[0] - window
	return max(0, int64(t.config.History)-age)
}

// mean is the weighted moving average of a series, D = Σ (W−a)·c·x ÷ Σ (W−a)·c,
// and the number of samples it is of. If the two newest windows agree and the
// older ones are far from them, something has changed, and only the new ones
// count: an average over both would be true of neither.
func (t *Policy) mean(s series) (us float64, samples int64) {
	if len(t.state.windows) == 0 {
		return 0, 0
	}
	upto := len(s)
	if t.changed(s) {
		upto = 2
	}
	var sum, weights int64
	for _, x := range s[:upto] {
		w := t.weight(x.window)
		if w == 0 {
			continue
		}
		sum += w * x.sum
		weights += w * x.count
		samples += x.count
	}
	if weights == 0 {
		return 0, 0
	}
	return float64(sum) / float64(weights), samples
}

// changed reports whether the newest two windows agree with each other within
// 30 % (or 1 ms, or a tenth of their distance from the older ones: of few samples
// one that was held up moves the mean) and not with the older ones within a factor
// of two (and 5 ms).
func (t *Policy) changed(s series) bool {
	if len(s) < 3 || s[0].count < t.leastSamples() || s[1].count < t.leastSamples() || t.weight(s[1].window) == 0 {
		return false
	}
	var sum, count int64
	for _, x := range s[2:] {
		if t.weight(x.window) > 0 {
			sum += x.sum
			count += x.count
		}
	}
	if count < t.leastSamples() {
		return false
	}
	of := func(sum, count int64) float64 { return float64(sum) / float64(count) }
	a, b, old := of(s[0].sum, s[0].count), of(s[1].sum, s[1].count), of(sum, count)
	now := of(s[0].sum+s[1].sum, s[0].count+s[1].count)
	apart := math.Abs(now - old)
	if math.Abs(a-b) > max(1000, 0.3*max(a, b), 0.1*apart) {
		return false
	}
	return apart > 5000 && (now > 2*old || old > 2*now)
}

// rate is the number of calls a second of links or of a replica together,
// smoothed; windows that were decided and are not in a series count as none. A
// rise counts at once: replicas have to take the calls of now.
func (t *Policy) rate(all ...series) float64 {
	var calls, weights, last int64
	for _, s := range all {
		calls += t.calls(s)
		if len(s) > 0 && s[0].window == t.state.windows[0] {
			last += s[0].requests
		}
	}
	for _, w := range t.state.windows {
		weights += t.weight(w)
	}
	if weights == 0 {
		return 0
	}
	return max(float64(calls)/float64(weights), float64(last)) / t.config.Window.Seconds()
}

// calls is the weighted number of calls of a series.
func (t *Policy) calls(s series) int64 {
	var sum int64
	for _, x := range s {
		sum += t.weight(x.window) * x.requests
	}
	return sum
}

// estimates is what is known after a window.
type estimates struct {
	service []float64 // by component · sites + site: delay (µs), failures and the caller's own slowness included
	plain   []float64 // delay alone
	errors  []float64 // share of calls that failed
	known   []bool    // enough samples, or enough not long ago
	samples []int64
	load    []float64 // calls a second, smoothed
	limit   []float64 // calls a second, +Inf: none
	pairs   []float64 // network by from site · sites + to site, NaN: not measured
	pairN   []int64
}

// estimate brings together what the histories say.
func (t *Policy) estimate() *estimates {
	s, m := t.state, len(t.config.Sites)
	n := len(s.components) * m
	e := &estimates{
		service: make([]float64, n), plain: make([]float64, n), errors: make([]float64, n), known: make([]bool, n),
		samples: make([]int64, n), load: make([]float64, n), limit: make([]float64, n),
		pairs: make([]float64, m*m), pairN: make([]int64, m*m),
	}
	for j := range s.components {
		for p := range m {
			t.estimateReplica(e, j, p)
		}
		t.guess(e, j)
	}
	sums := make([]float64, m*m)
	for i := range s.edges {
		for a := range m {
			for b := range m {
				us, n := t.mean(s.edges[i].links[a][b])
				sums[a*m+b] += float64(us * float64(n))
				e.pairN[a*m+b] += n
			}
		}
	}
	for i := range e.pairs {
		if e.pairs[i] = math.NaN(); e.pairN[i] > 0 {
			e.pairs[i] = sums[i] / float64(e.pairN[i])
		}
	}
	return e
}

// old reports whether what is known of a replica is from before the windows that
// are averaged: then a few new samples say more.
func (t *Policy) old(r *replica) bool {
	return r.lastAt != noTime && t.state.now-r.lastAt > int64(t.config.History)*t.config.Window.Microseconds()
}

func (t *Policy) estimateReplica(e *estimates, j, p int) {
	rep := &t.state.replicas[j][p]
	r := j*len(t.config.Sites) + p
	us, n := t.mean(rep.history)
	e.samples[r] = n
	if n > 0 && rep.level > 0 {
		us = rep.level
	}
	// What was slow and is not any more is no reason to move.
	if h := rep.history; n > 0 && len(h) > 0 && h[0].window == t.state.windows[0] && h[0].count >= t.leastSamples() {
		us = min(us, float64(h[0].sum)/float64(h[0].count))
	}
	switch {
	case n >= t.config.MinSamples || n >= t.leastSamples() && t.old(rep) || n >= 2*t.leastSamples() && t.changed(rep.history):
		rep.lastKnown, rep.lastAt = us, t.state.now
		e.plain[r], e.known[r] = us, true
	case rep.lastAt != noTime && t.state.now-rep.lastAt <= t.config.TTL.Microseconds():
		e.plain[r], e.known[r] = rep.lastKnown, true
	case n > 0:
		e.plain[r] = us
	default:
		e.plain[r] = math.NaN()
	}
	var failed, calls, extra int64
	for _, x := range rep.history {
		w := t.weight(x.window)
		failed += w * x.errors
		extra += w * x.extra
		calls += w * x.requests
	}
	var more float64
	if calls > 0 {
		e.errors[r] = float64(failed) / float64(calls)
		more = float64(extra)/float64(calls) + float64(e.errors[r]*max(0, float64(t.config.ErrorCost/time.Microsecond)))
	}
	e.service[r] = e.plain[r] + more
	e.load[r] = t.rate(rep.history)
	e.limit[r] = rep.capacity.thresh
	if rep.capacity.slow == 0 {
		e.limit[r] = max(e.limit[r], e.load[r])
	}
	e.limit[r] = min(e.limit[r], t.told(j, p))
}

// levels takes the mean delays of the last windows in. What counts is a level that
// chance moves a fifth of the way, and what is beyond chance all of it: else each
// window's noise would be a reason to move.
func (t *Policy) levels() {
	for j := range t.state.replicas {
		for p := range t.state.replicas[j] {
			r := &t.state.replicas[j][p]
			us, n := t.mean(r.history)
			switch {
			case n == 0 || us <= 0:
			case r.level <= 0 || math.Abs(math.Log(us/r.level)) > 2*r.capacity.spread(t.leastSamples()):
				r.level = us
			default:
				r.level += float64(0.2 * (us - r.level))
			}
		}
	}
}

// told is the configured capacity of a replica, +Inf without one.
func (t *Policy) told(j, p int) float64 {
	if told := t.state.components[j].told; told != nil {
		if c, ok := told.Capacity[t.config.Sites[p].Name]; ok {
			return c
		}
	}
	return math.Inf(1)
}

// guess gives replicas without a sample the mean of the others: the same program
// runs there.
func (t *Policy) guess(e *estimates, j int) {
	m := len(t.config.Sites)
	var sum float64
	n := 0
	for _, x := range e.service[j*m : (j+1)*m] {
		if !math.IsNaN(x) {
			sum += x
			n++
		}
	}
	for r := j * m; r < (j+1)*m; r++ {
		if !math.IsNaN(e.service[r]) {
			continue
		}
		e.service[r] = 0
		if n > 0 {
			e.service[r] = sum / float64(n)
		}
		e.plain[r] = e.service[r]
	}
}

// network is the delay of a link of an edge: its own, else that of all calls
// between the two sites, else the assumed one. For locality-failover it is the
// assumed one and the rank of the site.
func (t *Policy) network(e *estimates, edge, a, b int) float64 {
	if t.config.Policy == LocalityFailover {
		return t.base[a*len(t.config.Sites)+b] + float64(slices.Index(t.near[a], b))
	}
	us, n := t.mean(t.state.edges[edge].links[a][b])
	i := a*len(t.config.Sites) + b
	switch {
	case n >= t.leastSamples():
		return us
	case e.pairN[i] >= t.leastSamples():
		return e.pairs[i]
	}
	return t.base[i]
}

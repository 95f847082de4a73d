package pool

import (
	"math"
	"math/bits"
	"slices"

	"penstock/consumers/executor/dispatcher/line"
)

// peak is a latency that rises at once and falls slowly.
type peak struct {
	seconds float64
	at      int64 // ns
}

// decay is the time in which a peak that nothing confirms falls to 1/e, in s: the
// default of Linkerd and Finagle.
const decay = 10

// now returns the peak as it is at an instant: without an answer it falls towards 0, so
// that a server that was slow is tried again.
func (k *peak) now(now int64) float64 {
	return k.seconds * math.Exp(-float64(now-k.at)/second/decay)
}

// observe a latency.
func (k *peak) observe(now int64, seconds float64) {
	if seconds < k.seconds {
		w := math.Exp(-float64(now-k.at) / second / decay)
		seconds = k.seconds*w + seconds*(1-w)
	}
	k.seconds, k.at = seconds, now
}

// peakEWMA is Linkerd's balancer: of two drawn servers the one whose peak latency times
// (requests there + 1) is lower.
type peakEWMA struct{ pool *Pool }

func (*peakEWMA) discipline() line.Discipline { return line.FIFO }

func (e *peakEWMA) choose(now int64, j *job) *server {
	a, b := e.pool.drawTwo(j)
	if b != nil && e.cost(now, b) < e.cost(now, a) {
		return b
	}
	return a
}

func (e *peakEWMA) cost(now int64, s *server) float64 {
	// One nanosecond tells servers apart by their load of whom nothing is known.
	return (s.peak.now(now)*e.pool.slowdown(now, s) + 1/second) * float64(s.load()+1)
}

// learn the latency from the arrival, as one who has no line in front of a server sees
// it. A failure counts as an answer that would have taken longer: one that comes at once
// makes no server look fast.
func (e *peakEWMA) learn(now int64, s *server, j *job, seconds float64, ok bool) {
	latency := float64(j.started-j.placed)/second + seconds
	if ok || latency > s.peak.now(now) {
		s.peak.observe(now, latency)
	}
}

// join begins with the median of the others' peaks.
func (e *peakEWMA) join(now int64, s *server, others []*server) {
	var known []float64
	for _, o := range others {
		if o.peak.seconds > 0 {
			known = append(known, o.peak.now(now))
		}
	}
	s.peak = peak{seconds: median(known), at: now}
}

// median of numbers, which it sorts; 0 of none.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	half := len(v) / 2
	if len(v)%2 == 1 {
		return v[half]
	}
	return (v[half-1] + v[half]) / 2
}

// Prequal's constants (PAPERS §2.7).
const (
	probes      = 16   // servers looked at for a decision
	hotQuantile = 0.84 // of the requests in flight of those
	loads       = 12   // buckets of requests in flight: 0, 1, 2–3, 4–7, …
	follow      = 0.2  // weight of one answer in the latency of a bucket
)

// answers holds a server's latencies by how many requests it had when one was placed;
// 0: nothing is known.
type answers struct {
	seconds [loads]float64
	last    int64 // ns: the last answer
}

func bucket(load int) int { return min(bits.Len(uint(max(load, 0))), loads-1) }

// at is the latency at a load, that of the nearest that is known, the lower one of two; 0
// if nothing is known.
func (a *answers) at(load int) float64 {
	b := bucket(load)
	for d := range loads {
		if b-d >= 0 && a.seconds[b-d] > 0 {
			return a.seconds[b-d]
		}
		if b+d < loads && a.seconds[b+d] > 0 {
			return a.seconds[b+d]
		}
	}
	return 0
}

func (a *answers) add(load int, seconds float64) {
	v := &a.seconds[bucket(load)]
	if *v == 0 {
		*v = max(seconds, 1/second)
		return
	}
	*v += follow * (seconds - *v)
}

// prequal is Prequal's hot-cold lexicographic rule: servers with more requests in flight
// than the quantile of those looked at are hot. Of the cold ones it takes that with the
// least latency at its load; if all are hot, that with the fewest in flight. Where
// Prequal asks the servers and keeps their answers for a while, a look is at the pool's
// own state, and always fresh.
type prequal struct {
	pool   *Pool
	looked [probes]*server
	flight [probes]int
}

func (*prequal) discipline() line.Discipline { return line.FIFO }

func (q *prequal) choose(now int64, j *job) *server {
	n := q.look(j)
	if n == 0 {
		return nil
	}
	slices.Sort(q.flight[:n])
	hot := q.flight[int(hotQuantile*float64(n-1))]
	best := q.looked[0]
	bHot := best.load() > hot
	least := math.Inf(1) // nobody asks for it of a hot one
	if !bHot {
		least = q.latency(now, best)
	}
	for _, s := range q.looked[1:n] {
		sHot, l := s.load() > hot, math.Inf(1)
		if !sHot {
			l = q.latency(now, s)
		}
		var better bool
		switch {
		case sHot != bHot:
			better = bHot
		case sHot:
			better = s.load() < best.load()
		case l != least:
			better = l < least
		default:
			better = s.load() < best.load() || s.load() == best.load() && s.placed < best.placed
		}
		if better {
			best, bHot, least = s, sHot, l
		}
	}
	return best
}

// look takes servers that may have the job: all of few, else those drawn, of which some
// may be the same.
func (q *prequal) look(j *job) int {
	n := 0
	live := q.pool.live
	if len(live) > probes {
		for range probes {
			if s := live[q.pool.draws.below(len(live))]; q.pool.may(s, j) {
				n = q.add(n, s)
			}
		}
		if n > 0 {
			return n
		}
	}
	for _, s := range live {
		if n < probes && q.pool.may(s, j) {
			n = q.add(n, s)
		}
	}
	return n
}

func (q *prequal) add(n int, s *server) int {
	q.looked[n], q.flight[n] = s, s.load()
	return n + 1
}

// latency that is expected of a server at its load. Without an answer it falls as a peak
// does: else a server that was slow once, or is by a hair, would not be tried again.
func (q *prequal) latency(now int64, s *server) float64 {
	stale := math.Exp(-float64(now-s.answers.last) / second / decay)
	return s.answers.at(s.load()) * stale * q.pool.slowdown(now, s)
}

// learn the latency from the placing, at the load of then.
func (q *prequal) learn(now int64, s *server, j *job, seconds float64, ok bool) {
	latency := float64(j.started-j.placed)/second + seconds
	if ok || latency > s.answers.at(j.found) {
		s.answers.add(j.found, latency)
		s.answers.last = now
	}
}

// join begins with the medians of the others.
func (q *prequal) join(now int64, s *server, others []*server) {
	s.answers = answers{last: now}
	for b := range loads {
		var known []float64
		for _, o := range others {
			if v := o.answers.seconds[b]; v > 0 {
				known = append(known, v)
			}
		}
		s.answers.seconds[b] = median(known)
	}
}

package pool

import (
	"math"

	"penstock/consumers/executor/dispatcher/line"
)

// auto is the best that we have. It parts from the papers in four things.
//
// Requests wait for the zone, not for a server: whoever has a slot first takes what is
// most worth to start of all that waits (take). The lines say where a request is expected
// to be taken, no more.
//
// Worth is by work, not by time. With M requests in it, a server's time for a request is
// mostly that for the others in it, much the same for a small one and a large one; what a
// request costs the others is its own part of that. One model of the zone tells the two
// apart (see work): t = f·(work + c·k) with k others there and f of the server. The
// request taken is that with the greatest
//
//	p/work · exp(−4a·max(0, d − now − t))
//
// that is Smith's rule for those that are late, and for others their prospect of being so
// (PAPERS §2.7, as icbs with work in place of time).
//
// A request goes where it costs least by when it is expected to end (choose), which may be
// a full server while a slow one is idle. f is raised as long as requests run there for
// longer than estimated.
//
// A slow server leaves a request to a faster one that is full where that costs less than
// what those who wait gain by there being one less in front of them.
type auto struct {
	pool  *Pool
	work  work
	board [levels]shelf
	used  marks   // shelves with requests
	rate  float64 // sum of the penalties per s of all that wait
	n     int     // how many wait
}

func newAuto(p *Pool) policy { return &auto{pool: p, work: newWork()} }

func (*auto) discipline() line.Discipline { return line.Deadline }

// haste weighs the time until a request has ended beside its penalty: little, for what is
// not late yet may become so.
const haste = 0.02

// choose takes the free server where the request ends first, or, where it costs less, a full
// one.
func (a *auto) choose(now int64, j *job) *server {
	work := a.work.of(j)
	best := a.first(now, j, work)
	least := math.Inf(1)
	if best != nil {
		least = a.cost(now, j, best.auto.t)
	}
	if full := a.full(now, j); full != nil {
		t := a.work.time(now, full, work, full.m-1) + a.ahead(j, work)*a.spacing(nil) + a.next(now, full)
		if c := a.cost(now, j, t); c < least {
			best, least = full, c
		}
	}
	a.pool.increase = 0
	if best != nil {
		a.pool.increase = least
	}
	return best
}

// same is how much longer a request may take somewhere for that to be no difference: factors
// are not known better.
const same = 1.05

// first is the free server where a request ends first, in its t; nil if none is free. Of
// those that are the same it is the one with the most room, and of these the quickest: else
// one that is thought to be quicker by next to nothing had all that it has slots for.
func (a *auto) first(now int64, j *job, work float64) *server {
	least := math.Inf(1)
	for _, s := range a.pool.live {
		s.auto.t = math.Inf(1)
		if s.free() && a.pool.may(s, j) {
			s.auto.t = a.work.time(now, s, work, s.in)
			least = min(least, s.auto.t)
		}
	}
	var best *server
	for _, s := range a.pool.live {
		if s.auto.t > same*least || math.IsInf(s.auto.t, 1) {
			continue
		}
		if best == nil || s.roomier(best) {
			best = s
		}
	}
	return best
}

// roomier reports whether a server has a greater part of its slots free than another, or the
// same and is quicker.
func (s *server) roomier(o *server) bool {
	if x, y := s.in*o.m, o.in*s.m; x != y {
		return x < y
	}
	return s.auto.t < o.auto.t
}

// cost of a job that ends in t s.
func (a *auto) cost(now int64, j *job, t float64) float64 {
	return j.lateness(now, t) + (j.class.Penalty+1e-9)*float64(haste*t)
}

// full is the server without a free slot in whose line a job is to wait: of those that are
// about as fast as the fastest, that whose line is the shortest for what it serves.
func (a *auto) full(now int64, j *job) *server {
	fastest := math.Inf(1)
	for _, s := range a.pool.live {
		if !s.free() && a.pool.may(s, j) {
			fastest = min(fastest, a.work.factor(now, s))
		}
	}
	var best *server
	least := math.Inf(1)
	for _, s := range a.pool.live {
		if s.free() || !a.pool.may(s, j) || a.work.factor(now, s) > alike*fastest {
			continue
		}
		if v := float64(s.queued+1) * a.next(now, s); v < least {
			best, least = s, v
		}
	}
	return best
}

// next is the time until a full server is expected to have a slot, s.
func (a *auto) next(now int64, s *server) float64 {
	return a.work.factor(now, s) * (a.work.others + a.work.mean/float64(max(s.m, 1)))
}

// spacing is the time between two ends in the zone when all servers but one are full, s.
func (a *auto) spacing(but *server) float64 {
	rate := 0.0
	for _, s := range a.pool.live {
		if s != but && s.m > 0 {
			rate += 1 / (s.auto.f * (a.work.others + a.work.mean/float64(s.m)))
		}
	}
	if rate == 0 {
		return 0
	}
	return 1 / rate
}

// ahead is how many mean requests are taken before one that comes now.
func (a *auto) ahead(j *job, work float64) float64 {
	sum, own := 0.0, levelOf(j.class.Penalty, work)
	for l := range a.used.each {
		if l >= own {
			sum += a.board[l].work
		}
	}
	return sum / a.work.mean
}

// take is the request that a server with a free slot is to have: of the first due of each
// level of worth the one that is most worth to start. One that waits in the server's own
// line is never left there.
func (a *auto) take(now int64, s *server) (uint64, *server) {
	var best *job
	most := math.Inf(-1)
	d := a.decline(now, s)
	for l := range a.used.each {
		j := a.board[l].first(s)
		if j == nil {
			continue
		}
		t := d.factor * (j.work + a.work.others*float64(s.in))
		score := math.Log(max(j.class.Penalty, leastPenalty)/j.work) - fading*a.pool.options.CostDecay*max(0, float64(j.due-now)/second-t)
		if score > most && (j.server == s || !d.says(now, j, t)) {
			best, most = j, score
		}
	}
	if best != nil {
		return best.id, best.server
	}
	if it, some := s.line.Peek(now); some {
		return it.ID, s
	}
	return 0, nil
}

// fading is how many times faster than icbs's the prospect of a penalty fades with the time
// until the deadline: whoever has time lets others pass, and is taken in time since a slot
// becomes free anywhere soon. Between 2 and 10 it matters little.
const fading = 4

// leastPenalty tells requests without a penalty apart by their work.
const leastPenalty = 1e-9

// decline is what a server weighs before it takes a request that a faster one could have.
type decline struct {
	factor float64 // of the server
	full   *server // the faster one, nil: there is none
	faster float64 // its factor
	others float64 // what those in service there add to a request, s, and its wait
	gain   float64 // what those who wait have of one less
}

func (a *auto) decline(now int64, s *server) decline {
	d := decline{factor: a.work.factor(now, s)}
	if d.faster, d.full = a.faster(now, s); d.full != nil {
		d.others = d.faster*a.work.others*float64(d.full.m-1) + a.spacing(s)
		d.gain = a.rate * a.spacing(nil)
	}
	return d
}

// says whether a job that would take t s here is left to the faster server.
func (d *decline) says(now int64, j *job, t float64) bool {
	return d.full != nil && j.lateness(now, t)-j.lateness(now, float64(d.faster*j.work)+d.others) > d.gain
}

// faster is the fastest full server that is faster than s, with its factor; nil if there is
// none. One that is full takes a request when one of its own ends, so that what is left to
// it does not lie for ever.
func (a *auto) faster(now int64, s *server) (float64, *server) {
	var best *server
	least := a.work.factor(now, s)
	for _, o := range a.pool.live {
		if o == s || o.free() || o.in == 0 {
			continue
		}
		if f := a.work.factor(now, o); f < least {
			best, least = o, f
		}
	}
	return least, best
}

func (a *auto) enqueue(_ *server, j *job) {
	j.work = a.work.of(j)
	j.level = levelOf(j.class.Penalty, j.work)
	a.board[j.level].push(j)
	a.used.set(j.level, true)
	a.rate += j.class.Penalty
	a.n++
}

func (a *auto) dequeue(_ *server, j *job) {
	h := &a.board[j.level]
	h.remove(j.place)
	a.used.set(j.level, len(h.jobs) > 0)
	a.rate -= j.class.Penalty
	if a.n--; a.n == 0 {
		a.rate = 0 // no rounding is left
	}
}

func (a *auto) learn(_ int64, s *server, j *job, seconds float64, ok bool) {
	if ok {
		a.work.learn(s, j, seconds)
	}
}

func (a *auto) revise(s *server, j *job, seconds float64) (more bool) {
	return a.work.revise(s, j, seconds)
}

// join begins with the median of the others' factors.
func (*auto) join(_ int64, s *server, others []*server) {
	s.auto.f = 1
	var known []float64
	for _, o := range others {
		known = append(known, o.auto.f)
	}
	if len(known) > 0 {
		s.auto.f = median(known)
	}
}

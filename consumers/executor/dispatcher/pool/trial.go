package pool

import (
	"hash/fnv"
	"math"
)

// What is known of a server grows old. A policy that goes by estimates sends nothing to a
// server that it has found slow while the others suffice, so it would never learn that it
// is fast again. So a server where for Options.Trial no request has begun or ended has one
// as a trial, one at a time, whatever the policy prefers (P38: no herd to where nothing
// is known).
//
// # Which request
//
// The first that arrives and would not be late there, not even if the server is as slow as
// it was and takes alike times longer. What it was fades the longer nothing is heard of it,
// to 1/e in each further Options.Trial: so the request with the most time is taken first,
// one with less when the estimate counts for less, and one that is late already never. One
// that has tried other servers in vain makes no trial either.
//
// # What it teaches
//
// An answer that came a tenth sooner than was thought, or more, makes what is known no
// younger: the next trial follows at once. With it begins a series, of which the mean is
// what is known from then on, of requests of all sizes, for a server that has become faster
// has with all it does. So a server that was ten times slower is the policy's again after
// two or three, and one that was a fifth slower is not left without anything for good, as
// it would be where the others suffice. A series ends with an answer that came no sooner
// than was thought before it, which counts in the mean, or after settling. Any end of a
// request that is not followed at once, failed or not, begins the time anew.
//
// The first answer of a series is one alone, and may be like no other: it counts for a
// quarter of what is known, or, if it is off by more than alike, for half (estimates are
// multiplied by the root of how many times longer it took).
//
// # What it costs
//
// In Options.Trial one answer of each server that is as slow as it was thought to be, where
// times vary two or three, one after the other, and they are mostly in time. Trials were
// chosen over estimates that fade by themselves, as those of peak-ewma and prequal do: a
// policy that takes the least of all estimates would send to a server with a faded one as
// much as it has slots for, until the first slow answer, and that again and again.
//
// Several switches learn each for itself, and try each for itself: at most as many trials
// run at a server as there are switches, each in a slot of its own switch. The time of each
// is longer by up to a quarter, as its seed draws for the server, so that those that heard
// of it last at the same moment don't all try it at the same moment.

// spread says by what part a time may be longer than Options.Trial: 1/spread.
const spread = 4

// estimators are the policies for which trials are made: those that go by the estimates.
// Others see no times, or have them fade.
var estimators = map[Policy]bool{A1: true, A2: true, A3: true, ICBS: true, Auto: true}

// patience is how long nothing need be heard of a server for a trial, in ns; 0: there are
// no trials.
func (p *Pool) patience(name string) int64 {
	t := int64(p.options.Trial)
	if t <= 0 || !estimators[p.options.Policy] {
		return 0
	}
	var d draws
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	d.seed(p.options.Seed, h.Sum64())
	return t + int64(d.below(int(t/spread)+1))
}

// doubted is a server of which nothing was heard for so long that this job is to go there;
// nil: none is.
func (p *Pool) doubted(now int64, j *job) *server {
	next := int64(math.MaxInt64)
	var found *server
	for _, s := range p.live {
		if s.patience == 0 {
			continue
		}
		due := s.heard + s.patience
		next = min(next, due)
		if now >= due && found == nil && s.trial == nil && s.free() && s.queued == 0 && !s.ramping && p.bears(now, s, j, now-due) {
			found = s
		}
	}
	p.doubts = next
	return found
}

// bears reports whether a job would not be late at a server whose estimate has faded for a
// time, in ns.
func (p *Pool) bears(now int64, s *server, j *job, faded int64) bool {
	if len(j.avoid) > 0 || now > j.due {
		return false
	}
	service := s.estimate(j) * p.slowdown(now, s) * alike
	if j.lateness(now, service) == 0 {
		return true
	}
	return j.lateness(now, service*math.Exp(-float64(faded)/float64(s.patience))) == 0
}

// try makes a job that is put at a server its trial.
func (s *server) try(j *job) {
	j.trial, s.trial = true, j
	s.trials++
}

const (
	// settling is how many answers a series has at most.
	settling = 8
	// sooner is what of the time that was thought an answer takes at most to be followed by
	// another: about right is right enough.
	sooner = 0.9
	// mostLonger bounds what an answer that is like no other counts for.
	mostLonger = 8
	// leastSeconds is what a clock shows.
	leastSeconds = 1e-9
)

// series are the trials that follow one another.
type series struct {
	n     int
	sum   float64 // of how many times longer they took than was thought before the first
	scale float64 // how many times longer than before the first is thought now
}

// add an answer that took so many times longer than estimated: what to multiply estimates
// by, and whether another is to follow at once.
func (r *series) add(times float64) (by float64, more bool) {
	before := r.scale
	if r.n == 0 {
		before = 1
	}
	times *= before
	r.n++
	r.sum += min(times, mostLonger)
	r.scale = r.sum / float64(r.n)
	if r.n == 1 {
		r.scale = alone(times)
	}
	return r.scale / before, times < sooner && r.n < settling
}

// alone is what estimates are multiplied by upon one answer that is the first since long.
func alone(times float64) float64 {
	if times > alike || times*alike < 1 {
		return math.Sqrt(min(max(times, 1/mostLonger), mostLonger))
	}
	return 1 + (times-1)/4
}

// longer is how many times longer something took than was estimated, s; never 0, for no
// answer takes less than a clock shows.
func longer(seconds, estimate float64) float64 {
	return max(seconds, leastSeconds) / max(estimate, leastSeconds)
}

// hear notes that a job has ended there; more: a trial that another is to follow at once.
func (s *server) hear(now int64, j *job, more bool) {
	if j.trial {
		s.trial = nil
	}
	if !more {
		s.heard, s.trying, s.own = now, series{}, series{}
	}
}

package redirector

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rates limits lookups a client and in all, in bounded memory.
type rates struct {
	perClient rate.Limit
	burst     int
	total     *rate.Limiter // nil: no limit
	seed      maphash.Seed
	shards    [16]rateShard
	most      int // clients a shard
}

type rateShard struct {
	mu      sync.Mutex
	clients map[client]*rate.Limiter
}

func newRates(o *Options) *rates {
	r := &rates{perClient: rate.Limit(o.Rate), burst: o.Burst, seed: maphash.MakeSeed(), most: max(1, o.Clients/16)}
	if o.TotalRate > 0 {
		r.total = rate.NewLimiter(rate.Limit(o.TotalRate), max(o.Batch, int(math.Ceil(o.TotalRate))))
	}
	for i := range r.shards {
		r.shards[i].clients = map[client]*rate.Limiter{}
	}
	return r
}

// Reasons of refusals.
const (
	byClient = "client"
	byTotal  = "total"
)

// take takes n lookups of a client's. If it can't have them by is which limit is in
// the way, and wait when it is worth trying again. Nothing is taken then.
func (r *rates) take(c client, n int, now time.Time) (wait time.Duration, by string) {
	var own *rate.Reservation
	if r.perClient > 0 && c != onTheBus {
		if own, wait = reserve(r.of(c, now), n, now); wait > 0 {
			return wait, byClient
		}
	}
	if r.total != nil {
		if _, wait = reserve(r.total, n, now); wait > 0 {
			if own != nil {
				own.CancelAt(now)
			}
			return wait, byTotal
		}
	}
	return 0, ""
}

// reserve takes n of a limiter, or returns how long that would have to wait.
func reserve(l *rate.Limiter, n int, now time.Time) (*rate.Reservation, time.Duration) {
	v := l.ReserveN(now, n)
	if !v.OK() { // more than it ever has
		return nil, time.Minute
	}
	wait := v.DelayFrom(now)
	if wait > 0 {
		v.CancelAt(now)
	}
	return v, wait
}

// of returns a client's limiter.
func (r *rates) of(c client, now time.Time) *rate.Limiter {
	s := &r.shards[maphash.Comparable(r.seed, c)%uint64(len(r.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	l, known := s.clients[c]
	if !known {
		if len(s.clients) >= r.most {
			s.evict(now)
		}
		l = rate.NewLimiter(r.perClient, r.burst)
		s.clients[c] = l
	}
	return l
}

// evict drops one of some clients: the one that has most of its burst left, for it
// gains least by being forgotten. Going through a map begins anywhere.
func (s *rateShard) evict(now time.Time) {
	const sample = 16
	var drop client
	most, seen := math.Inf(-1), 0
	for c, l := range s.clients {
		if left := l.TokensAt(now); left > most {
			drop, most = c, left
		}
		if seen++; seen == sample {
			break
		}
	}
	delete(s.clients, drop)
}

package door

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// RateOptions say how much is too much.
type RateOptions struct {
	// Burst is how much a client may take at once.
	Burst int
	// Clients bounds for how many clients a rate is kept.
	Clients int
	// Rate is how much a client may take in a second; 0 is no limit.
	Rate float64
	// TotalBurst is how much all together may take at once; at least TotalRate.
	TotalBurst int
	// TotalRate is how much all clients together, those on the bus included, may take
	// in a second; 0 is no limit.
	TotalRate float64
}

// Rates limits what is taken by a client and in all, in bounded memory. Its methods
// are safe for concurrent use.
type Rates struct {
	perClient rate.Limit
	burst     int
	total     *rate.Limiter // nil: no limit
	seed      maphash.Seed
	shards    [16]rateShard
	most      int // clients a shard
}

type rateShard struct {
	mu      sync.Mutex
	clients map[Client]*rate.Limiter
}

// NewRates returns rates of which nothing was taken yet.
func NewRates(o RateOptions) *Rates {
	r := &Rates{perClient: rate.Limit(o.Rate), burst: o.Burst, seed: maphash.MakeSeed(), most: max(1, o.Clients/16)}
	if o.TotalRate > 0 {
		r.total = rate.NewLimiter(rate.Limit(o.TotalRate), max(o.TotalBurst, int(math.Ceil(o.TotalRate))))
	}
	for i := range r.shards {
		r.shards[i].clients = map[Client]*rate.Limiter{}
	}
	return r
}

// Reasons of refusals.
const (
	ByClient = "client"
	ByTotal  = "total"
)

// Take takes n of a client's. If it can't have them by is which limit is in
// the way, and wait when it is worth trying again. Nothing is taken then.
func (r *Rates) Take(c Client, n int, now time.Time) (wait time.Duration, by string) {
	var own *rate.Reservation
	if r.perClient > 0 && c != OnTheBus {
		if own, wait = reserve(r.of(c, now), n, now); wait > 0 {
			return wait, ByClient
		}
	}
	if r.total != nil {
		if _, wait = reserve(r.total, n, now); wait > 0 {
			if own != nil {
				own.CancelAt(now)
			}
			return wait, ByTotal
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
func (r *Rates) of(c Client, now time.Time) *rate.Limiter {
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
	var drop Client
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

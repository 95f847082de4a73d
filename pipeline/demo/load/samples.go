package load

import (
	"slices"
	"sync"
	"time"
)

// Samples keeps what was measured of each request. It is safe for concurrent use.
type Samples[K any] struct {
	mu   sync.Mutex
	list []Sample[K]
}

// Sample is one answered request.
type Sample[K any] struct {
	Due     time.Time
	Latency time.Duration // from Due
	Of      K             // what it is told from others by
}

// Add adds a sample.
func (s *Samples[K]) Add(due time.Time, latency time.Duration, of K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, Sample[K]{due, latency, of})
}

// Len is how many there are.
func (s *Samples[K]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.list)
}

// Where returns the latencies of those that keep wants, ascending.
func (s *Samples[K]) Where(keep func(*Sample[K]) bool) Latencies {
	s.mu.Lock()
	defer s.mu.Unlock()
	return LatenciesOf(s.list, keep)
}

// All returns a copy of them, in the order in which they were added.
func (s *Samples[K]) All() []Sample[K] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// LatenciesOf returns the latencies of those samples of a list that keep wants,
// ascending.
func LatenciesOf[K any](list []Sample[K], keep func(*Sample[K]) bool) Latencies {
	var out Latencies
	for i := range list {
		if keep(&list[i]) {
			out = append(out, list[i].Latency)
		}
	}
	slices.Sort(out)
	return out
}

// Recent is Where of those that were due since an instant. It looks from the
// newest back, and stops at the first that is older by more than a minute: samples
// come in the order of answers.
func (s *Samples[K]) Recent(since time.Time, keep func(*Sample[K]) bool) Latencies {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out Latencies
	for i := len(s.list) - 1; i >= 0; i-- {
		a := &s.list[i]
		if a.Due.Before(since.Add(-time.Minute)) {
			break
		}
		if !a.Due.Before(since) && keep(a) {
			out = append(out, a.Latency)
		}
	}
	slices.Sort(out)
	return out
}

// Latencies are in ascending order.
type Latencies []time.Duration

// Quantile is the least latency that a part q (0 to 1) does not exceed; 0 without
// samples.
func (l Latencies) Quantile(q float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	at := int(q * float64(len(l)))
	if float64(at) == q*float64(len(l)) {
		at--
	}
	return l[min(max(at, 0), len(l)-1)]
}

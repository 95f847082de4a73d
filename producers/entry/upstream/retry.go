package upstream

import (
	"sync"
	"time"
)

// budgetWindow is how many seconds a budget looks back.
const budgetWindow = 10

// budget bounds the requests that are sent again: a share of the requests of the
// last 10 s, and at least so many a second. It keeps a failing service from
// being finished off by its own clients.
type budget struct {
	share, least float64

	mu      sync.Mutex
	second  int64 // of the newest bucket
	buckets [budgetWindow]struct{ requests, retries int64 }
}

// request counts a request.
func (b *budget) request(now time.Time) {
	b.mu.Lock()
	b.at(now).requests++
	b.mu.Unlock()
}

// retry reports whether a request may be sent again, and counts it if so.
func (b *budget) retry(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	bucket := b.at(now)
	var requests, retries int64
	for i := range b.buckets {
		requests += b.buckets[i].requests
		retries += b.buckets[i].retries
	}
	if float64(retries+1) > max(b.share*float64(requests), b.least*budgetWindow) {
		return false
	}
	bucket.retries++
	return true
}

// at returns the bucket of an instant, after the ones of seconds that have
// passed since the newest are emptied. A clock that goes back counts into the
// newest.
func (b *budget) at(now time.Time) *struct{ requests, retries int64 } {
	second := now.Unix()
	if second > b.second {
		for s := max(b.second+1, second-budgetWindow+1); s <= second; s++ {
			b.buckets[s%budgetWindow] = struct{ requests, retries int64 }{}
		}
		b.second = second
	}
	return &b.buckets[b.second%budgetWindow]
}

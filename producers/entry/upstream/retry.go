package upstream

import (
	"sync"
	"time"
)

// budgetWindow is how many seconds a budget looks back.
const budgetWindow = 10

// Budget bounds the requests that are sent again: a share of the requests of the
// last 10 s, and at least so many a second. It keeps a failing service from
// being finished off by its own clients.
type Budget struct {
	share, least float64

	mu      sync.Mutex
	second  int64 // of the newest bucket
	buckets [budgetWindow]struct{ requests, retries int64 }
}

// Request counts a request.
func (b *Budget) Request(now time.Time) {
	b.mu.Lock()
	b.at(now).requests++
	b.mu.Unlock()
}

// Retry reports whether a request may be sent again, and counts it if so.
func (b *Budget) Retry(now time.Time) bool {
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

// NewBudget returns a budget of a share of the requests, 0 to 1, and at least so
// many a second. It is safe for concurrent use.
func NewBudget(share, least float64) *Budget { return &Budget{share: share, least: least} }

// at returns the bucket of an instant, after the ones of seconds that have
// passed since the newest are emptied. A clock that goes back counts into the
// newest.
func (b *Budget) at(now time.Time) *struct{ requests, retries int64 } {
	second := now.Unix()
	if second > b.second {
		for s := max(b.second+1, second-budgetWindow+1); s <= second; s++ {
			b.buckets[s%budgetWindow] = struct{ requests, retries int64 }{}
		}
		b.second = second
	}
	return &b.buckets[b.second%budgetWindow]
}

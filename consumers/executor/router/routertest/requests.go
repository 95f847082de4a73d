package routertest

import (
	"context"
	"sync"

	"penstock/infra/shares"
)

// Requests are sent over links by weights, as a proxy does that takes sites in turns.
// Only Weights is needed. Its methods are safe for concurrent use.
type Requests struct {
	// Weights are those by which the next request over a link is sent, by site.
	Weights func(l shares.Link) map[string]int64

	mu      sync.Mutex
	turns   map[shares.Link]*Turns
	running map[string]int // by site
}

// Next returns the site of the next request over a link.
func (r *Requests) Next(l shares.Link) string {
	weights := r.Weights(l)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turns == nil {
		r.turns = map[shares.Link]*Turns{}
	}
	if r.turns[l] == nil {
		r.turns[l] = &Turns{}
	}
	return r.turns[l].Next(weights)
}

// Send is a World's.
func (r *Requests) Send(l shares.Link, n int) map[string]int {
	got := map[string]int{}
	for range n {
		got[r.Next(l)]++
	}
	return got
}

// Hold is a World's.
func (r *Requests) Hold() (site string, release func()) {
	site = r.Next(Link)
	r.run(site, 1)
	return site, func() { r.run(site, -1) }
}

func (r *Requests) run(site string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		r.running = map[string]int{}
	}
	r.running[site] += n
}

// Running is how many requests are held at a replica's site.
func (r *Requests) Running(_ context.Context, at shares.Replica) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[at.Site], nil
}

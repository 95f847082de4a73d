package entry

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"penstock/infra/shares"
)

// How often it is looked whether replicas are up, how many requests in a row have to
// fail for one to be down, and for how long it then is: twice as long each time in a
// row, up to eight times.
const (
	replicaLook     = 250 * time.Millisecond
	replicaFailures = 3
	replicaRest     = 5 * time.Second
	replicaDoubles  = 3
)

// replica is what is known of a component at a site by what became of requests. The
// own site's is down while its pool says that no server is well.
//
//	up ──failures in a row, or a sure one──▶ down ──its time is over, or an answer──▶ up
type replica struct {
	name shares.Replica
	// blemished is set while an answer would change anything.
	blemished atomic.Bool

	mu    sync.Mutex
	fails int
	times int       // it went down in a row
	until time.Time // while it is down for failures
	down  bool      // what the shares were told
}

// usable is what a pool may have beside Upstream: whether a server of it is well.
type usable interface{ Usable() bool }

// failed notes that a request got no answer; sure, that none can be had.
func (e *Entry) failed(r *replica, sure bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blemished.Store(true)
	if r.fails++; r.fails < replicaFailures && !sure || r.down {
		return
	}
	r.until = e.o.Clock.Now().Add(replicaRest << min(r.times, replicaDoubles))
	r.times++
	e.tell(r, true)
}

// succeeded notes that a request was answered by a server.
func (e *Entry) succeeded(r *replica) {
	if !r.blemished.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails, r.times, r.until = 0, 0, time.Time{}
	r.blemished.Store(false)
	e.tell(r, false)
}

// looksAt says whether a replica that was down may be tried again, and of one whose
// pool knows, what that says.
func (e *Entry) looksAt(r *replica, pool Upstream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := pool.(usable); ok {
		e.tell(r, !p.Usable())
		return
	}
	if r.down && !e.o.Clock.Now().Before(r.until) {
		r.fails = replicaFailures - 1 // the next failure is enough
		e.tell(r, false)
	}
}

// tell tells the shares whether a replica is down. The caller holds r.mu. Without
// Run nobody would say that it is up again, so that nothing is said.
func (e *Entry) tell(r *replica, down bool) {
	if r.down == down || e.o.Shares == nil || !e.watches.Load() {
		return
	}
	r.down = down
	e.o.Shares.Up(r.name, !down)
	e.o.Logger.Warn().Str("site", e.o.Site).Str("component", r.name.Component).Str("at", r.name.Site).Bool("down", down).Msg("health of a component")
}

// watch looks at all replicas until ctx ends. Then it takes back what the shares were
// told.
func (e *Entry) watch(ctx context.Context) {
	ticks := e.o.Clock.NewTicker(replicaLook)
	defer ticks.Stop()
	e.watches.Store(true)
	defer e.forget()
	for {
		for _, c := range e.components {
			for i, r := range c.replicas {
				var pool Upstream
				if i == e.router.own {
					pool = c.local
				}
				e.looksAt(r, pool)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C():
		}
	}
}

// forget takes back that replicas are down: nobody looks at them any more.
func (e *Entry) forget() {
	e.watches.Store(false)
	for _, c := range e.components {
		for _, r := range c.replicas {
			r.mu.Lock()
			if r.down {
				r.down = false
				e.o.Shares.Up(r.name, true)
			}
			r.mu.Unlock()
		}
	}
}

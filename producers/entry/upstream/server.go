package upstream

import (
	"crypto/tls"
	"net/url"
	"sync/atomic"
	"time"
)

// server is one server of a pool while it runs.
type server struct {
	pool    *Pool
	name    string
	url     *url.URL
	address string      // to dial
	tls     *tls.Config // nil for http
	weight  atomic.Int64
	drain   atomic.Bool // under pool.mu: gets no new requests
	removed bool        // under pool.mu: is not on the list any more
	proving bool        // under pool.mu: gets no new requests before a probe has succeeded

	conns       conns
	outstanding atomic.Int64
	requests    atomic.Uint64 // attempts
	dials       atomic.Uint64
	stale       atomic.Uint64 // idle connections that were closed
	leftover    atomic.Uint64 // connections with bytes after an answer's end
	failures    [len(reasons)]atomic.Uint64

	// blemished is set while a success would change standing, so that successes
	// need not look under the lock.
	blemished atomic.Bool
	standing  standing // under pool.mu
	// Probes by result, under pool.mu.
	probesOK, probesFailed uint64
}

// ServerStatus is a server as it stands.
type ServerStatus struct {
	Name, URL string
	Weight    int
	// State is one of the State constants: used, suspect (bad, but kept in use), out, …
	State string
	// Reason for which it is bad: one of the Reason constants, or empty.
	Reason string
	// Until is when an ejection for failed requests ends, zero if there is none.
	Until time.Time
	// Outstanding requests, open connections of the fast path and idle ones.
	Outstanding int64
	Open, Idle  int
	// Since the start: attempts, failed ones by reason, ejections.
	Requests  uint64
	Failures  map[string]uint64
	Ejections uint64
}

// States of a server in ServerStatus.
const (
	StateUsed     = "used"
	StateSuspect  = "suspect"
	StateOut      = "out"
	StateDraining = "draining"
	StateProving  = "proving" // it has not answered a probe yet
)

func (s *server) status() ServerStatus {
	st := ServerStatus{
		Name: s.name, URL: s.url.String(), Weight: int(s.weight.Load()), State: s.state(), Reason: s.standing.reason,
		Until: s.standing.until, Outstanding: s.outstanding.Load(), Requests: s.requests.Load(),
		Ejections: s.standing.ejections, Failures: map[string]uint64{},
	}
	st.Open, st.Idle = s.conns.count()
	for i, r := range reasons {
		if n := s.failures[i].Load(); n > 0 {
			st.Failures[r] = n
		}
	}
	return st
}

// counts reports whether the server's health counts: it may get requests. It is under
// pool.mu.
func (s *server) counts() bool { return !s.drain.Load() && !s.proving && !s.removed }

// state is under pool.mu.
func (s *server) state() string {
	switch {
	case s.drain.Load():
		return StateDraining
	case s.proving:
		return StateProving
	case s.standing.out:
		return StateOut
	case s.standing.bad():
		return StateSuspect
	}
	return StateUsed
}

// count counts a failed attempt.
func (s *server) count(reason string) {
	for i, r := range reasons {
		if r == reason {
			s.failures[i].Add(1)
		}
	}
}

// probe counts a probe.
func (s *server) probe(ok bool) {
	if ok {
		s.probesOK++
	} else {
		s.probesFailed++
	}
}

package picker

import (
	"math/bits"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
)

// site is where a component is served. Its lists are not changed; the rest outlives
// them.
type site struct {
	name    string
	servers []*server
	*turns
}

// turns is what is kept of a site from one answer to the next.
type turns struct {
	turn    atomic.Uint64
	trouble atomic.Int64 // servers that are out or on trial
}

// server is one of a site's.
type server struct {
	url  string
	base *url.URL
	hash uint64
	of   *turns

	// until is when it is tried again, in ns since 1970; 0: it is in.
	until atomic.Int64
	// failing is 0 if the last request went well; else Done(nil) has something to do.
	failing atomic.Int64

	mu    sync.Mutex // of those who note failures, and their end
	times int        // that it was put out in a row
	left  bool       // it is no longer one of the site's
}

func newServer(address string, of *turns) *server {
	u, err := url.Parse(address)
	if err != nil {
		u = &url.URL{} // it was checked where it came from
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	return &server{url: address, base: u, hash: xxhash.Sum64String(address), of: of}
}

// out reports whether a server is out at an instant, rather than in or on trial.
func (s *server) out(now int64) bool { return s.until.Load() > now }

// next is the server whose turn it is, of those that are not out; of all, if all are.
// clock tells the time, if it matters.
func (s *site) next(clock func() int64) *server {
	n := uint64(len(s.servers))
	if n == 0 {
		return nil
	}
	turn := s.turn.Add(1) - 1
	if s.trouble.Load() == 0 {
		return s.servers[turn%n]
	}
	now := clock()
	in := uint64(0)
	for _, each := range s.servers {
		if !each.out(now) {
			in++
		}
	}
	if in == 0 {
		return s.servers[turn%n]
	}
	left := turn % in
	for _, each := range s.servers {
		if each.out(now) {
			continue
		}
		if left == 0 {
			return each
		}
		left--
	}
	return s.servers[turn%n] // one was put out meanwhile
}

// forKey is the server of a key, of those that are not out: by rendezvous hashing,
// so that a server that goes moves its own keys and no others.
func (s *site) forKey(key string, clock func() int64) *server {
	h := xxhash.Sum64String(key)
	now := int64(0)
	if s.trouble.Load() != 0 {
		now = clock()
	}
	var best, all *server
	var most, mostOfAll uint64
	for _, each := range s.servers {
		score := mix(h, each.hash)
		if all == nil || score > mostOfAll {
			all, mostOfAll = each, score
		}
		if (now == 0 || !each.out(now)) && (best == nil || score > most) {
			best, most = each, score
		}
	}
	if best == nil {
		return all
	}
	return best
}

// allOut says whether all servers of a site are out, and if so when the first is
// tried again. A site without servers is not: nothing can be tried there.
func (s *site) allOut(now int64) (until int64, all bool) {
	for _, each := range s.servers {
		u := each.until.Load()
		if u <= now {
			return 0, false
		}
		if until == 0 || u < until {
			until = u
		}
	}
	return until, len(s.servers) > 0
}

// failed notes a failure, and reports whether it put the server out. Failures of
// requests that began before it was put out say nothing new.
func (s *server) failed(gone bool, now time.Time, o *Options) (put bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := now.UnixNano()
	if s.left || s.out(at) {
		return false
	}
	trial := s.until.Load() != 0
	if n := s.failing.Add(1); n < int64(o.Failures) && !trial && !gone {
		return false
	}
	d := o.Out
	for range s.times {
		if d = 2 * d; d >= o.MaxOut {
			d = o.MaxOut
			break
		}
	}
	s.times++
	if !trial {
		s.of.trouble.Add(1)
	}
	s.until.Store(now.Add(d).UnixNano())
	return true
}

// well notes a success, and reports whether it put the server in.
func (s *server) well() (put bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.in()
}

// leave takes a server out of its site's account, when it is no longer one of it.
func (s *server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in()
	s.left = true
}

// in forgets what failed; the caller holds mu.
func (s *server) in() (put bool) {
	s.failing.Store(0)
	s.times = 0
	if s.until.Swap(0) == 0 {
		return false
	}
	s.of.trouble.Add(-1)
	return true
}

// mix makes one even number of two.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd1b54a32d192ed03)
	return hi ^ lo
}

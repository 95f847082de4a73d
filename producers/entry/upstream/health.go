package upstream

import (
	"cmp"
	"slices"
	"time"
)

// maxDoublings bounds how much longer each ejection in a row gets: 2⁵ = 32 times.
const maxDoublings = 5

// board is what is known of the health of a pool's servers, and which of them
// are out of use for it. It is pure: it knows no clock and no connections.
type board struct {
	o        Health
	standing []*standing // in config order, servers that drain left out
	order    uint64      // of the last server that went bad
	panicked bool        // all servers are bad, so none is out
	panics   uint64      // how often that began
}

// standing is the health of one server.
type standing struct {
	// Requests: failures and, while it is bad, successes in a row.
	fails, successes int
	// until is when an ejection for failed requests ends, zero if there is none;
	// times is how many there were in a row, back when the last one ended.
	until time.Time
	times int
	back  time.Time

	// Probes: failures and successes in a row, and the verdict.
	probeFails, probeSuccesses int
	down                       bool

	since  uint64 // order in which it went bad, 0 while it is good
	reason string // for which it went bad
	out    bool   // of use
	held   bool   // in use although it is bad
	// Counts since the start: it went out; it was held in use.
	ejections, kept uint64
}

func (s *standing) bad() bool { return s.down || !s.until.IsZero() }

// spotless reports whether a success would change nothing.
func (s *standing) spotless() bool { return s.fails == 0 && !s.bad() }

// renewed is the health of a server that has just begun.
func (s *standing) renewed() { *s = standing{ejections: s.ejections, kept: s.kept} }

// failed notes that a request failed at a server.
func (b *board) failed(s *standing, now time.Time, reason string) {
	s.successes = 0
	if b.o.Failures == 0 || !s.until.IsZero() {
		return // what was under way when it was ejected changes nothing
	}
	if s.fails++; s.fails < b.o.Failures || b.o.Eject == 0 {
		return
	}
	if !s.back.IsZero() && now.Sub(s.back) > b.length(s.times) {
		s.times = 0 // it was fine for longer than it was out
	}
	s.times++
	s.until = now.Add(b.length(s.times))
	b.turned(s, reason)
	b.settle()
}

// length of the ejection after so many in a row.
func (b *board) length(times int) time.Duration {
	return b.o.Eject << min(max(times-1, 0), maxDoublings)
}

// succeeded notes that a request succeeded. Of a server that is out it says
// nothing: the request began before.
func (b *board) succeeded(s *standing, now time.Time) {
	if s.out {
		return
	}
	s.fails = 0
	if s.until.IsZero() {
		return
	}
	if s.successes++; s.successes >= b.o.Up {
		b.returned(s, now)
		s.fails = 0
		b.settle()
	}
}

// returned ends an ejection. The next failure begins another.
func (b *board) returned(s *standing, now time.Time) {
	s.until, s.back, s.successes = time.Time{}, now, 0
	s.fails = max(b.o.Failures-1, 0)
}

// probed notes the result of a probe.
func (b *board) probed(s *standing, ok bool) {
	if ok {
		s.probeFails = 0
		if s.probeSuccesses++; s.down && s.probeSuccesses >= b.o.Up {
			s.down = false
			b.settle()
		}
		return
	}
	s.probeSuccesses = 0
	if s.probeFails++; !s.down && s.probeFails >= b.o.Down {
		s.down = true
		b.turned(s, ReasonProbe)
		b.settle()
	}
}

// ReasonProbe is why a server is out of use that fails its probes.
const ReasonProbe = "probe"

// turned notes that a server has gone bad, if it wasn't.
func (b *board) turned(s *standing, reason string) {
	if s.since == 0 {
		b.order++
		s.since, s.reason = b.order, reason
	}
}

// tick ends the ejections whose time is over and returns when the next one's
// will be, zero if there is none.
func (b *board) tick(now time.Time) (next time.Time) {
	changed := false
	for _, s := range b.standing {
		switch {
		case s.until.IsZero():
		case !s.until.After(now):
			b.returned(s, now)
			changed = true
		case next.IsZero() || s.until.Before(next):
			next = s.until
		}
	}
	if changed {
		b.settle()
	}
	return next
}

// settle decides which of the bad servers are out: in the order in which they
// went bad, as long as the share out of use, the next one included, stays within
// the cap and one server at least is left. A server that takes no connection is out beyond
// the cap: kept in use it would carry nothing, and cost each request that is sent to it an
// attempt. When all are bad none is out.
func (b *board) settle() {
	var bad []*standing
	for _, s := range b.standing {
		if s.bad() {
			bad = append(bad, s)
		} else {
			s.since, s.reason, s.out, s.held = 0, "", false, false
		}
	}
	n := len(b.standing)
	all := n > 0 && len(bad) == n
	if all && !b.panicked {
		b.panics++
	}
	b.panicked = all
	slices.SortFunc(bad, func(x, y *standing) int { return cmp.Compare(x.since, y.since) })
	room := b.room(n)
	if all {
		room = 0
	}
	for i, s := range bad {
		out := i < room || !all && b.o.MaxEjected > 0 && s.reason == ReasonConnect
		if out && !s.out {
			s.ejections++
		}
		if !out && !s.held {
			s.kept++
		}
		s.out, s.held = out, !out
	}
}

// room is how many of n servers may be out.
func (b *board) room(n int) int {
	// A share that was meant to be a whole number of servers is one.
	return max(min(int(b.o.MaxEjected*float64(n)+1e-9), n-1), 0)
}

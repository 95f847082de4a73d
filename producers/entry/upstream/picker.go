package upstream

import (
	"net/http"
	"sync/atomic"
)

// maxWeight bounds weights, so that the product of one and a number of requests
// can't overflow.
const maxWeight = 1 << 16

// Picker chooses the server for an attempt.
type Picker interface {
	// Pick returns the index of one of the members, of which there is at least
	// one, all fit to be used. It is called concurrently, in the goroutine of the
	// request; it must not block, keep or change the slice. A result out of range
	// is taken for 0.
	Pick(req *http.Request, members []*Member) int
}

// Member is a server as a Picker sees it.
type Member struct {
	s *server
	// suspect is set while the server is bad but kept in use by the cap.
	suspect bool
}

// Name of the server.
func (m *Member) Name() string { return m.s.name }

// Weight of the server, at least 1.
func (m *Member) Weight() int { return int(m.s.weight.Load()) }

// Outstanding is how many requests run there, bodies of answers included.
func (m *Member) Outstanding() int64 { return m.s.outstanding.Load() }

// Suspect reports whether the server would be out of use were it not for the cap
// or the panic.
func (m *Member) Suspect() bool { return m.suspect }

// LeastOutstanding picks the server with the fewest running requests by weight.
// Among equals it goes round: one after the other, each as many times in a row as
// its weight says. A suspect counts as if it had 4 and 4 times as many. The zero
// value is ready for use; it uses no random numbers.
type LeastOutstanding struct{ turn atomic.Uint64 }

// Pick implements Picker.
func (l *LeastOutstanding) Pick(_ *http.Request, members []*Member) int {
	turn := l.turn.Add(1) - 1
	if len(members) == 1 {
		return 0
	}
	best := firstInTurn(turn, members)
	load, weight := members[best].load(), int64(members[best].Weight())
	for n, i := 1, best; n < len(members); n++ {
		if i++; i == len(members) {
			i = 0
		}
		// load/weight is compared without dividing.
		if l, w := members[i].load(), int64(members[i].Weight()); l*weight < load*w {
			best, load, weight = i, l, w
		}
	}
	return best
}

// firstInTurn is the member whose turn it is.
func firstInTurn(turn uint64, members []*Member) int {
	var sum uint64
	for _, m := range members {
		sum += uint64(m.Weight())
	}
	turn %= sum
	for i, m := range members {
		w := uint64(m.Weight())
		if turn < w {
			return i
		}
		turn -= w
	}
	return 0 // a weight has changed since it was added up
}

func (m *Member) load() int64 {
	n := m.Outstanding()
	if m.suspect {
		return 4*n + 4
	}
	return n
}

package multitier

import (
	"math"
	"net/http"
	"slices"
	"time"
)

// Measured is what a run came to.
type Measured struct {
	// Requests are all that entered, in the order in which they ended.
	Requests []Request
	// Tables is how many tables changed a share, Repeated how many only came again
	// or had other probes.
	Tables, Repeated int
	// Calls and Moved are the calls that were sent within From and To, and those of
	// them that went to another site than their caller's. Probes are not among them.
	Calls, Moved int64
	// Bytes is what went between sites within From and To, USD what it costs.
	Bytes int64
	USD   float64
	// Probes is the share of calls that were copies, of the whole run.
	Probes float64
	// Shares is, by window, the part of the calls from site 0 to Focus that went to
	// its replica at site 0; NaN for a window without one.
	Shares []float64

	probes, all       int64
	focusAll, focusIn []int64
	width, from, to   int64
}

// Request is one request from outside.
type Request struct {
	At      int64 // µs from the beginning: when it entered
	Latency int64 // µs, at most the deadline
	Site    int
	Failed  bool
}

func newMeasured(s *simulation) *Measured {
	n := int(s.o.Length/s.o.Policy.Width()) + 2
	return &Measured{
		focusAll: make([]int64, n), focusIn: make([]int64, n), width: s.o.Policy.Width().Microseconds(),
		from: s.o.From.Microseconds(), to: s.o.To.Microseconds(),
	}
}

func (m *Measured) counted(s *simulation) bool { return s.now >= m.from && s.now < m.to }

// sent counts a call that departs.
func (m *Measured) sent(s *simulation, c *call, bytes int64) {
	m.all++
	if c.from != c.site {
		m.carried(s, c.from, bytes)
	}
	if c.probe {
		return
	}
	if m.counted(s) {
		if m.Calls++; c.from != c.site {
			m.Moved++
		}
	}
	if n := s.now / m.width; c.from == 0 && int(c.component) == s.o.Focus && int(n) < len(m.focusAll) {
		if m.focusAll[n]++; c.site == 0 {
			m.focusIn[n]++
		}
	}
}

// answered counts what an answer carries.
func (m *Measured) answered(s *simulation, c *call, bytes int64) {
	if c.from != c.site {
		m.carried(s, c.site, bytes)
	}
}

func (m *Measured) carried(s *simulation, from int32, bytes int64) {
	if m.counted(s) {
		m.Bytes += bytes
		m.USD += float64(bytes) / 1e9 * s.app.Sites[from].Egress
	}
}

// request notes one that has ended.
func (m *Measured) request(s *simulation, c *call) {
	r := Request{At: c.began, Latency: s.now - c.began, Site: int(c.from), Failed: c.status != http.StatusOK}
	if most := s.o.Deadline.Microseconds(); r.Failed || r.Latency > most {
		// Whoever asked has waited for nothing: it counts as the longest.
		r.Latency, r.Failed = most, true
	}
	m.Requests = append(m.Requests, r)
}

func (m *Measured) finish(s *simulation) {
	if m.all > 0 {
		m.Probes = float64(m.probes) / float64(m.all)
	}
	for n := range int(s.o.Length / s.o.Policy.Width()) {
		share := math.NaN()
		if m.focusAll[n] > 0 {
			share = float64(m.focusIn[n]) / float64(m.focusAll[n])
		}
		m.Shares = append(m.Shares, share)
	}
}

// Latency is the distribution of requests that entered within a time.
type Latency struct {
	Requests, Failed int
	P50, P90, P99    time.Duration
}

// Everywhere stands for all sites.
const Everywhere = -1

// Latency sums up the requests that entered at a site, or everywhere, within
// [from, to). Without any all is 0.
func (m *Measured) Latency(site int, from, to time.Duration) Latency {
	var list []int64
	out := Latency{}
	for i := range m.Requests {
		r := &m.Requests[i]
		if r.At < from.Microseconds() || r.At >= to.Microseconds() || site != Everywhere && r.Site != site {
			continue
		}
		if list = append(list, r.Latency); r.Failed {
			out.Failed++
		}
	}
	if out.Requests = len(list); out.Requests == 0 {
		return out
	}
	slices.Sort(list)
	at := func(q float64) time.Duration {
		return time.Duration(list[int(math.Ceil(q*float64(len(list))))-1]) * time.Microsecond
	}
	out.P50, out.P90, out.P99 = at(0.5), at(0.9), at(0.99)
	return out
}

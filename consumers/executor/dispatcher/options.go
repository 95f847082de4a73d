package dispatcher

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"penstock/infra/clock"
	"penstock/schemas/event"
)

// Zone is a pool of servers behind one second-level switch.
type Zone struct {
	// Name of the zone, as tables call it.
	Name string
	// Servers in the order that decides ties.
	Servers []Server
}

// Server is one server of a zone.
type Server struct {
	// Name as the pool of connections and tables call it; unique at the site.
	Name string
	// Weight is its share beside the others' weights for policies that go by it. 0 is 1.
	Weight float64
	// InService is the most requests in service there, over all dispatchers: the
	// paper's M. 0 is Options.InService.
	InService int
}

// Class is the limit and the penalty of a class of requests.
type Class struct {
	// Name as Facts call it. The class Other is that of requests of no other.
	Name string
	// Limit of the response time, t_max; 0: there is none, and no penalty.
	Limit time.Duration
	// Penalty is what each second beyond the limit costs.
	Penalty float64
	// Dynamic says that programs answer such requests; else they are of files.
	Dynamic bool
	// Impact is the class of CAP: its requests go round the servers on their own.
	Impact uint8
}

// Other is the name of the class of requests that have none of the listed ones. Unless
// it is listed it has no limit.
const Other = "other"

// What Options.Zone may be.
const (
	// ByPenalty takes the zone with the least potential penalty per request in it
	// (PAPERS §2.5).
	ByPenalty = "penalty"
	// ByLoad takes the zone with the fewest requests for its places.
	ByLoad = "load"
)

// Options of a Site. The zero value of a field is its default.
type Options struct {
	// Site by name, the scope of its tables. Needed.
	Site string
	// Zones of the site; at least one with a server. Needed.
	Zones []Zone
	// Classes of requests with their limits.
	Classes []Class
	// Policy chooses server and place in a zone, see package pool. Defaults to A1.
	Policy string
	// Zone is how a zone is chosen within the weights in force: ByPenalty, the default,
	// or ByLoad.
	Zone string
	// InService is M of servers that don't say theirs. Defaults to 16.
	InService int
	// Queue is the most requests that wait at one server. Defaults to 1,000.
	Queue int
	// Ramp is in what time a new server comes to its full share. Defaults to 10 s;
	// negative is none.
	Ramp time.Duration
	// Trial is after how long without a request a server that the policy does not choose
	// has one all the same, so that one that was slow is found when it is fast again (see
	// pool.Options.Trial). Defaults to 10 s; negative is never.
	Trial time.Duration
	// Literal makes policies what their sources say and nothing more. Else they also
	// count for how long requests in service run already, so that a server that has
	// become slow is known for it before it answers, A2 counts that servers do several
	// requests at once, no request waits while another server is free, and there are
	// trials.
	Literal bool
	// Seed of policies that draw.
	Seed uint64
	// Shares says which part of each server's places is this dispatcher's. Defaults to
	// all: Static{}.
	Shares Shares
	// Others are the dispatchers of other entry points. Defaults to none.
	Others Others
	// Gauges takes the state of each queue once a second. Defaults to nobody.
	Gauges Gauges
	// Switched is told which servers may get requests by the table in force, by name
	// and in their order, at the start and whenever that changes; the others are
	// drained. It is called one at a time, and may call Usable.
	Switched func(on []string)
	// Clock measures requests and paces Run. Defaults to the machine's.
	Clock clock.Clock
	// Registerer, if set, gets the metrics.
	Registerer prometheus.Registerer
	// Logger is told of what an operator has to know, never of single requests.
	Logger zerolog.Logger
}

// Gauges takes gauges; publisher.Publisher does. It never blocks and keeps nothing of a
// gauge but its strings.
type Gauges interface{ Gauge(g *event.Gauge) }

// Shares says which part of the places of each server is this dispatcher's (several
// entry points on one pool share M out among the live ones, DESIGN §4.3).
type Shares interface {
	// Share is how many requests this dispatcher may have in service at a server that
	// takes m in all: 0 to m. The sum over all dispatchers must never be above m. It is
	// called often, from any goroutine, and never blocks.
	Share(server string, m int) int
	// Watch has fn called after shares have changed, from any goroutine but not within
	// Share. It is called once, before any change.
	Watch(fn func())
}

// Others says what the dispatchers of other entry points have at the site.
type Others interface {
	// Zone is the sum over all others that live, some false if there is none. It never
	// blocks.
	Zone(name string) (l Load, some bool)
}

// Load is what a zone has.
type Load struct {
	// Requests that wait or are in service.
	Requests int
	// Potential penalty of those that wait.
	Potential float64
	// At is when the oldest of these figures was taken.
	At time.Time
}

// freshFor is how old figures of others may be (DESIGN §4.3); then least load decides.
const freshFor = 3 * time.Second

// Static shares M out by a fixed number of dispatchers. The zero value is one alone. It
// implements Shares.
type Static struct {
	// Of is how many dispatchers there are, Rank which of them this is, from 0.
	Of, Rank int
}

// Share is m/Of; of what is left over the ranks get one each, beginning with another one
// at each server, so that each has places somewhere.
func (s Static) Share(server string, m int) int {
	if s.Of <= 1 {
		return m
	}
	n, left := m/s.Of, m%s.Of
	if turn := (s.Rank + int(sum(server)%uint64(s.Of))) % s.Of; turn < left {
		n++
	}
	return n
}

// Watch does nothing: the shares never change.
func (Static) Watch(func()) {}

// sum is a hash of a server's name (FNV-1a).
func sum(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return h
}

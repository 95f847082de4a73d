package pool

// Policy names an algorithm of the second-level switch.
type Policy string

// The policies, see the package's documentation.
const (
	A1       Policy = "A1"        // least increase of penalties
	A2       Policy = "A2"        // least loaded server, cheapest place in its line
	A3       Policy = "A3"        // most diverse slack
	RR       Policy = "rr"        // round robin
	WRR      Policy = "wrr"       // weighted round robin
	LL       Policy = "ll"        // least load
	CAP      Policy = "cap"       // round robin within each class of impact
	P2C      Policy = "p2c"       // the less loaded of two drawn
	PeakEWMA Policy = "peak-ewma" // the lower peak of smoothed latency of two drawn
	Prequal  Policy = "prequal"   // hot-cold lexicographic rule
	ICBS     Policy = "icbs"      // least expected cost, cost-based scheduling
	Auto     Policy = "auto"      // the best that we have
)

// Policies returns the names of all.
func Policies() []Policy {
	return []Policy{A1, A2, A3, RR, WRR, LL, CAP, P2C, PeakEWMA, Prequal, ICBS, Auto}
}

// Server is one server of the zone, as SetServers takes it.
type Server struct {
	// Name of the server, unique in the pool.
	Name string
	// Weight is the server's part of the requests where the policy knows of
	// weights (wrr, ll, p2c), and its fair share while it ramps. 0 means 1.
	Weight float64
	// M is how many requests may be in service there at once, this switch's share
	// of them. 0: usable, yet no slot is left for this switch.
	M int
}

// Class is what requests of one kind were promised.
type Class struct {
	// Limit is t_max in s: the longest response time without penalty.
	Limit float64
	// Penalty in cost units per second beyond the limit.
	Penalty float64
}

// Request is what is known of a request when it arrives.
type Request struct {
	// ID is unique among the requests in the pool.
	ID uint64
	// Class is an index of Options.Classes.
	Class int
	// Size in bytes, as far as it is known before the request was served.
	Size float64
	// Dynamic requests are made by a program, static ones are read.
	Dynamic bool
	// Entered is tau(1), when the request entered the system, in ns; the limit
	// counts from then. 0: from its arrival here, tau(2).
	Entered int64
	// Impact is the class of what the request asks of a server's parts, for cap.
	Impact uint8
	// Avoid names servers that are to have the request only if no other may: those
	// that it has tried. The slice is not kept.
	Avoid []string
}

// Placed says where a request is.
type Placed struct {
	ID uint64
	// Server that has it. "": no server is usable, and a request that was waiting
	// when that came about waits until one is.
	Server string
	// Queued is false if the request is started at once; its Start is in the same
	// answer.
	Queued bool
	// Service is the estimate of the service time at this server, in s.
	Service float64
	// Wait is the estimate of the wait at this server, in s, 0 if it is started.
	Wait float64
	// Increase is what the policy has compared where it compares costs (A1, icbs,
	// auto): cost units that placing the request there adds; else 0.
	Increase float64
}

// Start tells to send a request to a server now.
type Start struct {
	ID     uint64
	Server string
	// Waited is the time from the request's arrival in the pool, in ns.
	Waited int64
	// Service is the estimate of the service time at this server, in s.
	Service float64
}

// Outcome of a request in service.
type Outcome struct {
	// OK: the server has answered. What failed teaches only that an answer would
	// have taken longer than that.
	OK bool
	// Service time in s, from the start at the server to the end of the answer. 0:
	// the time since the Start.
	Service float64
}

// Gauge is the state of one server.
type Gauge struct {
	Server string
	// Usable as SetUsable said; Leaving servers are no longer in the list and have
	// requests in service; Ramping ones are new.
	Usable, Leaving, Ramping bool
	// M of the server, and how many are in service and queued.
	M, InService, Queued int
	// QueuedStatic and QueuedDynamic are how many of the queued are of which kind,
	// StaticBytes and DynamicBytes their sums of sizes.
	QueuedStatic, QueuedDynamic int
	StaticBytes, DynamicBytes   float64
	// Potential is the sum of p_k·max(0, σ_k − d_k) of the queued, in cost units,
	// where σ_k is the estimated start; Late is that of those in service, whose
	// start is known.
	Potential, Late float64
	// Wait is the estimate of the wait behind all that are queued, in s.
	Wait float64
	// ServiceError and WaitError are the mean relative errors of the estimates.
	ServiceError, WaitError float64
	// Slowdown is how much longer those in service run than was estimated, at
	// least 1 (see Options.Elapsed).
	Slowdown float64
	// Started counts the requests started there since the server was added, Trials those
	// of them that were trials (see Options.Trial).
	Started, Trials uint64
}

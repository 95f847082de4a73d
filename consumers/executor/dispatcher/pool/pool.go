package pool

// Pool is the second-level switch of one zone. It is not safe for concurrent use.
type Pool struct {
	options Options
}

// New makes a pool without servers, see SetServers. An error wraps ErrOption.
func New(o Options) (*Pool, error) { return &Pool{options: o}, nil }

// Arrive places a request: it is started at once, or queued at a server. starts is
// appended to and returned, here and everywhere. An error is ErrFull, ErrNoServer,
// ErrKnown or ErrClass, and the request is not in the pool.
func (p *Pool) Arrive(now int64, r Request, starts []Start) (Placed, []Start, error) {
	return Placed{}, starts, ErrNoServer
}

// Done ends a request in service: the estimates learn from it, and the server's
// next is started. An ID that is not in service changes nothing.
func (p *Pool) Done(now int64, id uint64, o Outcome, starts []Start) []Start { return starts }

// Cancel takes a request out whose client is gone, queued or in service: its place
// is free, and nothing is learned of it. An ID that is not in the pool changes
// nothing.
func (p *Pool) Cancel(now int64, id uint64, starts []Start) []Start { return starts }

// SetServers says which servers there are. New ones begin with estimates pooled from
// the others and ramp; those that are no longer there get no more requests, those in
// service there end as ever, and those queued there are placed anew: moved says where.
// An error wraps ErrServers and nothing has changed.
func (p *Pool) SetServers(now int64, servers []Server, moved []Placed, starts []Start) ([]Placed, []Start, error) {
	return moved, starts, nil
}

// SetUsable says which servers may be used, by their health; until it is called the
// first time, all may. Requests that are queued at others are placed anew.
func (p *Pool) SetUsable(now int64, names []string, moved []Placed, starts []Start) ([]Placed, []Start) {
	return moved, starts
}

// Gauges calls fn for every server, in the order of SetServers, then those leaving.
func (p *Pool) Gauges(now int64, fn func(Gauge)) {}

// Potential is the sum of the queued requests' potential penalties, in cost units.
func (p *Pool) Potential(now int64) float64 { return 0 }

// Len is how many requests are queued and in service.
func (p *Pool) Len() (queued, inService int) { return 0, 0 }

// Wait is how long a request that arrived now would wait, in s: the least estimate of
// the usable servers. It is what a client that is turned away is told to wait.
func (p *Pool) Wait(now int64) float64 { return 0 }

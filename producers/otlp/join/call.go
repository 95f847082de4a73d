package join

import (
	"penstock/producers/otlp/span"
	"penstock/schemas/event"
)

// Party is one side of a call. An empty component is outside; its site is then
// where the request entered.
type Party struct{ Component, Site, Server string }

func partyOf(s *span.Span) Party { return Party{s.Component, s.Site, s.Server} }

// Call is one call of a component by another, or from outside.
type Call struct {
	Trace    span.Trace
	ID       span.ID // of the half that it was made of
	From, To Party
	// Time is when the caller had its answer, by its own clock, in ns; of a call
	// without a client's half when the server was done, by the server's. If no
	// half has a duration it is when the call began (NoDuration).
	Time int64
	// Client is how long the caller waited, Server how long the callee took, Own
	// how long that was without the calls that the callee waited for; ns or
	// span.Unknown.
	Client, Server, Own int64
	// Fanout says that the client's half had several callees: how long each of
	// them took on the way is unknown.
	Fanout bool
	// Follows says that the caller didn't wait.
	Follows            bool
	Entry, OneSided    bool
	Skewed, Negative   bool
	NoDuration         bool
	Bytes              int64
	Status             int32
	Op                 event.Op
	Class, Owner, User string
}

// Network is what the caller waited beyond the callee's duration, ns; it is
// negative where the callee took longer, and span.Unknown without both halves.
func (c *Call) Network() int64 {
	if c.Client == span.Unknown || c.Server == span.Unknown || c.Fanout || c.Follows {
		return span.Unknown
	}
	return c.Client - c.Server
}

// Service says what goes to service_us.
type Service uint8

const (
	// Whole is the callee's duration with all that it waited for: the round trip
	// is service and network, as DESIGN §3.1 wants and entry points measure it.
	Whole Service = iota
	// Own is the callee's own part, so that the delay of a request is a sum over
	// the calls of its tree (PAPERS §4.2).
	Own
)

// Request fills r. Without the server's half the whole is service, and network is
// unknown.
func (c *Call) Request(r *event.Request, s Service) {
	*r = event.NewRequest(micros(c.Time))
	r.Trace, r.ID = c.Trace, c.ID.String()
	r.FromComponent, r.FromSite = c.From.Component, c.From.Site
	r.ToComponent, r.ToSite, r.ToServer = c.To.Component, c.To.Site, c.To.Server
	r.Op, r.Class, r.Status, r.Bytes = c.Op, c.Class, c.Status, c.Bytes
	r.Owner, r.User = c.Owner, c.User
	switch {
	case c.Server == span.Unknown:
		r.Service = delay(c.Client)
	case s == Own:
		r.Service = delay(c.Own)
	default:
		r.Service = delay(c.Server)
	}
	if n := c.Network(); n != span.Unknown {
		// Of the two as they are in µs, so that they add up to the round trip.
		r.Network = micros(c.Client) - micros(c.Server)
		if n < 0 && r.Network == 0 {
			r.Network = -1 // a negative one stays negative
		}
	}
}

// micros rounds ns down.
func micros(ns int64) int64 {
	us := ns / 1000
	if ns%1000 < 0 {
		us--
	}
	return us
}

func delay(ns int64) int64 {
	if ns == span.Unknown {
		return event.NullInt
	}
	return micros(ns)
}

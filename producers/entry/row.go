package entry

import (
	"cmp"
	"time"

	"penstock/producers/entry/upstream"
	"penstock/schemas/event"
)

// classBadRequest is the class of a request that isn't one (DESIGN §3.2, P07).
const classBadRequest = "bad-request"

// row is what all rows of the exchange have.
func (x *exchange) row(at time.Time) *event.Request {
	r := &x.event
	*r = event.NewRequest(at.UnixMicro())
	r.Op, r.Trace = x.op, x.traceID
	r.User, r.Owner, r.Class = x.user, x.owner, x.class
	if x.probe {
		// Nobody asked for it: owners' traffic and places are of real requests.
		r.User, r.Owner, r.Class = "", "", classProbe
	}
	r.ToComponent, r.ToSite = x.to.name, x.e.o.Site
	// Of a caller outside what is known is where it came in.
	r.FromComponent, r.FromSite = x.from, x.e.o.Site
	if x.hop != nil && x.hop.proven {
		r.FromSite = x.hop.from
	}
	if x.place.known && !x.probe {
		r.Lat, r.Lon = x.place.lat, x.place.lon
	}
	return r
}

// publish makes the row of the answer. The entry point that the client called
// does that, a hop's doesn't.
func (x *exchange) publish(done time.Time) {
	if x.hop != nil {
		return
	}
	r := x.row(done)
	r.Status = int32(x.status)
	received := x.received
	if x.body != nil {
		received, _ = x.body.state()
	}
	r.Bytes = min(received+x.sent, event.MaxRequestBytes)
	r.ToSite, r.ToServer = x.toSite, x.toServer
	if r.ToSite == "" {
		r.ToSite = x.e.o.Site
	}
	if !x.asked {
		// Nobody was asked, so that nobody is to blame: any client can have as many of
		// these answers as it likes.
		r.ToComponent = ""
	}
	x.delays(r)
	x.e.o.Publisher.Publish(r)
}

// delays splits the time that the answer took. Nothing is clamped: a service
// whose clock is off shows as a negative network (P18).
func (x *exchange) delays(r *event.Request) {
	if x.attempt == nil {
		if x.held > 0 {
			r.Wait = x.held.Microseconds()
		}
		return
	}
	wait, service, network, known := x.durations(x.attempt)
	r.Wait = wait.Microseconds()
	if known {
		r.Service, r.Network = service.Microseconds(), network.Microseconds()
	}
	if over, known := x.overdue(x.attempt); known {
		r.Overdue = over.Microseconds()
	}
}

// durations returns how long the attempt waited, was served, and was on its way; known
// is false for the last two if there was no answer. What the client takes to send
// its body and to take the answer is in none of them: a slow client says nothing of
// a replica.
func (x *exchange) durations(a *upstream.Attempt) (wait, service, network time.Duration, known bool) {
	wait = x.held + waited(a) + x.timings.wait
	if x.handed.IsZero() {
		x.handed = x.sentBy(a)
	}
	if a.FirstByte.IsZero() || x.handed.IsZero() {
		return wait, 0, 0, false
	}
	took := a.FirstByte.Sub(x.handed)
	service = took
	if x.timings.hasService {
		service = x.timings.service
		// What the service waited for its own callees is neither: it is in their rows, and
		// would else make every link above a slow callee look slow.
		took -= x.timings.callees
	}
	return wait, service, took - service - x.timings.wait, true
}

// begun is when an attempt was done with waiting, or gave up.
func begun(a *upstream.Attempt) time.Time {
	switch {
	case !a.Connected.IsZero():
		return a.Connected
	case !a.Placed.IsZero():
		return a.Placed
	}
	return a.Queued
}

// waited is how long an attempt waited for a place at a server and for a connection.
func waited(a *upstream.Attempt) time.Duration { return begun(a).Sub(a.Queued) }

// overdue is how much longer than its limit the response took, 0 if it was in time;
// known is false if there was none, or no limit. It counts from when the request asked
// for a server first, what it was held at the gate before included, to the end of the
// answer; but not what its client took.
func (x *exchange) overdue(a *upstream.Attempt) (over time.Duration, known bool) {
	limit := cmp.Or(a.Limit, x.timings.limit)
	if limit <= 0 || a.Entered.IsZero() {
		return 0, false
	}
	start, end, client := begun(a), a.FirstByte, time.Duration(0)
	if end.IsZero() {
		end = a.Done
	} else if x.body != nil && x.handed.After(start) {
		client = x.handed.Sub(start)
	}
	over = x.held + end.Sub(a.Entered) - client + a.Awaited - limit
	if a.Server == "" && over <= 0 {
		return 0, false // it was turned away, or its client left in time
	}
	return max(over, 0), a.Server != "" || x.gone
}

// sentBy is when as much of the request had been sent as its answer waited for: all
// of it, or what the client had sent by then if the answer came before the end of a
// body. Zero: there was no connection.
func (x *exchange) sentBy(a *upstream.Attempt) time.Time {
	if !a.Sent.IsZero() && !a.Sent.After(a.FirstByte) {
		return a.Sent
	}
	at := a.Connected
	if x.body == nil || at.IsZero() || a.FirstByte.IsZero() {
		return at
	}
	if last := x.body.latest(); last.After(at) {
		at = last
	}
	if at.After(a.FirstByte) {
		return a.FirstByte // the client sent on meanwhile
	}
	return at
}

// failed publishes a row of an attempt that another followed. Whoever made the
// attempt does that.
func (x *exchange) failed(a *upstream.Attempt) {
	done := a.Done
	if done.IsZero() {
		done = x.e.o.Clock.Now()
	}
	r := x.row(done)
	r.ToSite = x.e.router.sites[x.at.site].Name
	if x.hops == 0 {
		r.ToServer = a.Server // of a peer's servers only the peer could tell
	}
	r.Status = int32(a.Status)
	r.Bytes = min(a.BytesOut+a.BytesIn, event.MaxRequestBytes)
	if !a.Connected.IsZero() || !a.Placed.IsZero() {
		r.Wait = waited(a).Microseconds()
	}
	if !a.Connected.IsZero() {
		if !a.FirstByte.IsZero() && !a.Sent.IsZero() && !a.Sent.After(a.FirstByte) {
			r.Service, r.Network = a.FirstByte.Sub(a.Sent).Microseconds(), 0 // what the way took is not known
		}
	}
	x.e.m.failedAttempts.Inc()
	x.e.o.Publisher.Publish(r)
}

// publishRefused makes the row of what is no request.
func (x *exchange) publishRefused(done time.Time) {
	r := x.row(done)
	r.Status, r.Class, r.Op = int32(x.status), classBadRequest, event.Read
	r.ToComponent = "" // nobody was asked
	r.Bytes = x.sent
	x.e.o.Publisher.Publish(r)
}

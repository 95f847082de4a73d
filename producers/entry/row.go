package entry

import (
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
	// Of another protocol's connection the handshake is what took its time.
	end := done
	if !x.switched.IsZero() {
		end = x.switched
	}
	x.delays(r, end.Sub(x.start))
	x.e.o.Publisher.Publish(r)
}

// delays splits the time that the answer took. Nothing is clamped: a service
// whose clock is off shows as a negative network (P18).
func (x *exchange) delays(r *event.Request, total time.Duration) {
	if x.attempt == nil {
		if x.held > 0 {
			r.Wait = x.held.Microseconds()
		}
		return
	}
	wait, service, known := x.durations(x.attempt)
	r.Wait = wait.Microseconds()
	if known {
		r.Service = service.Microseconds()
		// What the service waited for its own callees is neither: it is in their rows, and
		// would else make every link above a slow callee look slow.
		r.Network = (total - wait - service - x.timings.callees).Microseconds()
	}
}

// durations returns how long the attempt waited and was served.
func (x *exchange) durations(a *upstream.Attempt) (wait, service time.Duration, known bool) {
	wait = x.held
	if !a.Connected.IsZero() {
		wait += a.Connected.Sub(a.Queued)
	}
	if x.timings.hasWait {
		wait += x.timings.wait
	}
	switch {
	case x.timings.hasService:
		return wait, x.timings.service, true
	case a.FirstByte.IsZero():
		return wait, 0, false
	case !a.Sent.IsZero():
		return wait, a.FirstByte.Sub(a.Sent), true
	case !a.Connected.IsZero():
		// The answer came before all of the request was sent.
		return wait, a.FirstByte.Sub(a.Connected), true
	}
	return wait, 0, false
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
	if !a.Connected.IsZero() {
		r.Wait = a.Connected.Sub(a.Queued).Microseconds()
		if !a.FirstByte.IsZero() && !a.Sent.IsZero() {
			r.Service = a.FirstByte.Sub(a.Sent).Microseconds()
			r.Network = done.Sub(a.Queued).Microseconds() - r.Wait - r.Service
		}
	}
	x.e.m.failedAttempts.Inc()
	x.e.o.Publisher.Publish(r)
}

// publishRefused makes the row of what is no request.
func (x *exchange) publishRefused(done time.Time) {
	r := x.row(done)
	r.Status, r.Class, r.Op = int32(x.status), classBadRequest, event.Read
	r.Bytes = x.sent
	x.e.o.Publisher.Publish(r)
}

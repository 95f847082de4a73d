package entry

import (
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"

	"penstock/infra/clock"
	"penstock/producers/entry/identify"
	"penstock/producers/entry/strict"
	"penstock/producers/entry/upstream"
	"penstock/schemas/control"
	"penstock/schemas/event"
)

// exchange is one request and its answer.
type exchange struct {
	e      *Entry
	w      http.ResponseWriter
	r      *http.Request
	out    *http.Request // what goes on; made once
	client *client
	start  time.Time

	// Who asks for what.
	to      *component // whom it is for
	from    string     // the component that calls; empty: from outside
	probe   bool       // it is one, or caused by one
	hop     *hop       // nil: the client called this entry point itself
	marked  bool       // it says that it was forwarded, whether that is believed or not
	address netip.Addr
	user    string
	owner   string
	class   string
	op      event.Op
	place   position
	traceID [16]byte
	tunnel  string // the protocol that the client asks to change to
	body    *body  // nil: there is none

	// What became of it.
	split     splitting
	at        place // where it was sent last
	hops      int
	asked     bool // of what answers the client it is a server's or a peer's doing, or that there was none to ask
	attempt   *upstream.Attempt
	handed    time.Time // when as much of the request was sent as the answer waited for
	timings   timings
	held      time.Duration // at the gate
	toSite    string
	toServer  string
	status    int
	sent      int64 // bytes of the answer's body
	kind      kind
	reason    string
	again     time.Duration // when the client may try again, of 503; 0: soon
	unreached bool          // no connection to a server could be made
	malform   bool          // it was no request
	gone      bool          // the client left before the end
	broken    bool          // the answer broke off
	received  int64         // bytes from the client after the protocol changed

	asks   sync.Mutex
	asking bool // a pool has the request: its 1xx answers may be passed on

	event  event.Request
	values struct {
		trace, host, chain, site, version, hop, peer, user, owner, at, to, from [1]string
	}
}

// ServeHTTP implements http.Handler. It owns the request: its header is changed.
func (e *Entry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{e: e, w: w, r: r, start: e.o.Clock.Now(), client: e.clientOf(r), to: e.own}
	d := x.client.door
	if d.internal {
		x.from = control.Unnamed
	}
	if d.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	e.m.running.Inc()
	defer e.m.running.Dec()
	d.rowless.Add(1)
	defer d.rowless.Add(-1)
	x.serve()
	if x.body != nil {
		x.body.end()
	}
	x.finish()
	if x.broken || x.gone {
		panic(http.ErrAbortHandler) // the client has to see that the end is missing
	}
}

func (x *exchange) serve() {
	if refusal := x.refusal(); refusal != nil {
		x.malform, x.kind = true, kindRefused
		if x.r.ProtoMajor == 1 {
			x.w.Header()["Connection"] = oneClose
		}
		x.refuse(refusal.Status, refusal.Reason, refusal.Text)
		return
	}
	if !x.identify() {
		if x.kind == kindServed {
			x.kind = kindRefused
		}
		return
	}
	x.route()
}

// refusal says why the request is none. Those of HTTP/1 were looked at by their
// connection; those of HTTP/2 by its framing, which leaves these.
func (x *exchange) refusal() *strict.Refusal {
	r := x.r
	if c := x.client.conn; c != nil {
		if len(r.URL.Path) == len(x.e.limits.Marker) && r.URL.Path == x.e.limits.Marker {
			return c.Refused()
		}
		return nil
	}
	if refusal := strict.CheckMethod(r.Method); refusal != nil {
		return refusal
	}
	if !strict.IsPath(r.RequestURI) && (r.RequestURI != "*" || r.Method != http.MethodOptions) {
		return strict.RefusedTarget
	}
	if !strict.IsHost(r.Host) {
		return strict.RefusedHost
	}
	for _, host := range r.Header["Host"] {
		if !strings.EqualFold(host, r.Host) {
			return strict.RefusedHost
		}
	}
	if length := r.Header["Content-Length"]; len(length) > 1 || len(length) == 1 && !strict.IsLength(length[0]) {
		return strict.RefusedLength
	}
	if expect := r.Header["Expect"]; len(expect) > 1 || len(expect) == 1 && !strings.EqualFold(expect[0], "100-continue") {
		return strict.RefusedExpect
	}
	return nil
}

// identify finds out who asks for what, and makes the request that goes on. It
// answers and returns false if the request ends here.
func (x *exchange) identify() bool {
	e, r := x.e, x.r
	h := r.Header
	x.hop, x.marked = e.takeHop(h, x.client.trusted)
	believed := x.client.trusted || x.hop != nil || x.client.door.internal
	x.address = x.client.address
	if believed {
		x.address = e.proxies.Client(h, x.client.address, e.o.ForwardedOnly)
	}
	x.op = event.OpOf(r.Method)
	path := pathOf(r)
	if !x.callee(h, path) {
		return false
	}
	x.tunnel = upgradeOf(r)
	trailers := wantsTrailers(h)
	claims, ok := x.claims(h)
	if !ok {
		return false
	}
	strip(h)
	delete(h, "Host")
	q := identify.Request{Path: path, Header: h, Claims: claims, Address: x.address}
	x.whoAndWhat(&q)
	x.traceID = joinTrace(h, e.o.TraceSample, &x.values.trace)
	x.describeClient(h, r, believed)
	if x.probe {
		h[headerProbe] = oneMark
	}
	if trailers {
		h["Te"] = oneTrailers
	}
	if x.tunnel != "" {
		h["Upgrade"], h["Connection"] = []string{x.tunnel}, oneUpgrade
	}
	return x.prepare()
}

// claims reads the token, if anything needs it; false if the request was refused
// for it.
func (x *exchange) claims(h http.Header) (identify.Claims, bool) {
	e := x.e
	if !e.claims || x.hop != nil && x.hop.proven {
		return nil, true
	}
	claims, err := e.tokens.Read(h["Authorization"])
	if err != nil {
		e.m.ignored("token", "refused")
	}
	if !e.o.JWT.Required || x.client.door.internal || claims != nil && err == nil {
		return claims, true
	}
	challenge := wantsBearer
	if err != nil {
		challenge = wrongBearer
	}
	x.w.Header()["Www-Authenticate"] = challenge
	x.refuse(http.StatusUnauthorized, "token", "a token is needed that is valid here")
	return nil, false
}

// whoAndWhat finds user, owner, class and place. What a peer found stays.
func (x *exchange) whoAndWhat(q *identify.Request) {
	e := x.e
	if x.hop != nil && x.hop.proven {
		x.user, x.owner = x.hop.user, x.hop.owner
	} else {
		// Owners' data is of one component; a call between others is nobody's.
		var unusable bool
		if x.to.owns {
			if x.owner, unusable = e.owner.Find(q); unusable {
				e.m.ignored("owner", "unusable")
			}
		}
		if x.to.owns || !x.client.door.internal {
			if x.user, unusable = e.user.Find(q); unusable {
				e.m.ignored("user", "unusable")
			}
		}
	}
	for i := range e.classes {
		if _, ok := e.classes[i].pattern.Match(q.Path); ok {
			x.class = e.classes[i].name
			break
		}
	}
	if !x.client.door.internal {
		x.place = e.position(x.client, x.address)
	}
}

// pathOf returns the path as the client wrote it, in its normal form.
func pathOf(r *http.Request) string {
	path := r.RequestURI
	if path == "" || path[0] != '/' {
		path = r.URL.EscapedPath() // of an absolute target
	}
	path, _, _ = strings.Cut(path, "?")
	return identify.Normal(path)
}

// prepare makes the request that goes on, of which only the headers for a peer
// change from one attempt to the next.
func (x *exchange) prepare() bool {
	e, r := x.e, x.r
	if limit := e.o.Limits.Body; limit > 0 && r.ContentLength > limit {
		x.body = &body{} // nothing of it was read
		x.refuse(http.StatusRequestEntityTooLarge, "body-too-large", "the body is larger than "+strconv.FormatInt(limit, 10)+" bytes")
		x.body = nil
		return false
	}
	trace := &httptrace.ClientTrace{Got1xxResponse: x.interim}
	ctx := r.Context()
	if x.to.dispatched && x.class != "" {
		ctx = upstream.WithClass(ctx, x.class)
	}
	x.out = r.WithContext(httptrace.WithClientTrace(ctx, trace))
	x.out.RequestURI, x.out.Close, x.out.TransferEncoding = "", false, nil
	if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		x.out.Body, x.out.ContentLength, x.out.Trailer = http.NoBody, 0, nil
		return true
	}
	b := &body{
		src: r.Body, control: http.NewResponseController(x.w), request: r, sockets: clock.System(), clock: e.o.Clock, whole: true,
		limit: e.o.Limits.Body, rate: e.o.Limits.BodyRate, grace: e.o.Limits.BodyGrace, keep: int(e.o.Replay),
	}
	if r.ProtoMajor == 1 {
		// The answer may begin before the body has ended.
		_ = b.control.EnableFullDuplex() // where it can't, the answer waits for the body
	}
	x.out.Trailer = nil
	for name := range r.Trailer {
		if ofHop(name) || name == "Content-Length" || name == "Host" {
			continue
		}
		if x.out.Trailer == nil {
			x.out.Trailer = http.Header{}
		}
		x.out.Trailer[name] = nil
	}
	b.trailer = x.out.Trailer
	x.body, x.out.GetBody = b, b.open
	return true
}

// interim passes an answer of 1xx on. 100 is the server's own business: it comes
// when the body is read.
// It may be called by another goroutine, also when nobody waits for the answer
// any more.
func (x *exchange) interim(code int, header textproto.MIMEHeader) error {
	if code == http.StatusContinue || code == http.StatusSwitchingProtocols || !x.r.ProtoAtLeast(1, 1) {
		return nil
	}
	x.asks.Lock()
	defer x.asks.Unlock()
	if !x.asking {
		return nil
	}
	h := x.w.Header()
	from := http.Header(header)
	strip(from)
	for name, values := range from {
		h[name] = values
	}
	x.w.WriteHeader(code)
	clear(h)
	return nil
}

// finish counts the exchange and publishes its row.
func (x *exchange) finish() {
	done := x.e.o.Clock.Now()
	if x.gone {
		x.status, x.kind = statusAbandoned, kindAbandoned
	}
	x.e.m.observe(x, done.Sub(x.start))
	if x.malform {
		x.publishRefused(done)
		return
	}
	x.publish(done)
}

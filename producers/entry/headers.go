package entry

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"penstock/schemas/event"
)

// The headers of entry points, in their canonical form.
const (
	headerSite    = "Penstock-Site"    // of an answer: who served, or where to go
	headerVersion = "Penstock-Version" // of that word
	headerHops    = "Penstock-Hops"    // of an answer: 0 or 1
	headerServer  = "Penstock-Server"  // of an answer to a peer
	headerHop     = "Penstock-Hop"     // of a request from a peer: its site
	headerPeer    = "Penstock-Peer"    // of a request: the secret among peers; of an answer: peerUnknown
	headerUser    = "Penstock-User"    // as the first entry point found it
	headerOwner   = "Penstock-Owner"   // as the first entry point found it

	headerTo        = "Penstock-To"        // of a call: the component that it is for
	headerComponent = "Penstock-Component" // of a call: the component that makes it
	headerProbe     = "Penstock-Probe"     // of a probe, and of calls that it causes
	headerReason    = "Penstock-Reason"    // of a peer's own answer: why there is no other
)

// probeMark is the value of headerProbe.
const probeMark = "1"

// peerUnknown in an answer of 508 says that a forwarded request was not taken for
// one of a peer.
const peerUnknown = "unknown"

// hop is what another entry point of the service says of a request that it
// forwarded.
type hop struct {
	from string // its site
	// proven is set if it has shown the key. Only then it is believed what follows.
	proven      bool
	user, owner string
	version     uint64 // of the location that it believed, 0 if unknown
}

// takeHop reads what a peer says, if the request is from one: it has the key,
// or, where there is none, comes from a trusted proxy. Behind such a proxy anybody
// could have written it: then it says only that the request was forwarded, and who
// asks for what is found out here.
//
// marked says that the request bears the mark of a forwarded one, whoever wrote it.
// Such a request is never forwarded again, so that none goes in circles however
// entry points are configured; whoever writes the mark has no other use of it.
func (e *Entry) takeHop(h http.Header, trusted bool) (p *hop, marked bool) {
	if len(h[headerHop]) == 0 {
		return nil, false
	}
	return e.believeHop(h, trusted), true
}

func (e *Entry) believeHop(h http.Header, trusted bool) *hop {
	from := first(h, headerHop)
	if len(e.o.PeerKey) > 0 {
		if subtle.ConstantTimeCompare([]byte(first(h, headerPeer)), e.o.PeerKey) != 1 {
			e.m.ignored("hop", "key")
			return nil
		}
	} else if !trusted {
		e.m.ignored("hop", "stranger")
		return nil
	}
	if _, ok := e.router.index[from]; !ok {
		e.m.ignored("hop", "site")
		return nil
	}
	p := &hop{from: from, proven: len(e.o.PeerKey) > 0}
	if !p.proven {
		return p
	}
	p.version, _ = strconv.ParseUint(first(h, headerVersion), 10, 64) // absent is 0
	p.user, p.owner = decodeID(first(h, headerUser)), decodeID(first(h, headerOwner))
	return p
}

func first(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// encodeID makes an id fit for a header: what isn't unreserved in URLs is
// escaped.
func encodeID(id string) string { return url.PathEscape(id) }

// decodeID undoes encodeID; "" for what is no id.
func decodeID(s string) string {
	id, err := url.PathUnescape(s)
	if err != nil || len(id) > event.MaxID || !utf8.ValidString(id) {
		return ""
	}
	return id
}

// ofHop reports whether a header is about one connection only, or is one of
// ours, which nobody else sends (RFC 9110 §7.6.1). Names are canonical; one that
// differs from such a name by underscores alone is taken for it, as gateways
// that make variables of names do.
func ofHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings":
		return true
	}
	return len(name) > 8 && (name[8] == '-' || name[8] == '_') && strings.EqualFold(name[:8], "penstock") ||
		strings.IndexByte(name, '_') >= 0 && ofHopLoosely(name)
}

func ofHopLoosely(name string) bool {
	name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	switch name {
	case "Content-Length", "Host", "Forwarded", "X-Real-Ip":
		return true
	}
	return strings.HasPrefix(name, forwardedPrefix) || ofHop(name)
}

// strip takes off what is about the client's connection, what its Connection
// field names, and every header of ours.
func strip(h http.Header) {
	for _, line := range h["Connection"] {
		for line != "" {
			var name string
			name, line, _ = strings.Cut(line, ",")
			if name = strings.TrimSpace(name); name != "" {
				delete(h, http.CanonicalHeaderKey(name))
			}
		}
	}
	for name := range h {
		if ofHop(name) {
			delete(h, name)
		}
	}
}

// upgradeOf returns the protocol that the client asks to change to, "" if none:
// a GET of HTTP/1.1 without a body. HTTP/2 is not one, for its requests would
// pass by the entry point.
func upgradeOf(r *http.Request) string {
	u := r.Header["Upgrade"]
	if len(u) != 1 || r.ProtoMajor != 1 || r.ProtoMinor != 1 || r.Method != http.MethodGet || r.ContentLength != 0 {
		return ""
	}
	named := false
	for _, line := range r.Header["Connection"] {
		for word := range strings.SplitSeq(line, ",") {
			named = named || strings.EqualFold(strings.TrimSpace(word), "upgrade")
		}
	}
	for word := range strings.SplitSeq(u[0], ",") {
		if word = strings.TrimSpace(word); word == "" || len(word) >= 2 && strings.EqualFold(word[:2], "h2") ||
			len(word) >= 4 && strings.EqualFold(word[:4], "http") {
			return ""
		}
	}
	if !named {
		return ""
	}
	return u[0]
}

// forwardedPrefix begins the names of what proxies say of a request's way.
const forwardedPrefix = "X-Forwarded-"

// forgetWay takes off what a stranger says of a request's way.
func forgetWay(h http.Header) {
	delete(h, "Forwarded")
	delete(h, "X-Real-Ip")
	for name := range h {
		if strings.HasPrefix(name, forwardedPrefix) {
			delete(h, name)
		}
	}
}

// wantsTrailers reports whether the client takes trailers.
func wantsTrailers(h http.Header) bool {
	for _, line := range h["Te"] {
		for word := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(word), "trailers") {
				return true
			}
		}
	}
	return false
}

// describeClient writes who the client is for the service. What a stranger says
// of itself is thrown away; what a trusted proxy says is kept and added to.
func (x *exchange) describeClient(h http.Header, r *http.Request, believed bool) {
	c := x.client
	scheme := schemeHTTP
	if r.TLS != nil || c.tls {
		scheme = schemeHTTPS
	}
	if !believed {
		forgetWay(h)
		h["X-Forwarded-For"], h["X-Forwarded-Proto"] = c.forwarded, scheme
		set(h, "X-Forwarded-Host", r.Host, &x.values.host)
		return
	}
	if prior := h["X-Forwarded-For"]; len(prior) > 0 {
		x.values.chain[0] = strings.Join(prior, ", ") + ", " + c.forwarded[0]
		h["X-Forwarded-For"] = x.values.chain[:]
	} else if x.address.IsValid() && x.address != c.address {
		// Forwarded named the client: both say the same to those who read one.
		x.values.chain[0] = x.address.String() + ", " + c.forwarded[0]
		h["X-Forwarded-For"] = x.values.chain[:]
	} else {
		h["X-Forwarded-For"] = c.forwarded
	}
	if len(h["X-Forwarded-Proto"]) == 0 {
		h["X-Forwarded-Proto"] = scheme
	}
	if len(h["X-Forwarded-Host"]) == 0 {
		set(h, "X-Forwarded-Host", r.Host, &x.values.host)
	}
}

// Values of headers that are shared by all requests: nobody may change them.
var (
	schemeHTTP   = []string{"http"}
	schemeHTTPS  = []string{"https"}
	oneMark      = []string{probeMark}
	oneTrailers  = []string{"trailers"}
	oneUpgrade   = []string{"Upgrade"}
	oneClose     = []string{"close"}
	notAPeer     = []string{peerUnknown}
	hopsNone     = []string{"0"}
	hopsOne      = []string{"1"}
	oneSecond    = []string{"1"}
	plainText    = []string{"text/plain; charset=utf-8"}
	notStored    = []string{"no-store"}
	notSniffed   = []string{"nosniff"}
	wantsBearer  = []string{"Bearer"}
	wrongBearer  = []string{`Bearer error="invalid_token"`}
	methodsKnown = []string{"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"}
)

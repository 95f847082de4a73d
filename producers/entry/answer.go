package entry

import (
	"net/http"
	"strconv"
	"time"
)

// statusAbandoned is the status of a row whose client went away before it had
// the answer. No client ever sees it.
const statusAbandoned = 499

// refuse answers for the entry point itself. The text says what is wrong with
// the request or what to do; it tells nothing of what is behind.
func (x *exchange) refuse(status int, reason, text string) {
	x.reason = reason
	h := x.w.Header()
	if x.owner != "" {
		x.hops = 0
		x.about(h, x.e.o.Site, 0, false)
	}
	h["Content-Type"], h["X-Content-Type-Options"], h["Cache-Control"] = plainText, notSniffed, notStored
	if x.hop != nil && x.hop.proven {
		if x.unreached {
			reason = reasonNoConnection
		}
		h[headerReason] = []string{reason}
	}
	switch status {
	case http.StatusServiceUnavailable:
		h["Retry-After"] = retryAfter(x.again)
	case http.StatusMethodNotAllowed:
		h["Allow"] = methodsKnown
	}
	x.plain(status, "penstock: "+text+"\n")
}

// retryAfter is a time rounded up to whole seconds, at least one and at most an hour.
func retryAfter(d time.Duration) []string {
	if d <= time.Second {
		return oneSecond
	}
	return []string{strconv.FormatInt(int64((min(d, time.Hour)+time.Second-1)/time.Second), 10)}
}

// plain sends an answer with a body of the entry point's own.
func (x *exchange) plain(status int, text string) {
	h := x.w.Header()
	h["Content-Length"] = []string{strconv.Itoa(len(text))}
	x.closeUnread(h)
	x.status = status
	x.w.WriteHeader(status)
	if x.r.Method == http.MethodHead {
		return
	}
	n, err := x.w.Write([]byte(text))
	x.sent += int64(n)
	if err != nil {
		x.gone = true
	}
}

// closeUnread ends the connection after an answer that comes before the end of
// the request's body: what follows on it would have to be found first. Streams
// of HTTP/2 end by themselves.
func (x *exchange) closeUnread(h http.Header) {
	if x.body == nil || x.r.ProtoMajor != 1 {
		return
	}
	if _, err := x.body.state(); !isEnd(err) {
		h["Connection"] = oneClose
	}
}

// about says in an answer whose site served, or where to go.
func (x *exchange) about(h http.Header, site string, version uint64, known bool) {
	x.values.site[0] = site
	h[headerSite] = x.values.site[:]
	if known {
		x.values.version[0] = strconv.FormatUint(version, 10)
		h[headerVersion] = x.values.version[:]
	}
	if h[headerHops] = hopsNone; x.hops > 0 {
		h[headerHops] = hopsOne
	}
}

// redirectTo sends the client to the entry point of a site: 307 keeps method and
// body.
func (x *exchange) redirectTo(p place) {
	s := &x.e.router.sites[p.site]
	h := x.w.Header()
	h["Location"] = []string{s.URL + x.r.URL.RequestURI()}
	h["Cache-Control"] = notStored
	x.hops = 0 // whoever was asked before, this answer is from here
	x.about(h, s.Name, p.version, p.known)
	x.kind = kindRedirected
	x.plain(http.StatusTemporaryRedirect, "")
}

// disown answers a request that somebody has forwarded who is not known here, and
// whose data is elsewhere. It ends here: what goes on could come back.
func (x *exchange) disown(p place) {
	x.hops = 0
	if p.site == noSite {
		// The service named a site that this configuration doesn't have.
		x.moving()
		return
	}
	x.about(x.w.Header(), x.e.router.sites[p.site].Name, p.version, p.known)
	x.notFrom("this request was forwarded once already, and what it asks for is at another site")
}

// disownCall answers a call for a component that somebody has forwarded who is not
// known here.
func (x *exchange) disownCall() {
	x.notFrom("this call was forwarded by somebody who is not known here: of two sites of one service entry.peer_key_file, or without one privacy.user_key, must be the same")
}

// notFrom answers a forwarded request of somebody who is not known here. A peer sees
// that its key is another.
func (x *exchange) notFrom(text string) {
	h := x.w.Header()
	h[headerPeer], h["Content-Type"], h["X-Content-Type-Options"], h["Cache-Control"] = notAPeer, plainText, notSniffed, notStored
	x.kind, x.reason = kindMisdirected, "forwarded"
	x.plain(http.StatusLoopDetected, "penstock: "+text+"\n")
}

// misdirect tells a peer that the data isn't here, and where it is.
func (x *exchange) misdirect(p place) {
	x.hops = 0
	if p.site == noSite {
		// The service named a site that this configuration doesn't have.
		x.moving()
		return
	}
	x.about(x.w.Header(), x.e.router.sites[p.site].Name, p.version, p.known)
	x.kind = kindMisdirected
	x.plain(http.StatusMisdirectedRequest, "")
}

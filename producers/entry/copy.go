package entry

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// bufferSize is how much of an answer is copied at a time.
const bufferSize = 32 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// answer hands the answer of a server or a peer on.
func (x *exchange) answer(resp *http.Response, peer bool) {
	defer func() { _ = resp.Body.Close() }() // it was read, or is of no use any more
	x.credit(resp, peer)
	if resp.StatusCode == http.StatusSwitchingProtocols {
		x.switchProtocols(resp)
		return
	}
	h := x.w.Header()
	strip(resp.Header)
	for name, values := range resp.Header {
		h[name] = values
	}
	if _, typed := h["Content-Type"]; !typed {
		h["Content-Type"] = nil // else net/http would guess
	}
	x.label(h)
	x.closeUnread(h)
	if x.body != nil {
		x.body.converse()
	}
	x.status = resp.StatusCode
	if x.r.Method == http.MethodHead || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified {
		x.w.WriteHeader(resp.StatusCode)
		return
	}
	announceTrailers(h, resp)
	x.copyBody(resp)
}

// credit notes who served and how long that took.
func (x *exchange) credit(resp *http.Response, peer bool) {
	e := x.e
	x.kind = kindServed
	x.timings = readTimings(resp.Header, e.o.ServerTiming, peer)
	x.toServer, x.handed = x.attempt.Server, x.sentBy(x.attempt)
	if !peer {
		return
	}
	x.kind = kindForwarded
	x.asked = !isRefusal(resp)
	withoutTimings(resp.Header)
	if site := first(resp.Header, headerSite); site != "" {
		x.toSite = site
	}
	x.toServer = first(resp.Header, headerServer)
	if v, err := strconv.ParseUint(first(resp.Header, headerVersion), 10, 64); err == nil {
		x.at.version, x.at.known = v, true
	}
}

// isRefusal reports whether a peer answered by itself for what is no fault of its
// servers: the request's own, or because its owner is being moved.
func isRefusal(resp *http.Response) bool {
	reason := first(resp.Header, headerReason)
	return reason == reasonMoving || reason != "" && resp.StatusCode < http.StatusInternalServerError
}

// label says in an answer who served it, and to a peer how.
func (x *exchange) label(h http.Header) {
	if x.split.calls {
		x.beginSession(h)
	}
	if x.owner != "" || x.hop != nil || x.client.door.internal {
		x.about(h, x.toSite, x.at.version, x.at.known)
	}
	if x.hop == nil {
		return
	}
	if x.toServer != "" {
		h[headerServer] = []string{x.toServer}
	}
	if wait, service, _, known := x.durations(x.attempt); known {
		addTimings(h, service, wait, x.attempt.Limit)
	}
}

func announceTrailers(h http.Header, resp *http.Response) {
	if len(resp.Trailer) == 0 {
		return
	}
	names := make([]string, 0, len(resp.Trailer))
	for name := range resp.Trailer {
		if !ofHop(name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		h["Trailer"] = []string{strings.Join(names, ", ")}
	}
}

// copyBody copies the body as it comes: where the server pauses, what is there
// goes out.
func (x *exchange) copyBody(resp *http.Response) {
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	flusher, _ := x.w.(http.Flusher)
	started, unknown := false, resp.ContentLength < 0
	if flusher != nil && unknown && isStream(resp.Header) {
		x.w.WriteHeader(resp.StatusCode)
		flusher.Flush()
		started = true
	}
	for {
		n, err := resp.Body.Read(buffer[:])
		if err != nil && !errors.Is(err, io.EOF) && n == 0 && !started {
			clear(x.w.Header())
			x.fail(err)
			return
		}
		if !started {
			x.w.WriteHeader(resp.StatusCode)
			started = true
		}
		if n > 0 {
			m, failed := x.w.Write(buffer[:n])
			x.sent += int64(m)
			if failed != nil {
				x.gone, x.broken = true, true
				return
			}
			if flusher != nil && err == nil && (unknown || n < bufferSize) {
				flusher.Flush()
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			x.trailers(resp)
			return
		default:
			x.breakOff()
			return
		}
	}
}

// isStream reports whether an answer's head has to go out before its body
// begins, for somebody may wait for it.
func isStream(h http.Header) bool {
	t := first(h, "Content-Type")
	return strings.HasPrefix(t, "text/event-stream") || strings.HasPrefix(t, "application/grpc")
}

// breakOff ends an answer of which a part has gone out.
func (x *exchange) breakOff() {
	x.broken = true
	if x.r.Context().Err() != nil {
		x.gone = true
		return
	}
	// The client has the status of the head, but not the answer.
	x.status, x.kind, x.reason = http.StatusBadGateway, kindFailed, "broken-off"
}

// trailers hands on what came after the body.
func (x *exchange) trailers(resp *http.Response) {
	if len(resp.Trailer) == 0 {
		return
	}
	if f, ok := x.w.(http.Flusher); ok {
		f.Flush() // only an answer in chunks can have trailers
	}
	h := x.w.Header()
	for name, values := range resp.Trailer {
		if !ofHop(name) {
			h[http.TrailerPrefix+name] = values
		}
	}
}

package middleware

import (
	"cmp"
	"net/http"
	"net/netip"
	"strings"

	"penstock/schemas/event"
)

// Rules say what the columns of a request are. They are called when it has been
// answered, from the handler's goroutine; those that are nil leave their column
// absent, or as said.
type Rules struct {
	// User asked. Without it, a keyed hash of the client's address if the
	// recorder has a key.
	User func(*http.Request) string
	// Owner is whose data was asked for.
	Owner func(*http.Request) string
	// Class is static, dynamic, an endpoint, an object class.
	Class func(*http.Request) string
	// Op is a read or a write. Without it the method says (OpOf).
	Op func(*http.Request) event.Op
	// Fill has the last word on the whole row.
	Fill func(*http.Request, *event.Request)
	// Skip leaves requests out, such as those of health checks.
	Skip func(*http.Request) bool
}

// PathValue takes a wildcard of the pattern that http.ServeMux has matched. The
// mux must get the request itself, not a copy with another context.
func PathValue(name string) func(*http.Request) string {
	return func(r *http.Request) string { return r.PathValue(name) }
}

// Header takes a header of the request.
func Header(name string) func(*http.Request) string {
	return func(r *http.Request) string { return r.Header.Get(name) }
}

// Cookie takes a cookie's value.
func Cookie(name string) func(*http.Request) string {
	return func(r *http.Request) string {
		if c, err := r.Cookie(name); err == nil {
			return c.Value
		}
		return ""
	}
}

// Pattern takes the pattern that http.ServeMux has matched, for Class.
func Pattern(r *http.Request) string { return r.Pattern }

// OpOf is a read for the methods that the HTTP method registry calls safe, and a
// write for all others.
func OpOf(r *http.Request) event.Op {
	return event.OpOf(cmp.Or(r.Method, http.MethodGet)) // that of a client's request may be left out
}

// address is the pseudonym of whoever connected, "" without a key.
func (r *Recorder) address(hostPort string) string {
	if r.hasher == nil {
		return ""
	}
	if a, err := netip.ParseAddrPort(hostPort); err == nil {
		return r.hasher.Address(a.Addr())
	}
	return ""
}

// traceOf reads the trace id of a traceparent (W3C Trace Context); all zero if
// there is none that can be used.
func traceOf(traceparent string) (id [16]byte) {
	const length = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if len(traceparent) < length || traceparent[2] != '-' || traceparent[35] != '-' || strings.HasPrefix(traceparent, "ff") {
		return id
	}
	for i := range id {
		high, low := digit(traceparent[3+2*i]), digit(traceparent[4+2*i])
		if high|low > 15 {
			return [16]byte{}
		}
		id[i] = high<<4 | low
	}
	return id
}

// digit is the value of a hexadecimal digit in small letters, more than 15 for
// anything else.
func digit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 0xff
}

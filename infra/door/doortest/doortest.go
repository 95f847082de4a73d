// Package doortest asks handlers behind a door, without a server. It has no state,
// and nothing in it fails.
package doortest

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
)

// Ask hands a request to a handler, as a server on loopback would. Headers are names
// and values in turn; From is the peer, host:port.
func Ask(h http.Handler, r *http.Request, headers ...string) *httptest.ResponseRecorder {
	r.Host, r.RemoteAddr = "127.0.0.1:8090", "127.0.0.1:1234"
	for i := 0; i < len(headers); i += 2 {
		switch headers[i] {
		case "Host":
			r.Host = headers[i+1]
		case "From":
			r.RemoteAddr = headers[i+1]
		default:
			r.Header.Add(headers[i], headers[i+1])
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Read returns the status, the named headers, and the body of an answer.
func Read(w *httptest.ResponseRecorder, headers ...string) string {
	out := strconv.Itoa(w.Code)
	for _, h := range headers {
		out += " " + h + "=" + strings.Join(w.Header()[http.CanonicalHeaderKey(h)], "|")
	}
	return strings.TrimSpace(out + " " + strings.TrimSpace(w.Body.String()))
}

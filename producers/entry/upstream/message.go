package upstream

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/net/http/httpguts"
)

// keptMessage is how large a buffer may be that is kept for the next request.
const keptMessage = 64<<10 + 8<<10

// message is a request as bytes: its head for a server, and its body.
type message struct {
	bytes []byte // head and body for the server of the attempt
	body  []byte
}

var messages = sync.Pool{New: func() any { return new(message) }}

func (m *message) release() {
	if cap(m.bytes) > keptMessage || cap(m.body) > keptMessage {
		return
	}
	messages.Put(m)
}

// streams reports whether a request is one for the transport: its body is not
// known to be small, or more than a body goes over the connection.
func (p *Pool) streams(req *http.Request) bool {
	if p.o.H2 || len(req.Trailer) > 0 || len(req.Header["Upgrade"]) > 0 || len(req.Header["Expect"]) > 0 {
		return true
	}
	return hasBody(req) && (req.ContentLength <= 0 || req.ContentLength > p.o.Buffer)
}

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// readBody reads a small body from the client.
func (m *message) readBody(req *http.Request) error {
	m.body = m.body[:0]
	if !hasBody(req) {
		return nil
	}
	n := int(req.ContentLength)
	m.body = slices.Grow(m.body, n)[:n]
	if got, err := io.ReadFull(req.Body, m.body); err != nil {
		return fmt.Errorf("%w: %d of %d bytes: %w", ErrRequestBody, got, n, err)
	}
	return nil
}

// write makes the bytes of a request to a server. Headers that rule the
// connection are ours; all others go as they are.
func (m *message) write(req *http.Request, s *server) error {
	method, target, host := req.Method, req.URL.RequestURI(), req.Host
	if method == "" {
		method = http.MethodGet
	}
	if host == "" {
		host = s.url.Host
	}
	switch {
	case !httpguts.ValidHeaderFieldName(method) || method == http.MethodConnect:
		return fmt.Errorf("%w: method %q", ErrRequest, method)
	case !plainTarget(target):
		return fmt.Errorf("%w: target %q", ErrRequest, target)
	case !httpguts.ValidHostHeader(host):
		return fmt.Errorf("%w: host %q", ErrRequest, host)
	}
	b := append(m.bytes[:0], method...)
	b = append(b, ' ')
	b = append(b, target...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, host...)
	b = append(b, "\r\n"...)
	for key, values := range req.Header {
		if ofConnection(key) {
			continue
		}
		if !httpguts.ValidHeaderFieldName(key) {
			return fmt.Errorf("%w: header %q", ErrRequest, key)
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return fmt.Errorf("%w: value of header %q", ErrRequest, key)
			}
			b = append(b, key...)
			b = append(b, ": "...)
			b = append(b, v...)
			b = append(b, "\r\n"...)
		}
	}
	if n := len(m.body); n > 0 || saysLength(method) {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(n), 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, "\r\n"...)
	m.bytes = append(b, m.body...)
	return nil
}

// checkRequest refuses what write does, for requests that others write.
func checkRequest(req *http.Request, s *server) error {
	m := messages.Get().(*message)
	defer m.release()
	m.body = m.body[:0]
	return m.write(req, s)
}

// saysLength reports whether a request of a method says its length though it has
// no body (RFC 9110 §8.6).
func saysLength(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// ofConnection reports whether a header is about the connection or the length of
// the body, which we say ourselves.
func ofConnection(key string) bool {
	switch key {
	case "Host", "Content-Length", "Transfer-Encoding", "Trailer", "Connection", "Keep-Alive", "Proxy-Connection", "Upgrade":
		return true
	}
	return false
}

// plainTarget reports whether a request target is one word of visible bytes.
func plainTarget(target string) bool {
	for i := range len(target) {
		if target[i] <= ' ' || target[i] == 0x7f {
			return false
		}
	}
	return target != ""
}

// Repeatable reports whether a request may be sent twice: by its method, or
// because the client says how to tell the second.
func Repeatable(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return len(req.Header["Idempotency-Key"]) > 0 || len(req.Header["X-Idempotency-Key"]) > 0
}

package accesslog

import (
	"bytes"

	"penstock/schemas/event"
)

// requestLine is what a request field says, if it is one.
type requestLine struct {
	op   event.Op
	path []byte // of the target, without query; empty if it has none
}

// parseRequest splits "METHOD target HTTP/x". ok is false where the field is
// not a request: scanners' junk, TLS spoken to a plain port, "-" of a
// connection that said nothing. A target may hold spaces, as servers log them
// as they came; a GET of HTTP/0.9 has no protocol.
func parseRequest(b []byte) (requestLine, bool) {
	n := bytes.IndexByte(b, ' ')
	if n <= 0 || !isToken(b[:n]) {
		return requestLine{}, false
	}
	method, target := b[:n], b[n+1:]
	if last := bytes.LastIndexByte(target, ' '); last >= 0 && isProtocol(target[last+1:]) {
		target = target[:last]
	} else if last >= 0 || string(method) != "GET" || len(target) == 0 || target[0] != '/' {
		return requestLine{}, false
	}
	path, ok := pathOf(target, method)
	return requestLine{op: event.OpOf(string(method)), path: path}, ok
}

// pathOf returns the path of a request target in any of the four forms of
// RFC 9112 §3.2: origin, absolute, authority (CONNECT) and asterisk.
func pathOf(target, method []byte) ([]byte, bool) {
	switch {
	case len(target) == 0:
		return nil, false
	case target[0] == '/':
	case string(method) == "CONNECT", string(target) == "*":
		return nil, true
	default:
		n := bytes.Index(target, schemeEnd)
		if n <= 0 || !isToken(target[:n]) {
			return nil, false
		}
		target = target[n+len(schemeEnd):]
		slash := bytes.IndexByte(target, '/')
		if slash < 0 {
			return nil, true
		}
		target = target[slash:]
	}
	if n := bytes.IndexAny(target, "?#"); n >= 0 {
		target = target[:n]
	}
	return target, true
}

var schemeEnd = []byte("://")

func isProtocol(b []byte) bool {
	return len(b) >= 6 && string(b[:5]) == "HTTP/" && b[5] >= '0' && b[5] <= '9'
}

// isToken reports whether b is a token of RFC 9110 §5.6.2, as a method is.
func isToken(b []byte) bool {
	for _, c := range b {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case bytes.IndexByte(tokenMarks, c) >= 0:
		default:
			return false
		}
	}
	return len(b) > 0
}

var tokenMarks = []byte("!#$%&'*+-.^_`|~")

// MethodOp tells whether a method of the HTTP method registry, or of those that
// parsers take for a read, reads or writes; false for any other word. A method
// is in capitals.
func MethodOp(method []byte) (event.Op, bool) {
	op := event.OpOf(string(method))
	if op == event.Read {
		return op, true
	}
	switch string(method) {
	case "POST", "PUT", "PATCH", "DELETE", "COPY", "MOVE", "MKCOL", "LOCK", "UNLOCK", "PROPPATCH", "ACL",
		"BIND", "REBIND", "UNBIND", "LINK", "UNLINK", "CHECKIN", "CHECKOUT", "UNCHECKOUT", "LABEL", "MERGE",
		"MKACTIVITY", "MKCALENDAR", "MKREDIRECTREF", "MKWORKSPACE", "ORDERPATCH", "BASELINE-CONTROL",
		"UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL":
		return op, true
	}
	return event.Read, false
}

// ownerOf returns the first depth segments of a path, joined by slashes; empty
// segments do not count. It appends to dst, and nothing for a path without
// segments.
func ownerOf(dst, path []byte, depth int) []byte {
	for depth > 0 && len(path) > 0 {
		var segment []byte
		if n := bytes.IndexByte(path, '/'); n >= 0 {
			segment, path = path[:n], path[n+1:]
		} else {
			segment, path = path, nil
		}
		if len(segment) == 0 {
			continue
		}
		if len(dst) > 0 {
			dst = append(dst, '/')
		}
		dst = appendPrintable(dst, segment)
		depth--
	}
	return dst
}

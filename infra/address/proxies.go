package address

import (
	"net/http"
	"net/netip"
	"strings"
)

// Proxies are the networks of proxies that are believed.
type Proxies []netip.Prefix

// Trust reports whether an address is a proxy's.
func (p Proxies) Trust(a netip.Addr) bool {
	for _, prefix := range p {
		if prefix.Contains(a) {
			return true
		}
	}
	return false
}

// Client returns the address that the request came from, before the trusted
// proxies. remote, whose request it is, is believed: the caller has asked Trust. The
// fields are read from the right, for a client can write anything to the left of
// what the first trusted one adds. An element that is no address ends the search at
// the last one that was good. It is X-Forwarded-For that is read, and Forwarded (RFC
// 7239) where there is none, or with forwardedOnly whatever there is.
func (p Proxies) Client(h http.Header, remote netip.Addr, forwardedOnly bool) netip.Addr {
	lines, last, read := h["X-Forwarded-For"], lastComma, parseNode
	if forwardedOnly || len(lines) == 0 {
		lines, last, read = h["Forwarded"], lastElement, forwardedFor
	}
	client := remote
	for i := len(lines) - 1; i >= 0; i-- {
		for rest := lines[i]; ; {
			var element string
			n := last(rest)
			element, rest = rest[n+1:], rest[:max(n, 0)]
			a, ok := read(element)
			if !ok {
				return client
			}
			if client = a; !p.Trust(a) {
				return client
			}
			if n < 0 {
				break
			}
		}
	}
	return client
}

// lastComma is where the last element of X-Forwarded-For begins, less one; -1 if
// it is the only one. That field knows no quotes.
func lastComma(s string) int { return strings.LastIndexByte(s, ',') }

// lastElement is the same of Forwarded, which has commas in quoted strings. It is
// read from the right too: what trusted proxies added there is well-formed, and
// quotes that a client opened to its left can't hide it.
func lastElement(s string) int { return lastOutside(s, ',') }

// lastOutside is where the last sep that isn't in a quoted string stands, -1 if
// there is none.
func lastOutside(s string, sep byte) int {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case s[i] == '"' && !escaped(s, i):
			quoted = !quoted
		case s[i] == sep && !quoted:
			return i
		}
	}
	return -1
}

// escaped reports whether an odd number of backslashes stands before s[i].
func escaped(s string, i int) bool {
	n := 0
	for i--; i >= 0 && s[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// forwardedFor returns the address of for= in an element of Forwarded.
func forwardedFor(element string) (netip.Addr, bool) {
	for {
		n := lastOutside(element, ';')
		k, v, _ := strings.Cut(strings.TrimSpace(element[n+1:]), "=")
		if strings.EqualFold(k, "for") {
			if len(v) > 1 && v[0] == '"' && v[len(v)-1] == '"' {
				v = v[1 : len(v)-1]
			}
			return parseNode(v)
		}
		if n < 0 {
			return netip.Addr{}, false
		}
		element = element[:n]
	}
}

// parseNode reads an address, with or without brackets and a port. A name, such
// as "unknown" or one that hides the address, is none.
func parseNode(s string) (netip.Addr, bool) {
	s = strings.TrimSpace(s)
	switch {
	case strings.HasPrefix(s, "["):
		n := strings.IndexByte(s, ']')
		if n < 0 || n+1 < len(s) && (s[n+1] != ':' || !isPort(s[n+2:])) {
			return netip.Addr{}, false
		}
		s = s[1:n]
	case strings.Count(s, ":") == 1:
		n := strings.IndexByte(s, ':')
		if !isPort(s[n+1:]) {
			return netip.Addr{}, false
		}
		s = s[:n]
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, false
	}
	return a.Unmap().WithZone(""), true
}

func isPort(s string) bool {
	if s == "" || len(s) > 5 {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

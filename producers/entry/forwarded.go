package entry

import (
	"net/http"
	"net/netip"
	"strings"
)

// proxies are the addresses that are believed.
type proxies []netip.Prefix

func (p proxies) trust(a netip.Addr) bool {
	for _, prefix := range p {
		if prefix.Contains(a) {
			return true
		}
	}
	return false
}

// client returns the address that the request came from, before the trusted
// proxies: the fields are read from the right, for a client can write anything
// to the left of what the first trusted one adds. An element that is no address
// ends the search at the last one that was good. remote is believed.
func (p proxies) client(h http.Header, remote netip.Addr, forwardedOnly bool) netip.Addr {
	lines, read := h["X-Forwarded-For"], parseNode
	if forwardedOnly || len(lines) == 0 {
		lines, read = h["Forwarded"], forwardedFor
	}
	client := remote
	for i := len(lines) - 1; i >= 0; i-- {
		for rest := lines[i]; ; {
			var element string
			n := lastOutside(rest, ',')
			element, rest = rest[n+1:], rest[:max(n, 0)]
			a, ok := read(element)
			if !ok {
				return client
			}
			if client = a; !p.trust(a) {
				return client
			}
			if n < 0 {
				break
			}
		}
	}
	return client
}

// lastOutside returns the index of the last sep that isn't in a quoted string,
// -1 if there is none. A quotation that doesn't end hides nothing.
func lastOutside(s string, sep byte) int {
	last, quoted, begun := -1, false, -1
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			if quoted = !quoted; quoted {
				begun = i
			}
		case c == '\\' && quoted:
			i++
		case c == sep && !quoted:
			last = i
		}
	}
	if quoted {
		if n := strings.LastIndexByte(s[begun:], sep); n >= 0 {
			return begun + n
		}
	}
	return last
}

// forwardedFor returns the address of for= in an element of Forwarded.
func forwardedFor(element string) (netip.Addr, bool) {
	for element != "" {
		var pair string
		pair, element = cutOutside(element, ';')
		k, v, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if strings.EqualFold(k, "for") {
			if len(v) > 1 && v[0] == '"' && v[len(v)-1] == '"' {
				v = v[1 : len(v)-1]
			}
			return parseNode(v)
		}
	}
	return netip.Addr{}, false
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

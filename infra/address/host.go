package address

import (
	"net"
	"net/netip"
	"strings"
)

// IsLoopback reports whether nobody on another machine can reach the host: a name
// or an address, without a port.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Host takes the port off, if there is one, and brackets.
func Host(hostport string) string {
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		return h
	}
	return strings.Trim(hostport, "[]")
}

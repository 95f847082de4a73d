package testserver

import (
	"net"
	"testing"
)

// TestFreeAddress: many are free, and can be listened at.
func TestFreeAddress(t *testing.T) {
	t.Parallel()
	for range 100 {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", FreeAddress(t))
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		defer func() { _ = l.Close() }()
		if port < lowestPort || port > highestPort {
			t.Errorf("port %d", port)
		}
	}
}

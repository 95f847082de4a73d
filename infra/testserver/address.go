package testserver

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// Ports that no system gives out to whoever asks for any port, nor to connections: Linux
// begins at 32768, others at 49152.
const (
	lowestPort  = 20_000
	highestPort = 32_767
)

// addressTries is how many ports are tried; nearly all are free.
const addressTries = 100

// FreeAddress returns an address of the loopback interface at which nobody listens, for
// a server that is started there later, that is started again, or that never comes.
// Whoever listens at port 0 and closes it again has one that any connection or server of
// another test may be given the next moment; this one stays free unless somebody
// names it.
func FreeAddress(t testing.TB) string {
	t.Helper()
	address, err := freeAddress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func freeAddress(ctx context.Context) (string, error) {
	for range addressTries {
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails
		port := lowestPort + int(binary.NativeEndian.Uint32(b[:])%(highestPort-lowestPort+1))
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err == nil {
			err = l.Close()
		}
		if err != nil {
			return "", fmt.Errorf("find a free port: %w", err)
		}
		return address, nil
	}
	return "", fmt.Errorf("find a free port: none of %d is", addressTries)
}

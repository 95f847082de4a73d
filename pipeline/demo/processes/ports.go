package processes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports that are tried: below the range from which the systems we know take the
// ports of outgoing connections, one of which could take a port between the look
// here and the start of the process that is to listen there.
const firstPort, lastPort = 20_000, 32_000

// Addresses returns n addresses HOST:PORT on which nobody listens, different ones.
// Where the search begins is drawn from rng, so that several groups on one machine
// rarely meet. ErrNoPort.
func Addresses(ctx context.Context, host string, n int, rng *rand.Rand) ([]string, error) {
	var held []net.Listener // until all are found, so that none is found twice
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	var out []string
	at := rng.IntN(lastPort - firstPort)
	for range lastPort - firstPort {
		if len(out) == n {
			return out, nil
		}
		address := net.JoinHostPort(host, strconv.Itoa(firstPort+at))
		at = (at + 1) % (lastPort - firstPort)
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("find ports: %w", ctx.Err())
			}
			continue // Somebody is there.
		}
		held = append(held, l)
		out = append(out, address)
	}
	return nil, fmt.Errorf("%d of %d on %s between %d and %d: %w", len(out), n, host, firstPort, lastPort, ErrNoPort)
}

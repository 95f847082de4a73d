package movertest

import (
	"context"
	"time"

	"penstock/infra/clock"
)

// nap is how long stalls sleeps at a time.
const nap = 5 * time.Millisecond

// stalls notices for how long at most the machine stands still: by how much somebody
// oversleeps who does nothing else. end ends it and says so.
func stalls() (end func() time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	longest := make(chan time.Duration, 1)
	go func() {
		machine, most := clock.System(), time.Duration(0)
		for {
			began := machine.Now()
			err := machine.Sleep(ctx, nap)
			most = max(most, machine.Now().Sub(began)-nap)
			if err != nil {
				longest <- most
				return
			}
		}
	}()
	return func() time.Duration {
		cancel()
		return <-longest
	}
}

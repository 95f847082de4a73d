package simcoder

import (
	"time"

	"penstock/infra/clock"
)

// Clock tells the simulated time of a run, for parts of a coder that need to know it.
// Its timers are the machine's: nothing that is run here waits by a clock.
type Clock struct {
	clock.Clock
	at time.Time
}

// NewClock returns a clock for one run, at its beginning.
func NewClock() *Clock { return &Clock{Clock: clock.System(), at: epoch} }

// Now is the simulated time.
func (c *Clock) Now() time.Time { return c.at }

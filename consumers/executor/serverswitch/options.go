package serverswitch

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor"
	"penstock/infra/clock"
	"penstock/schemas/control"
)

// Expiry is what is wanted of a site when the ttl of its table is over.
type Expiry string

// The expiries: all servers on, which is what dispatchers go by then; what is stays.
const (
	AllOn Expiry = "all-on"
	Keep  Expiry = "keep"
)

// Options of a Switch.
type Options struct {
	// Clock paces the loops. Defaults to the machine's.
	Clock clock.Clock
	// Drain is the longest that requests in service are waited for before a server is
	// stopped. Defaults to 5 min.
	Drain time.Duration
	// Drained says whether every dispatcher has the table of that epoch, or a later one, and
	// nothing is queued or in service at a server of a site; else detail says what is left.
	// It is asked every Look, and does not wait. Needed.
	Drained func(site, server string, epoch uint64) (drained bool, detail string)
	// Every is how often a server at rest is asked what it is. Defaults to 5 s.
	Every time.Duration
	// Expired is what is wanted after a ttl. Defaults to AllOn.
	Expired Expiry
	// Folder keeps the journal. It is one process's. Needed.
	Folder string
	// Grace is how long hooks in flight may take when Run is stopped; then they are ended
	// and called again after the next start. Defaults to 5 s: less than the executor's.
	Grace time.Duration
	// History calls fn for each command of kind servers that the bus still holds, in its
	// order, with the time at which the server stored it: executor.History. A switch that
	// starts takes the last tables up from there, which another process may have had. Needed.
	History func(ctx context.Context, fn func(c *control.Command, at time.Time) error) error
	// Least is how many servers of a site stay on whatever a table says. Defaults to 1.
	Least  int
	Logger zerolog.Logger
	// Look is how often a server that is warming or draining is looked at. Defaults to
	// 250 ms.
	Look time.Duration
	// Metrics gets the counts. Defaults to none.
	Metrics executor.Metrics
	// Pause and MostPause are those after the first failure and the greatest; each is
	// twice the one before. Default to 1 s and 1 min.
	Pause, MostPause time.Duration
	// Ready says whether a server takes requests, once it is turned on: nil if it does. It
	// is asked every Look for at most ReadyWithin. Needed; Probe makes one.
	Ready func(ctx context.Context, s Server) error
	// ReadyWithin is how long a server may take from the end of its hook to be ready.
	// Defaults to 2 min.
	ReadyWithin time.Duration
	// Servers that tables name. Those of a site are one table's. Needed.
	Servers []Server
	// Timeout bounds one call of a backend. Defaults to 30 s.
	Timeout time.Duration
	// Tries after which a server counts as failed. Defaults to 4.
	Tries int
}

// What a Switch counts besides, by backend.
const (
	// Switched counts hooks that ended well: on/BACKEND and off/BACKEND.
	Switched executor.Counter = "switched"
	// Hooks counts hooks that did not: on/BACKEND, off/BACKEND, drain/, undrain/, observe/.
	Hooks executor.Counter = "hook_failures"
	// Late counts servers that were not ready in time, and Cut those that were stopped at
	// the deadline of their drain.
	Late executor.Counter = "not_ready"
	Cut  executor.Counter = "drain_cut"
	// Drifted counts servers that were found to be other than they had been left: on, off.
	Drifted executor.Counter = "drifted"
	// Unkept counts failures to write the journal: the step that it was for waits.
	Unkept executor.Counter = "journal"
	// Lapsed counts tables whose ttl was over.
	Lapsed executor.Counter = "lapsed"
)

func (o Options) complete() (Options, error) {
	switch {
	case o.Drained == nil || o.History == nil || o.Ready == nil || o.Folder == "" || len(o.Servers) == 0:
		return o, fmt.Errorf("expected Drained, Folder, History, Ready and Servers: %w", ErrOptions)
	case min(o.Drain, o.Every, o.Grace, o.Look, o.Pause, o.MostPause, o.ReadyWithin, o.Timeout) < 0 || o.Least < 0 || o.Tries < 0:
		return o, fmt.Errorf("expected no negative time or number: %w", ErrOptions)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Metrics == nil {
		o.Metrics = executor.NoMetrics{}
	}
	o.Drain = cmp.Or(o.Drain, 5*time.Minute)
	o.Every = cmp.Or(o.Every, 5*time.Second)
	o.Expired = cmp.Or(o.Expired, AllOn)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	o.Least = cmp.Or(o.Least, 1)
	o.Look = cmp.Or(o.Look, 250*time.Millisecond)
	o.Pause = cmp.Or(o.Pause, time.Second)
	o.MostPause = max(cmp.Or(o.MostPause, time.Minute), o.Pause)
	o.ReadyWithin = cmp.Or(o.ReadyWithin, 2*time.Minute)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.Tries = cmp.Or(o.Tries, 4)
	if o.Expired != AllOn && o.Expired != Keep {
		return o, fmt.Errorf("expired: got %.40q, expected all-on or keep: %w", o.Expired, ErrOptions)
	}
	return o, nil
}

package shipping

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/coder/catalog"
	"penstock/consumers/executor/coder/chunks"
	"penstock/infra/clock"
)

// Options of a Shipper.
type Options struct {
	// Bare, if any, is asked whether a store that answers and has no marker is to be taken
	// for a new one, which gets one. Else nothing is written to it, and what it takes of
	// the log does not count: it has lost what it held, or it is another one that shows in
	// its place, such as the folder under a disk that isn't mounted. Without Bare all are
	// taken in. Marked, if any, is told of a store that was seen to have our marker. Both
	// may be called by many goroutines, and by Claim.
	Bare   func(store chunks.Store) bool
	Marked func(store chunks.Store)
	// Batch is the most bytes of changes in one blob, but for one that is longer.
	// Defaults to 4 MiB.
	Batch int
	// Changes that wait are shipped at once when there are so many. Defaults to 1000.
	Changes uint64
	Catalog *catalog.Catalog
	// Check is how often the owner marker is looked at when nothing is shipped.
	// Defaults to 10 s.
	Check time.Duration
	// Clock defaults to the machine's.
	Clock clock.Clock
	// Interval is the longest that a change waits to be shipped. Defaults to 1 s.
	Interval time.Duration
	// Logger defaults to none.
	Logger *zerolog.Logger
	// Need is how many stores must have a blob. Defaults to 1.
	Need int
	// Patience is how long one request to a store may take. Defaults to 30 s.
	Patience time.Duration
	// Snapshot is the least bytes of changes between two snapshots. Defaults to 64 MiB.
	Snapshot int64
	Stores   []chunks.Store
}

func (o Options) filled() (Options, error) {
	o.Batch = cmp.Or(o.Batch, 4<<20)
	o.Changes = cmp.Or(o.Changes, 1000)
	o.Check = cmp.Or(o.Check, 10*time.Second)
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	o.Interval = cmp.Or(o.Interval, time.Second)
	if o.Logger == nil {
		nop := zerolog.Nop()
		o.Logger = &nop
	}
	o.Need = cmp.Or(o.Need, 1)
	o.Patience = cmp.Or(o.Patience, 30*time.Second)
	o.Snapshot = cmp.Or(o.Snapshot, 64<<20)
	switch {
	case o.Catalog == nil:
		return o, fmt.Errorf("%w: no catalog", ErrOptions)
	case o.Batch < 0 || o.Check < 0 || o.Interval < 0 || o.Patience < 0 || o.Snapshot < 0:
		return o, fmt.Errorf("%w: negative", ErrOptions)
	}
	return o, checkStores(o.Catalog.Identity().Coder, o.Stores, o.Need)
}

func checkStores(coder string, stores []chunks.Store, need int) error {
	if need < 1 || need > len(stores) {
		return fmt.Errorf("%w: %d stores, of which %d must have a blob", ErrOptions, len(stores), need)
	}
	if err := chunks.CheckKey(ownerKey(coder)); err != nil {
		return fmt.Errorf("%w: coder %q: %w", ErrOptions, coder, err)
	}
	return nil
}

package coder

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/executor/coder/chunks"
	"penstock/consumers/executor/coder/object"
	"penstock/consumers/executor/coder/queue"
	"penstock/infra/clock"
)

// Options say what a coder is.
type Options struct {
	// Name is the coder's: the scope of its coding table, and the first part of the
	// keys of its blobs.
	Name string
	// State is the folder of the catalog, which it makes. One process has it.
	State string
	// Stores keep the blobs: one in the layout shared, N or more in spread. Their
	// names differ.
	Stores []chunks.Store
	// Layout, N and K say how objects are coded; N and K only in spread.
	Layout object.Layout
	N, K   int
	// Durability says how many blobs must have landed before a write is answered.
	Durability Durability

	// Connections is L, how many chunk tasks run at a time; 0: 16. Background is how
	// many of them may be work that nobody waits for; 0: a quarter. MaxWaiting is how
	// many requests may wait before others get ErrBusy; 0: 1,000.
	Connections, Background, MaxWaiting int
	// Chooser picks the code of each request. Needed.
	Chooser queue.Chooser
	// Observe gets the record of each chunk task that ran, from several goroutines.
	Observe func(queue.Record)

	// Segment is how many bytes are coded together; 0: object.DefaultSegment.
	Segment int64
	// CatalogSync makes the answer to a write wait until the change log that names it
	// is in the stores.
	CatalogSync bool
	// LogEvery is the longest that a change of the catalog waits to be shipped to the
	// stores: what the loss of the coder's machine may cost; 0: 1 s. Blobs are deleted
	// only once the change that let go of them is there.
	LogEvery time.Duration
	// Adopt takes over stores that belong to another state: the catalog is rebuilt
	// from what they hold. N and K must be those that were in force when the stores were
	// written last, since they say how many stores have each change of the catalog.
	Adopt bool

	// TaskTimeout bounds a chunk task; 0: 30 s.
	TaskTimeout time.Duration
	// Patience bounds how long a blob of a stream may lag behind those that durability
	// asks for before it is dropped and repaired later; 0: 5 s.
	Patience time.Duration
	// Retry is the pause before background work that failed is tried again; 0: 5 s.
	Retry time.Duration
	// Memory is the most bytes of coded segments that requests hold, those of slow
	// clients among them; 0: 512 MiB. A segment takes N/K times its bytes.
	Memory int64
	// Grace is for how long requests go on when Run's context has ended; 0: 5 s.
	Grace time.Duration

	// Clock, Logger and Metrics may be left out.
	Clock   clock.Clock
	Logger  *zerolog.Logger
	Metrics Metrics
}

// Metrics counts what happens silently. Implementations are safe for many goroutines.
type Metrics interface {
	// Count raises the counter of an event, of a reason or kind, by n.
	Count(event Event, reason string, n int64)
}

// Event names a counter.
type Event string

// What is counted.
const (
	// EventStrips: strips that were not whole, by object.Kind.
	EventStrips Event = "strips"
	// EventReplaced: chunks that a read asked for in another's place (read), strips that
	// it asked for once more when too few came (again), and segments for which it waited
	// until the write of the version had ended (awaited).
	EventReplaced Event = "replaced"
	// EventRepaired: blobs that were written anew, by who did: the write itself (write), the
	// background from what the journal says (found), a scrub (scrub).
	EventRepaired Event = "repaired"
	// EventDropped: blobs of a stream that were given up, by why (failed, lagging).
	EventDropped Event = "dropped"
	// EventSettled: versions that were brought to their intended coding: what was staged
	// (done), and what was of a coding that is not in force any more (recoded).
	EventSettled Event = "settled"
	// EventDeleted: blobs that were deleted as the journal says (queued), those that were
	// deleted once more since the end of their writing wasn't known (again), and those that a
	// scrub put into it since nothing names them (orphan).
	EventDeleted Event = "deleted"
	// EventStranded: blobs that were to be deleted from stores that are not configured any
	// more, by store. They may remain there.
	EventStranded Event = "stranded"
	// EventRetried: background work that failed and is tried again, by what it is.
	EventRetried Event = "retried"
	// EventDead: stores that were found dead, by name.
	EventDead Event = "dead"
	// EventAbsent: stores that were found without their owner marker though blobs were in
	// them, by name.
	EventAbsent Event = "absent"
)

// Durability says how many blobs of a version must have landed before a write of it is
// answered: K and Extra more, or all. The zero value is k. An object whose answer came
// with Extra survives the loss of so many stores at that instant, and n−K once its rest
// has landed. One that is so small that it is copied keeps the same promise with fewer
// blobs: Extra+1 copies, one of which is enough.
type Durability struct {
	All   bool
	Extra int
}

// ParseDurability reads "k", "n" or "k+2". It returns ErrOptions for others.
func ParseDurability(s string) (Durability, error) {
	switch s {
	case "k":
		return Durability{}, nil
	case "n":
		return Durability{All: true}, nil
	}
	extra, ok := strings.CutPrefix(s, "k+")
	d, err := strconv.Atoi(extra)
	if !ok || err != nil || d < 1 || d > object.MaxSpread {
		return Durability{}, fmt.Errorf("%w: durability %q, want k, k+1, … or n", ErrOptions, s)
	}
	return Durability{Extra: d}, nil
}

// String is what ParseDurability reads.
func (d Durability) String() string {
	switch {
	case d.All:
		return "n"
	case d.Extra > 0:
		return "k+" + strconv.Itoa(d.Extra)
	}
	return "k"
}

// need is how many of n blobs must land, of which k rebuild.
func (d Durability) need(n, k int) int {
	if d.All {
		return n
	}
	return min(n, k+d.Extra)
}

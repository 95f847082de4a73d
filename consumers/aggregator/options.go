package aggregator

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/schemas/subject"
	"penstock/schemas/window"
)

// Defaults of Options (DESIGN §3.2).
const (
	DefaultFlushBytes  = 64 << 20
	DefaultFlushOwners = 5 * time.Minute
	DefaultFlushFast   = time.Second
	DefaultFenceWait   = time.Second
	// ReplayUncovered is how many bytes of events a replay may leave uncovered:
	// its stream does not give way, so that it must be trimmed before it is full.
	ReplayUncovered = 256 << 20
	// MaxWindows is how many windows a flush may tell the counts of before it is
	// due: a sparse recording has a window a row, and a commit is one message.
	MaxWindows = 2048
	// PaneBytes bounds a pane message.
	PaneBytes = 512 << 10
)

// Options says which group an aggregator adds up, where, and how.
type Options struct {
	// Advice says which partitions to claim. Defaults to rendezvous hashing
	// over the live members in the KV bucket members.
	Advice Advice
	// Client is the connection; the caller closes it after Run has returned.
	Client *bus.Client
	// Clock paces flushes and retries. Defaults to the system's.
	Clock clock.Clock
	// Covered, if set, is told the covered EVENTS sequence after each stored
	// commit: a Trimmer's Covered in a replay. It must not block.
	Covered func(group string, partition int, seq uint64)
	// FenceWait is how long to wait after being fenced. Defaults to 1 s.
	FenceWait time.Duration
	// FlushBytes is the state at which a flush is due. Defaults to 64 MB.
	FlushBytes int
	// FlushEvery is how long panes may wait. Defaults to 1 s for the group
	// fast, 5 min for owners.
	FlushEvery time.Duration
	// Group is one of window.Groups.
	Group string
	// IdleTimeout is the stream time after which a silent run holds nothing
	// open and a gap is lost; 0 is never (a replay).
	IdleTimeout time.Duration
	// Logger gets one line for each claim, fence and failure.
	Logger zerolog.Logger
	// Metrics is told what happens. Defaults to nothing.
	Metrics Metrics
	// Owner is this process's id in commits and the members bucket. Defaults
	// to a new ULID.
	Owner string
	// Partitions are those that this process may claim. Defaults to all.
	Partitions []int
	// Publish sends a flush. Defaults to Client.PublishFenced; tests cut its
	// answers.
	Publish func(ctx context.Context, msgs []bus.Msg, expect uint64) (uint64, error)
	// Purpose is the bus's: a replay flushes before its events fill the stream.
	Purpose bus.Purpose

	// whole is the size up to which a flush is one message. Defaults to
	// PaneBytes; tests have batches of small flushes.
	whole int
}

func (o *Options) complete() error {
	if o.Client == nil {
		return fmt.Errorf("no client: %w", ErrOptions)
	}
	if !slices.Contains(window.Groups, o.Group) {
		return fmt.Errorf("group %q, expected one of %v: %w", o.Group, window.Groups, ErrOptions)
	}
	if o.FlushBytes < 0 || o.FlushEvery < 0 || o.IdleTimeout < 0 {
		return fmt.Errorf("a negative limit: %w", ErrOptions)
	}
	if o.Partitions == nil {
		for p := range o.Client.Partitions() {
			o.Partitions = append(o.Partitions, p)
		}
	}
	for _, p := range o.Partitions {
		if p < 0 || p >= o.Client.Partitions() {
			return fmt.Errorf("partition %d of %d: %w", p, o.Client.Partitions(), ErrOptions)
		}
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Owner == "" {
		o.Owner = newID(o.Clock)
	}
	if o.Metrics == nil {
		o.Metrics = silent{}
	}
	if o.Publish == nil {
		o.Publish = o.Client.PublishFenced
	}
	every := DefaultFlushOwners
	if o.Group == window.Fast {
		every = DefaultFlushFast
	}
	o.FlushEvery = cmp.Or(o.FlushEvery, every)
	o.FlushBytes = cmp.Or(o.FlushBytes, DefaultFlushBytes)
	o.whole = cmp.Or(o.whole, PaneBytes)
	o.FenceWait = cmp.Or(o.FenceWait, DefaultFenceWait)
	return nil
}

// newID returns an id that no other process and no other flush has.
func newID(c clock.Clock) string {
	return ulid.MustNew(ulid.Timestamp(c.Now()), rand.Reader).String()
}

// Metrics is told what an aggregator does. It is called from several goroutines
// and must not block. Rows read again after a restart or a fence are told again.
type Metrics interface {
	// Rows tells of rows by account since the last call.
	Rows(group string, partition int, a window.Account)
	// Progress tells, about once a second, how far reading is.
	Progress(group string, partition int, p Progress)
	// Flushed tells of a stored flush.
	Flushed(group string, partition int, f Flushed)
	// Count tells of n happenings of a kind, one of the Happening constants.
	Count(group string, partition int, what Happening, n int64)
}

// Progress is how far the reading of a partition is.
type Progress struct {
	Pending   uint64    // messages that wait
	Stored    time.Time // when the server stored the last one read
	Newest    int64     // greatest time of a counted row, µs; NullInt if none
	Watermark int64     // µs, NullInt if none
}

// Flushed is a flush that is stored.
type Flushed struct {
	Messages int
	Bytes    int
	Took     time.Duration
	Covered  uint64
}

// Happening is a kind of thing that is counted, with the branch that it is for.
type Happening string

// What is counted.
const (
	Fenced       Happening = "fenced"        // state dropped: another claimed the partition
	Resent       Happening = "resent"        // a flush was sent again, its state unknown
	Recognised   Happening = "recognised"    // a refused flush had been stored after all
	Rejected     Happening = "rejected"      // a message that cannot be used
	Unsampled    Happening = "unsampled"     // rejected, but the run has its samples in REJECTS
	Unparked     Happening = "unparked"      // rejected, but REJECTS did not take it
	Stale        Happening = "stale"         // a mark of a run that was forgotten
	Excluded     Happening = "excluded"      // delay samples left out (P18)
	Repeated     Happening = "repeated"      // a message at or below the covered sequence
	TrimmedUnder Happening = "trimmed_under" // messages left the stream before they were read
)

type silent struct{}

func (silent) Rows(string, int, window.Account)    {}
func (silent) Progress(string, int, Progress)      {}
func (silent) Flushed(string, int, Flushed)        {}
func (silent) Count(string, int, Happening, int64) {}

// subjectOf is where a partition's flushes go.
func subjectOf(group string, partition int) string { return subject.Windows(group, partition) }

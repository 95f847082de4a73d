package publisher

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/schemas/event"
)

// Options say whose rows are published and how. Client and Entry are needed.
type Options struct {
	// at, if set, is told of the points of a commit, for tests that kill there.
	at func(point string)
	// queueMax is the constant, less in tests.
	queueMax int64

	// Acked are the sequences per partition that an earlier attempt of this
	// run has had acknowledged. Such batches are cut and counted only.
	Acked []uint64
	// AckTimeout is how long a batch may be without an answer before it is
	// sent again. Defaults to 10 s.
	AckTimeout time.Duration
	// Client is the connection. It stays the caller's.
	Client *bus.Client
	// Clock paces a live publisher. Defaults to the system's.
	Clock clock.Clock
	// Disorder is how far a live watermark stays behind the clock. Defaults to
	// 1 s. A replay's comes with Horizon.
	Disorder time.Duration
	// Entry is the name of the entry point, the last token of the subject.
	Entry string
	// InFlightMax bounds the encoded bytes in memory. Defaults to 32 MB.
	InFlightMax int64
	// Logger gets what an operator should see.
	Logger zerolog.Logger
	// MaxAge makes the publisher live: what is open is cut that often (100 ms
	// is the value of DESIGN §3). 0 is a replay.
	MaxAge time.Duration
	// MaxBytes is the estimated size at which a batch is cut. Defaults to, and
	// is at most, event.MaxBytes.
	MaxBytes int
	// MaxRows is the number of rows at which a batch is cut. Defaults to, and
	// is at most, event.MaxRows.
	MaxRows int
	// MaxSkew is how far ahead of the clock a live row may be before it is
	// future. Defaults to 10 min.
	MaxSkew time.Duration
	// MaxSpan is the event time that a replay's batch may span; 0 is any. It
	// makes slow replays flow.
	MaxSpan time.Duration
	// NoSync leaves it to the kernel when groups reach the disk. A kill of the
	// process then still loses and doubles nothing; a power cut may let the
	// position go back, and what was published since is published again.
	NoSync bool
	// Partitions defaults to the bus's, and must not differ from it.
	Partitions int
	// Positions makes a publisher for inputs that can be read again from a
	// position: rows go out with Commit only. It needs a spool.
	Positions bool
	// Registerer, if set, gets the counters.
	Registerer prometheus.Registerer
	// Run names the run. A replay's is a hash of its input; one with a spool
	// takes a new ULID, whatever stands here.
	Run string
	// SpoolDir is the folder of the spool of a live publisher, or of one with
	// positions, which are lost with it. It is locked.
	SpoolDir string
	// SpoolMax bounds the spool in bytes. Defaults to 1 GB.
	SpoolMax int64
}

const (
	// queueMax bounds the estimated bytes of the batches that are cut and wait
	// to be encoded.
	queueMax = 16 << 20
	// batchCost is added to the size of each, so that their number is bounded.
	batchCost = 4 << 10
	// stock is how many emptied batches are kept for use again.
	stock = 32
)

// heartbeatEvery is the silence of a partition after which a live run says that
// it is still there (DESIGN §3).
const heartbeatEvery = time.Second

func (o *Options) complete() error {
	if o.Client == nil || o.Entry == "" {
		return fmt.Errorf("publisher: client and entry are needed: %w", ErrNotReplay)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	setDefault(&o.AckTimeout, 10*time.Second)
	setDefault(&o.Disorder, time.Second)
	setDefault(&o.MaxSkew, 10*time.Minute)
	setDefault(&o.InFlightMax, 32<<20)
	setDefault(&o.SpoolMax, 1<<30)
	if o.at == nil {
		o.at = func(string) {}
	}
	setDefault(&o.MaxBytes, event.MaxBytes)
	setDefault(&o.queueMax, queueMax)
	setDefault(&o.MaxRows, event.MaxRows)
	setDefault(&o.Partitions, o.Client.Partitions())
	if o.Partitions != o.Client.Partitions() {
		return fmt.Errorf("publisher: %d partitions, the bus has %d: %w", o.Partitions, o.Client.Partitions(), ErrNotReplay)
	}
	if o.MaxRows < 1 || o.MaxRows > event.MaxRows || o.MaxBytes < 1 || o.MaxBytes > event.MaxBytes {
		return fmt.Errorf("publisher: batches of %d rows and %d bytes, expected at most %d and %d: %w",
			o.MaxRows, o.MaxBytes, event.MaxRows, event.MaxBytes, ErrNotReplay)
	}
	if o.Acked == nil {
		o.Acked = make([]uint64, o.Partitions)
	}
	if len(o.Acked) != o.Partitions {
		return fmt.Errorf("publisher: acknowledged sequences of %d partitions, expected %d: %w",
			len(o.Acked), o.Partitions, ErrNotReplay)
	}
	return o.completeKind()
}

func (o *Options) completeKind() error {
	if o.Positions {
		if o.MaxAge > 0 || o.SpoolDir == "" {
			return fmt.Errorf("publisher: positions need a folder for their spool and no age at which to cut: %w", ErrNotReplay)
		}
	} else if o.MaxAge <= 0 {
		if o.Run == "" || o.SpoolDir != "" {
			return fmt.Errorf("publisher: a replay needs the name of its run and has no spool: %w", ErrNotReplay)
		}
		return nil
	}
	if o.SpoolDir == "" {
		return fmt.Errorf("publisher: a live publisher needs a folder for its spool: %w", ErrNotReplay)
	}
	id, err := ulid.New(ulid.Timestamp(o.Clock.Now()), rand.Reader)
	if err != nil {
		return fmt.Errorf("publisher: name the run: %w", err)
	}
	o.Run = id.String()
	return nil
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

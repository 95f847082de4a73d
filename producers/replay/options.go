package replay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/producers/replay/pace"
	"penstock/producers/replay/route"
	"penstock/producers/replay/writes"
	"penstock/schemas/control"
	"penstock/schemas/event"
	"penstock/schemas/window"
)

// The defaults of a replay.
const (
	DefaultDisorder = time.Minute
	DefaultMaxSkew  = 10 * time.Minute
	DefaultStall    = time.Minute
)

// Source gives the rows of the input in input order, io.EOF at the end. The
// strings of a row stay valid.
type Source interface {
	Next(*event.Request) error
	Close() error
}

// Bad is a line of the input that cannot be used: where it is, its field, and
// what was expected. A recording's BadLine converts to it.
type Bad struct {
	File     string
	Line     int64
	Column   int
	Field    string
	Got      string
	Expected string
	Raw      []byte // valid during the call
}

// Publisher takes rows to the bus; *publisher.Publisher is one. It cuts its
// batches by rows, bytes and barriers alone. One goroutine calls it.
type Publisher interface {
	// Send waits while there is no room; it never drops.
	Send(ctx context.Context, r *event.Request) error
	// Horizon says that no later row in time lies before us (µs).
	Horizon(us int64)
	// Malformed counts lines that cannot be used.
	Malformed(n int64)
	// Barrier returns when all that was sent, and the mark behind it, are
	// acknowledged.
	Barrier(ctx context.Context, watermark int64) error
	// End is a barrier after which nothing follows.
	End(ctx context.Context, watermark int64) error
	// Sequences are the last ones by partition.
	Sequences() []uint64
	// Close gives back what the publisher holds. It sends nothing more.
	Close(ctx context.Context) error
}

// Observer sees what happens, in an order that does not depend on time. One
// goroutine calls it; it must be quick, and must not keep r.
type Observer interface {
	// Row is called for each row after it was routed and marked; recorded is the
	// site that served it by the recording, empty if that doesn't say.
	Row(r *event.Request, recorded string)
	// Window is called for each decided window in order: its record, the moves
	// of its commands in their order and, where they were to be applied, the
	// outcome of each in the same order.
	Window(end int64, d *control.Decision, moves []control.Move, outcomes []control.Outcome)
}

// Site is a site of the configuration with the store that stands for it.
type Site struct {
	Name     string
	Lat, Lon float64
	Store    writes.Store
}

// Progress is how far a replay has come.
type Progress struct {
	Rows    int64     // read
	Time    time.Time // of the last row that was sent in time
	Windows int64     // closed
	Waiting bool      // for the decision of the last one
}

// Options of a replay.
type Options struct {
	// Allowed says at which sites an owner's data may be (residency): a flag for
	// each, in config order. Nil: anywhere.
	Allowed func(owner string) []bool
	// BeforeVerify, if set, is called after the end of the run and before the
	// stores are verified: to let movers finish.
	BeforeVerify func(ctx context.Context) error
	// Client is the replay's own connection to the bus.
	Client *bus.Client
	// Clock paces rows and finds stalls. Defaults to the system's.
	Clock clock.Clock
	// Disorder is how far out of order rows may be. Defaults to a minute;
	// negative is none.
	Disorder time.Duration
	// Entry is the entry point's name on the bus. Defaults to replay.
	Entry string
	// Fingerprint names what else rows and cuts follow from: the recordings'
	// digest, the configuration's, partitions, rows a batch. The replay adds its
	// own options to it.
	Fingerprint Fingerprint
	// Imported are locations that are known beforehand, by owner.
	Imported map[string]control.Location
	Logger   zerolog.Logger
	// MaxLag fails a run in which a row was sent later than that after its
	// scheduled instant. 0: no limit.
	MaxLag time.Duration
	// MaxSkew is how far a row may be ahead of the last one in time. Defaults to
	// ten minutes.
	MaxSkew time.Duration
	// NewPublisher makes the publisher of a run. Batches up to the acknowledged
	// sequences (by partition; nil on a first attempt) are counted, not sent.
	NewPublisher func(ctx context.Context, run string, acked []uint64) (Publisher, error)
	// NoWait does without lockstep.
	NoWait bool
	// Observer, if set, is told what happens.
	Observer Observer
	// Open opens the input at its beginning. It must tell bad of each line that
	// cannot be used, from within Next.
	Open func(bad func(Bad)) (Source, error)
	// Progress, if set, is called now and then, by the goroutine of Run.
	Progress func(Progress)
	// ReorderLimit is the most rows that wait inside the disorder. Defaults to
	// reorder.DefaultLimit.
	ReorderLimit int
	// Route says who decides which site serves a request.
	Route route.Mode
	// Run overrides the run's name, which is a hash of the fingerprint.
	Run string
	// Sites in config order.
	Sites []Site
	// Speed is event time over wall time. Defaults to pace.Max.
	Speed pace.Speed
	// Stall is how long a window may wait without progress. Defaults to a
	// minute.
	Stall time.Duration
	// StateDir is the folder of cursor.json and written.json. It must be there.
	StateDir string
	// Strict fails at the first malformed line.
	Strict bool
	// Until, if set, ends the replay before the first row in time at or after
	// it.
	Until time.Time
	// Width of a placement window, a multiple of that of the bus. Defaults to the
	// bus's.
	Width time.Duration
}

func (o *Options) complete() error {
	switch {
	case o.Client == nil:
		return fmt.Errorf("%w: no client of the bus", ErrOption)
	case o.Open == nil:
		return fmt.Errorf("%w: no input", ErrOption)
	case o.NewPublisher == nil:
		return fmt.Errorf("%w: no publisher", ErrOption)
	case o.StateDir == "":
		return fmt.Errorf("%w: no state folder", ErrOption)
	case len(o.Sites) == 0:
		return fmt.Errorf("%w: no sites", ErrOption)
	}
	for _, s := range o.Sites {
		if s.Store == nil {
			return fmt.Errorf("%w: site %s has no store", ErrOption, s.Name)
		}
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Entry == "" {
		o.Entry = "replay"
	}
	least := o.Client.Widths().Of(window.Traffic)
	for d, def := range map[*time.Duration]time.Duration{
		&o.Disorder: DefaultDisorder, &o.MaxSkew: DefaultMaxSkew, &o.Stall: DefaultStall, &o.Width: least,
	} {
		if *d == 0 {
			*d = def
		}
	}
	o.Disorder = max(o.Disorder, 0)
	if o.Width < time.Second || o.MaxSkew < 0 || o.Stall < 0 || o.MaxLag < 0 {
		return fmt.Errorf("%w: width %v, max_skew %v, stall %v, max_lag %v", ErrOption, o.Width, o.MaxSkew, o.Stall, o.MaxLag)
	}
	return nil
}

// FullFingerprint is the fingerprint of a replay with these options: theirs and
// what the replay adds. It does not depend on defaults being spelled out.
func (o Options) FullFingerprint() (Fingerprint, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return o.fingerprint(), nil
}

func (o *Options) fingerprint() Fingerprint {
	f := Fingerprint{
		"disorder": o.Disorder.String(), "max_skew": o.MaxSkew.String(), "window": o.Width.String(),
		"route": o.Route.String(), "lockstep": fmt.Sprint(!o.NoWait), "entry": o.Entry,
		"partitions": fmt.Sprint(o.Client.Partitions()),
	}
	if !o.Until.IsZero() {
		f["until"] = o.Until.UTC().Format(time.RFC3339Nano)
	}
	var sites []string
	for _, s := range o.Sites {
		sites = append(sites, fmt.Sprintf("%s@%v,%v", s.Name, s.Lat, s.Lon))
	}
	f["sites"] = fmt.Sprint(sites)
	if len(o.Imported) > 0 {
		var in []string
		for owner, l := range o.Imported {
			in = append(in, fmt.Sprintf("%q=%s/%d", owner, l.Site, l.Version))
		}
		slices.Sort(in)
		f["imported"] = Fingerprint{"all": fmt.Sprint(in)}.RunID()
	}
	for k, v := range o.Fingerprint {
		f[k] = v
	}
	return f
}

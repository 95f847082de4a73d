package directory

import (
	"cmp"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

// Options say what a directory follows and where it keeps what it knows.
type Options struct {
	// Check is how often the bus is asked whether it still is the one that was
	// read. Defaults to 10 s.
	Check time.Duration
	// Client is the connection whose bucket locations is followed. Required.
	Client *bus.Client
	// Clock defaults to the machine's.
	Clock clock.Clock
	// HintTTL is how long a hint holds that a bus in step doesn't confirm.
	// Defaults to 1 min.
	HintTTL time.Duration
	// Logger gets a line for each load, loss and refusal.
	Logger zerolog.Logger
	// Registerer, if set, gets the metrics penstock_directory_….
	Registerer prometheus.Registerer
	// Sites are those of the configuration. Entries may name others, which is
	// counted; hints may not. Empty lets hints name any.
	Sites []string
	// Snapshot is a file that is read at the start, if it is there, and written
	// every SnapshotEvery if anything changed, and at the end. Empty: none.
	Snapshot string
	// SnapshotEvery defaults to 1 min. A snapshot that takes long is written less
	// often: the pause is at least twenty times as long as the writing.
	SnapshotEvery time.Duration
}

// Directory is where owners are. It is safe for concurrent use.
type Directory struct {
	opts   Options
	log    zerolog.Logger
	clock  clock.Clock
	names  *names
	table  *table
	hints  *table
	shown  *metrics
	prefix string // of the subjects of keys

	known   map[string]bool // configured sites
	started atomic.Bool
	ready   chan struct{}
	isReady sync.Once

	hintMu   sync.Mutex // between a hint and the entry that supersedes it
	hintMost int64

	reader  atomic.Pointer[bus.Reader] // nil while nothing is followed
	current atomic.Bool                // all that the bus has was applied, the last we heard
	inStep  atomic.Int64               // µs since 1970 when that was last so; 0 never

	mu sync.Mutex // what follows, between the follower and the snapshot's writer
	at position
	// ghosts are the keys on the bus that have no owner here: deleted, or unusable.
	ghosts  map[uint64]struct{}
	loading bool
	changes uint64 // of the table
	bad     uint64 // entries that could not be used
}

// position is how far the bus has been read.
type position struct {
	created time.Time // when the bucket was made
	seq     uint64    // of the last applied message; 0 none
	stored  time.Time // when the server stored it
}

// New returns a directory that holds what the snapshot says, if there is one. One
// that can't be used is refused, counted and logged, and the directory is empty.
func New(o Options) (*Directory, error) {
	if o.Client == nil {
		return nil, fmt.Errorf("no client: %w", ErrOptions)
	}
	if o.Check < 0 || o.HintTTL < 0 || o.SnapshotEvery < 0 {
		return nil, fmt.Errorf("a duration below 0: %w", ErrOptions)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	o.Check = cmp.Or(o.Check, 10*time.Second)
	o.HintTTL = cmp.Or(o.HintTTL, time.Minute)
	o.SnapshotEvery = cmp.Or(o.SnapshotEvery, time.Minute)
	d := &Directory{
		opts: o, log: o.Logger.With().Str("part", "directory").Logger(), clock: o.Clock,
		hints: newTable(hintShards), hintMost: maxHints,
		prefix: o.Client.KeyPrefix(subject.LocationsKV),
		known:  map[string]bool{}, ready: make(chan struct{}),
	}
	for _, s := range o.Sites {
		d.known[s] = true
	}
	d.forget()
	var err error
	if d.shown, err = newMetrics(d, o.Registerer); err != nil {
		return nil, err
	}
	if o.Snapshot != "" {
		d.recall()
	}
	return d, nil
}

// forget makes the directory an empty one. It is for New alone.
func (d *Directory) forget() {
	d.names = newNames(d.opts.Sites)
	d.table, d.ghosts, d.at = newTable(manyShards), map[uint64]struct{}{}, position{}
}

// Locate returns the site that holds an owner's data and the version of that word;
// known is false for an owner without an entry. It never blocks or allocates.
func (d *Directory) Locate(owner string) (site string, version uint64, known bool) {
	b := d.table.find(owner)
	if b != nil {
		var i uint32
		i, version = whereOf(b)
		site, known = d.names.of(i), true
	}
	if d.hints.owners.Load() == 0 {
		return site, version, known
	}
	if h := d.hints.find(owner); h != nil {
		if i, v := whereOf(h); !known || v > version {
			return d.names.of(i), v, true
		}
	}
	return site, version, known
}

// Get is Locate with all that is known. Of a hint, Since is when it was learned.
func (d *Directory) Get(owner string) (l control.Location, known bool) {
	if b := d.table.find(owner); b != nil {
		l, known = d.location(b), true
	}
	if d.hints.owners.Load() == 0 {
		return l, known
	}
	if b := d.hints.find(owner); b != nil {
		if h := d.location(b); !known || h.Version > l.Version {
			// What is pinned stays so until the bus says otherwise.
			h.Pinned = l.Pinned
			return h, true
		}
	}
	return l, known
}

func (d *Directory) location(b []byte) control.Location {
	p, _ := placeOf(b)
	return control.Location{
		Site: d.names.of(p.site), Version: p.version, State: states[p.state], Since: p.since, Pinned: p.pinned,
	}
}

// Len is how many owners the bus has told of.
func (d *Directory) Len() int { return int(d.table.owners.Load()) }

// Ready is closed when there is a first full state, from the bus or a snapshot.
func (d *Directory) Ready() <-chan struct{} { return d.ready }

func (d *Directory) setReady() { d.isReady.Do(func() { close(d.ready) }) }

// Freshness says how long ago the directory was last in step with the bus (0 while
// it is; the greatest duration if it never was), and whether it hears the bus. A
// loss is seen within about 3 s, at once if the connection breaks.
func (d *Directory) Freshness() (since time.Duration, connected bool) {
	r := d.reader.Load()
	connected = r != nil && !r.Interrupted() && d.opts.Client.Connected()
	if connected && d.current.Load() {
		return 0, true
	}
	last := d.inStep.Load()
	if last == 0 {
		return math.MaxInt64, connected
	}
	return max(0, d.clock.Now().Sub(time.UnixMicro(last))), connected
}

package bus

import (
	"fmt"
	"regexp"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"penstock/infra/clock"
	"penstock/schemas/window"
)

// Sync says when an embedded server syncs a message to disk.
type Sync int

const (
	// SyncAlways syncs before each acknowledgement (the default): what is
	// acknowledged survives a power cut.
	SyncAlways Sync = iota
	// SyncInterval syncs every two minutes or so: what is acknowledged
	// survives a kill of the process, but not of the machine.
	SyncInterval
)

// Purpose says what the bus is for; the limits of the streams follow from it.
type Purpose int

const (
	// Serve is a bus of live traffic: old events give way to new ones.
	Serve Purpose = iota
	// Replay is a bus of recordings: nothing gives way, publishers wait, and
	// nothing ages, so that a replay can be resumed after a month.
	Replay
)

// String returns "serve" or "replay".
func (p Purpose) String() string {
	if p == Replay {
		return "replay"
	}
	return "serve"
}

const (
	// DefaultPartitions is P where nobody says otherwise.
	DefaultPartitions = 8
	// MaxPartitions is the most that one bus has (DESIGN §3).
	MaxPartitions = 25
	// MaxMessage is the most bytes in one message, headers included. It is
	// also the default of a NATS server.
	MaxMessage = 1 << 20
	// MaxBatch is the most messages in one atomic batch; servers allow 1,000.
	MaxBatch = 900
)

// Options says which bus to open and how. The zero value of every field but
// Dir (or URL) is usable.
type Options struct {
	// Clock paces retries and watchdogs. Defaults to the system's.
	Clock clock.Clock
	// Connect are further options of each connection: credentials, TLS.
	Connect []nats.Option
	// Dir is the folder of an embedded bus. It is made if need be, and locked.
	Dir string
	// EventsMaxBytes bounds EVENTS. Defaults to 20 GB.
	EventsMaxBytes int64
	// Listen is the host:port at which an embedded bus is open to other
	// processes; port 0 takes any. Empty (the default) opens no port.
	Listen string
	// Logger gets the bus's own lines and the embedded server's.
	Logger zerolog.Logger
	// Name is this process, in names of connections. Defaults to "penstock".
	Name string
	// Partitions is P for Init (default DefaultPartitions). Otherwise it is
	// only compared: 0 takes what the bus says.
	Partitions int
	// Patient lets Open and Client return although the bus at URL is away, so
	// that a service starts in an outage. Connections are then made in the
	// background, for ever; the bus is looked at when it comes ([Client.Ready],
	// [Client.Fault]), readers wait for it, and publishers spool until then. An
	// embedded bus is never away. Say Partitions, for nobody can be asked.
	Patient bool
	// Prefix keeps several Penstocks apart on one bus: letters, digits, - and _.
	Prefix string
	// Purpose decides the limits of the streams.
	Purpose Purpose
	// Registerer, if set, gets the counters of this bus's readers.
	Registerer prometheus.Registerer
	// Stall is how long a reader with messages waiting may be without one
	// before its consumer is made anew. Defaults to 5 s.
	Stall time.Duration
	// Sync is for an embedded bus; another syncs as it was told to.
	Sync Sync
	// URL is the address of a server or cluster; empty embeds one.
	URL string
	// Window is how wide the windows of the group owners are, for Init (default
	// an hour). Otherwise it is only compared: 0 takes what the bus says.
	Window time.Duration
}

var prefixPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{0,64}$`)

func (o *Options) complete() error {
	if o.URL == "" && o.Dir == "" {
		return fmt.Errorf("bus: neither a URL nor a folder")
	}
	if o.URL != "" && o.Listen != "" {
		return fmt.Errorf("bus: a bus at a URL cannot listen at %s", o.Listen)
	}
	if !prefixPattern.MatchString(o.Prefix) {
		return fmt.Errorf("bus: prefix %q: expected at most 64 letters, digits, - or _", o.Prefix)
	}
	if o.Partitions < 0 || o.Partitions > MaxPartitions {
		return fmt.Errorf("bus: %d partitions: expected 1 to %d", o.Partitions, MaxPartitions)
	}
	if o.Window != 0 {
		if err := window.CheckWidth(o.Window); err != nil {
			return fmt.Errorf("bus: %w", err)
		}
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Name == "" {
		o.Name = "penstock"
	}
	if o.Stall == 0 {
		o.Stall = 5 * time.Second
	}
	if o.EventsMaxBytes == 0 {
		o.EventsMaxBytes = 20e9
	}
	return nil
}

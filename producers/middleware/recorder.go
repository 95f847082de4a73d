package middleware

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/infra/pseudonym"
	"penstock/infra/publisher"
	"penstock/schemas/event"
)

// Options say who publishes and where to. URL, Entry, Component, Site and
// SpoolDir are needed.
type Options struct {
	// Clock measures. Defaults to the system's.
	Clock clock.Clock
	// Component is the service that requests are for (to_component).
	Component string
	// Connect are further options of the connection: credentials, TLS.
	Connect []nats.Option
	// Entry names this process among all that publish; two at a time must not
	// share a name.
	Entry string
	// Key, if set, makes a user of the client's address where the rules name
	// none: its keyed hash, for addresses never travel.
	Key []byte
	// Logger gets what an operator should see.
	Logger zerolog.Logger
	// Partitions is the bus's number. Defaults to bus.DefaultPartitions.
	Partitions int
	// Prefix is that of the bus (--prefix).
	Prefix string
	// Registerer, if set, gets the counters.
	Registerer prometheus.Registerer
	// Server is the machine or process within the site (to_server).
	Server string
	// Site is where the service runs (to_site).
	Site string
	// SpoolDir is a folder of this process alone, for what the bus does not have
	// yet. It outlives the process: the next one sends what is left.
	SpoolDir string
	// SpoolMax bounds the spool in bytes. Defaults to 1 GB.
	SpoolMax int64
	// URL is the address of the bus.
	URL string
}

// maxAge is how long a row waits for others before it is sent (DESIGN §3).
const maxAge = 100 * time.Millisecond

// hurry is how long Close waits for a bus that is not there.
const hurry = time.Second

func (o *Options) complete() error {
	for _, f := range [...]struct{ name, value string }{
		{"URL", o.URL}, {"Entry", o.Entry}, {"Component", o.Component}, {"Site", o.Site}, {"SpoolDir", o.SpoolDir},
	} {
		if f.value == "" {
			return fmt.Errorf("%s is not set: %w", f.name, ErrOptions)
		}
	}
	probe := event.NewRequest(0)
	probe.ToComponent, probe.ToSite, probe.ToServer, probe.FromComponent = o.Component, o.Site, o.Server, o.Entry
	if err := probe.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Partitions == 0 {
		o.Partitions = bus.DefaultPartitions
	}
	return nil
}

// Recorder publishes the requests of one process. It is safe for concurrent use.
type Recorder struct {
	o      Options
	hasher *pseudonym.Hasher // nil without a key
	bus    *bus.Bus
	client *bus.Client
	pub    *publisher.Publisher
	panics *prometheus.CounterVec
}

// Open opens the spool and begins to publish. It does not need the bus; the error
// is about the options or the spool: ErrOptions, publisher.ErrSpoolInUse.
func Open(ctx context.Context, o Options) (*Recorder, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	r := &Recorder{o: o, panics: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "penstock_middleware_rule_panics_total", Help: "Rules that panicked; their column is absent.",
	}, []string{"rule"})}
	if o.Registerer != nil {
		var already prometheus.AlreadyRegisteredError
		if err := o.Registerer.Register(r.panics); errors.As(err, &already) {
			r.panics, _ = already.ExistingCollector.(*prometheus.CounterVec)
		} else if err != nil {
			return nil, fmt.Errorf("recorder metrics: %w", err)
		}
	}
	var err error
	if len(o.Key) > 0 {
		if r.hasher, err = pseudonym.New(o.Key); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOptions, err)
		}
	}
	r.bus, err = bus.Open(ctx, bus.Options{
		URL: o.URL, Patient: true, Partitions: o.Partitions, Prefix: o.Prefix, Name: o.Entry,
		Clock: o.Clock, Connect: o.Connect, Logger: o.Logger, Registerer: o.Registerer,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if r.client, err = r.bus.Client(ctx, "publisher"); err == nil {
		r.pub, err = publisher.New(ctx, publisher.Options{
			Client: r.client, Entry: o.Entry, Partitions: o.Partitions, MaxAge: maxAge,
			SpoolDir: o.SpoolDir, SpoolMax: o.SpoolMax,
			Clock: o.Clock, Logger: o.Logger, Registerer: o.Registerer,
		})
	}
	if err != nil {
		return nil, errors.Join(err, r.bus.Close())
	}
	return r, nil
}

// Record publishes a row that the caller has made, with event.NewRequest. What it
// leaves open is filled in: a Time of 0 (now), and this component, site and
// server. It never waits, and sets the row's Mark; the row is not kept.
func (r *Recorder) Record(row *event.Request) {
	if row.Time == 0 {
		row.Time = r.o.Clock.Now().UnixMicro()
	}
	if row.ToComponent == "" {
		row.ToComponent = r.o.Component
	}
	if row.ToSite == "" {
		row.ToSite = r.o.Site
	}
	if row.ToServer == "" && row.ToSite == r.o.Site {
		row.ToServer = r.o.Server
	}
	r.pub.Publish(row)
}

// Stats are the publisher's totals until now.
func (r *Recorder) Stats() publisher.Stats { return r.pub.Stats() }

// Fault says what is wrong with the bus that is there, if it is not the one that
// was meant (bus.Client.Fault). Rows are spooled meanwhile.
func (r *Recorder) Fault() error { return r.client.Fault() }

// Close publishes what there is and waits until the bus has it, or ctx ends, or,
// if the bus is away, for a second. What it does not have by then stays in the
// spool for the next start, which is no error.
func (r *Recorder) Close(ctx context.Context) error {
	if r.client.Usable() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, hurry)
		defer cancel()
	}
	err := r.pub.Close(ctx)
	r.client.Close()
	return errors.Join(err, r.bus.Close())
}

// guard calls a rule for a column. What it panics with stays inside.
func (r *Recorder) guard(rule string, f func()) {
	defer func() {
		if v := recover(); v != nil {
			r.panics.WithLabelValues(rule).Inc()
			r.o.Logger.Error().Str("rule", rule).Interface("panic", v).Msg("a rule of the recorder panicked")
		}
	}()
	f()
}

package topology

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/infra/telemetry"
	"penstock/pipeline/config"
)

// Alone is a process that runs one part of the data plane (DESIGN §5): an entry
// point, the redirector, a follower of logs. It starts whether the bus is there or
// not, and goes on when it is lost.
type Alone struct {
	Config *config.Config
	// NATS is the address of the bus; none is embedded.
	NATS, Prefix string
	// State is the folder of spool and snapshots; Name tells this process from
	// others of its kind, on the bus too.
	State, Name string
	Logger      zerolog.Logger
	// Started, if set, is told where the part and its telemetry answer.
	Started func(addr, telemetryAddr string)
}

// alone is such a process while it runs.
type alone struct {
	*Alone
	*lookout
	bus      *bus.Bus
	client   *bus.Client
	parts    *Parts
	registry *prometheus.Registry
	metrics  *telemetry.Metrics
	server   *telemetry.Server
}

// run opens the bus and telemetry, calls start, which starts the parts and returns where
// they answer, and serves until the context ends (nil) or a part fails.
func (a *Alone) run(ctx context.Context, role string, start func(ctx context.Context, v *alone) (addr string, err error)) (err error) {
	if a.Config == nil || a.Name == "" || a.State == "" {
		return fmt.Errorf("a configuration, a name and a folder are needed: %w", ErrOptions)
	}
	if a.NATS == "" {
		return fmt.Errorf("the address of a bus is needed: that of serve --listen or of a NATS server: %w", ErrOptions)
	}
	if err := os.MkdirAll(a.State, 0o755); err != nil {
		return fmt.Errorf("%s: %w", role, err)
	}
	v := &alone{Alone: a, lookout: newLookout(), parts: NewParts(a.Logger), registry: telemetry.NewRegistry()}
	if v.metrics, err = telemetry.New(v.registry, clock.System()); err != nil {
		return err
	}
	if v.bus, err = bus.Open(ctx, bus.Options{
		URL: a.NATS, Prefix: a.Prefix, Name: "penstock-" + a.Name, Patient: true, Partitions: a.Config.Bus.Partitions, Window: a.Config.Placement.Window.Std(),
		Logger: a.Logger, Registerer: v.registry,
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.bus.Close()) }()
	if v.client, err = v.bus.Client(ctx, role); err != nil {
		return err
	}
	if v.server, err = telemetryServer(a.Config, v.registry, v.ready, a.Logger); err != nil {
		return fmt.Errorf("%w (--telemetry HOST:PORT takes another address than the configuration's, --telemetry off none)", err)
	}
	if v.server != nil {
		defer v.server.Close()
	}
	defer v.until(ctx)()
	addr, err := start(ctx, v)
	if err != nil {
		return errors.Join(err, v.parts.Stop())
	}
	v.parts.Start("readiness", v.look)
	telemetryAddr := ""
	if v.server != nil {
		v.parts.Start("telemetry", v.server.Run)
		telemetryAddr = v.server.Addr()
	}
	if a.Started != nil {
		a.Started(addr, telemetryAddr)
	}
	return wait(ctx, v.parts, a.Logger)
}

func (a *Alone) dir(name string) string { return filepath.Join(a.State, name) }

// wait serves until the context ends or a part fails, then stops the parts.
func wait(ctx context.Context, parts *Parts, log zerolog.Logger) error {
	select {
	case <-ctx.Done():
		log.Info().Msg("stopping")
	case <-parts.Failed().Done():
	}
	cause := context.Cause(parts.Failed())
	if errors.Is(cause, context.Canceled) {
		cause = nil // There is nothing left to do.
	}
	if cause != nil {
		log.Error().Err(cause).Msg("a part cannot go on: stopping")
	}
	// What failed is among what Stop returns, beside what failed on the way down.
	if err := parts.Stop(); err != nil {
		return err
	}
	return cause
}

// part is the log of one part.
func (a *Alone) part(name string) zerolog.Logger {
	return a.Logger.With().Str("part", name).Logger()
}

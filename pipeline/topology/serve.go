package topology

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"penstock/consumers/decider"
	"penstock/consumers/decider/placement"
	"penstock/infra/bus"
	"penstock/infra/clock"
	"penstock/infra/telemetry"
	"penstock/pipeline/config"
	"penstock/schemas/control"
)

// Role is a part of the loop that a process can run.
type Role string

// The roles, in stop order.
const (
	Aggregator Role = "aggregator"
	Decider    Role = "decider"
	Executor   Role = "executor"
)

// Roles lists the roles.
var Roles = []Role{Aggregator, Decider, Executor}

// Serve says what a serving process runs, and where.
type Serve struct {
	Config *config.Config
	Roles  []Role
	// NATS is the address of a bus that exists; empty embeds one under State.
	NATS, Prefix, State string
	// Listen opens the embedded bus to other processes.
	Listen string
	// Name tells this process from others with the same roles.
	Name   string
	Logger zerolog.Logger
	// Started, if set, is called once all parts are started.
	Started func(busURL, telemetryAddr string)
	Hook    func(point string)
}

// serving is a process that serves.
type serving struct {
	*Serve
	bus     *bus.Bus
	parts   *Parts
	metrics *telemetry.Metrics
	ready   *telemetry.Readiness
	server  *telemetry.Server
}

// Run starts the parts and serves until the context ends (nil) or one fails.
func (s *Serve) Run(ctx context.Context) (err error) {
	if err := s.complete(); err != nil {
		return err
	}
	v := &serving{Serve: s, parts: NewParts(s.Logger), ready: telemetry.NewReadiness(clock.System())}
	registry := telemetry.NewRegistry()
	if v.metrics, err = telemetry.New(registry, clock.System()); err != nil {
		return err
	}
	if v.bus, err = bus.Open(ctx, bus.Options{
		URL: s.NATS, Prefix: s.Prefix, Dir: s.dir("bus"), Listen: s.Listen, Name: "penstock-" + s.Name,
		Partitions: s.Config.Bus.Partitions, Sync: syncOf(s.Config), Logger: s.Logger, Registerer: registry,
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.bus.Close()) }()
	if err := v.streams(ctx); err != nil {
		return err
	}
	if s.Config.Telemetry.Listen != "" {
		if v.server, err = telemetry.NewServer(telemetry.ServerOptions{
			Gatherer: registry, Listen: s.Config.Telemetry.Listen, Logger: s.Logger, Readiness: v.ready, Token: s.token(),
		}); err != nil {
			return err
		}
	}
	if err := v.start(ctx); err != nil {
		return errors.Join(err, v.parts.Stop())
	}
	return v.wait(ctx)
}

func (s *Serve) complete() error {
	if s.Config == nil || len(s.Roles) == 0 {
		return fmt.Errorf("a configuration and at least one role are needed: %w", ErrOptions)
	}
	for _, r := range s.Roles {
		if !slices.Contains(Roles, r) {
			return fmt.Errorf("role %q, expected some of %v: %w", r, Roles, ErrOptions)
		}
	}
	if s.Config.Privacy.UserKey == "" {
		return fmt.Errorf("privacy.user_key is not set: users must be named by a key that is yours: %w", ErrOptions)
	}
	if s.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("a name is needed: %w: %w", ErrOptions, err)
		}
		s.Name = host
	}
	if s.State == "" {
		s.State = "penstock-state"
	}
	if err := os.MkdirAll(s.State, 0o755); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func (s *Serve) dir(name string) string {
	if name == "bus" && s.NATS != "" {
		return ""
	}
	return filepath.Join(s.State, name)
}

func (s *Serve) token() string {
	if s.Config.Telemetry.TokenFile == "" {
		return ""
	}
	b, err := os.ReadFile(s.Config.Telemetry.TokenFile)
	if err != nil {
		s.Logger.Error().Err(err).Msg("telemetry.token_file cannot be read")
		return "" // Off loopback the server refuses to start without one.
	}
	return strings.TrimSpace(string(b))
}

func syncOf(cfg *config.Config) bus.Sync {
	if cfg.Bus.Sync == "interval" {
		return bus.SyncInterval
	}
	return bus.SyncAlways
}

// streams makes the streams of an embedded bus, and checks those of another.
func (v *serving) streams(ctx context.Context) error {
	if v.bus.Embedded() {
		return v.bus.Init(ctx)
	}
	if err := v.bus.Check(ctx); err != nil {
		return fmt.Errorf("%w (penstock init --nats %s makes the streams)", err, v.NATS)
	}
	return nil
}

// start starts the roles, in stop order, and the telemetry server last: it
// answers until everything else has stopped.
func (v *serving) start(ctx context.Context) error {
	if slices.Contains(v.Roles, Aggregator) {
		part := v.ready.Part("aggregator")
		if err := startAggregators(ctx, v.parts, v.bus, aggregatorOptions{
			Flush: v.Config.Bus.Flush.Std(), IdleTimeout: v.Config.Bus.IdleTimeout.Std(), Purpose: bus.Serve,
			Metrics: aggregatorMeter{v.metrics}, Logger: v.Logger, Hook: v.Hook,
		}); err != nil {
			return err
		}
		part.Ready()
	}
	if slices.Contains(v.Roles, Decider) {
		if err := v.startDecider(ctx); err != nil {
			return err
		}
	}
	if slices.Contains(v.Roles, Executor) {
		if err := v.startExecutor(ctx); err != nil {
			return err
		}
	}
	v.busHealth()
	addr := ""
	if v.server != nil {
		v.parts.Start("telemetry", v.server.Run)
		addr = v.server.Addr()
	}
	if v.Started != nil {
		v.Started(v.bus.URL(), addr)
	}
	return nil
}

// busHealth makes readiness follow the connection to the bus.
func (v *serving) busHealth() {
	part := v.ready.Part("bus")
	v.parts.Start("bus watch", func(ctx context.Context) error {
		client, err := v.bus.Client(ctx, "watch")
		if err != nil {
			return err
		}
		t := clock.System().NewTicker(time.Second)
		defer t.Stop()
		for {
			if client.NC.IsConnected() {
				part.Ready()
			} else {
				part.NotReady("no connection to the bus; what is in force goes on")
			}
			select {
			case <-t.C():
			case <-ctx.Done():
				return nil
			}
		}
	})
}

func (v *serving) startDecider(ctx context.Context) error {
	client, err := v.bus.Client(ctx, "decider")
	if err != nil {
		return err
	}
	imported, err := importedLocations(ctx, client)
	if err != nil {
		return err
	}
	policy, err := placement.New(placementConfig(v.Config, nil, imported))
	if err != nil {
		return err
	}
	part := v.ready.Part("decider of placement")
	part.NotReady("recovering")
	d, err := decider.New(decider.Options{
		Client: client, Config: policy.Config(), Factory: placementFactory, Mode: control.Advise, Purpose: bus.Serve,
		TTL: v.Config.Placement.TTL.Std(), Metrics: deciderMeter{v.metrics}, Logger: v.Logger,
	})
	if err != nil {
		return err
	}
	v.parts.Start("decider", func(ctx context.Context) error {
		defer part.NotReady("stopped")
		return d.Run(ctx)
	})
	v.parts.Start("decider watch", func(ctx context.Context) error {
		select {
		case <-d.Ready():
			part.Ready()
		case <-ctx.Done():
		}
		return nil
	})
	return nil
}

func (v *serving) startExecutor(ctx context.Context) error {
	stores, err := ConfiguredStores(v.Config)
	if err != nil {
		return err
	}
	m, err := startMover(ctx, v.parts, v.bus, moverOptions{
		Dir: v.dir("mover"), Name: v.Name, Stores: stores, Config: v.Config, DeleteAfter: v.Config.Placement.DeleteAfter.Std(),
		Metrics: executorMeter{v.metrics, control.Placement}, Logger: v.Logger, Hook: v.Hook,
	})
	if err != nil {
		return err
	}
	part := v.ready.Part("executor of placement")
	v.parts.Start("executor watch", func(ctx context.Context) error {
		return watchExecutor(ctx, m, part, v.metrics)
	})
	return v.watchPurge(ctx, m)
}

// watchExecutor makes readiness and the gauge of open moves follow the loop.
func watchExecutor(ctx context.Context, m *moverPart, part *telemetry.Part, metrics *telemetry.Metrics) error {
	t := clock.System().NewTicker(time.Second)
	defer t.Stop()
	for {
		if m.loop.Ready() {
			part.Ready()
		} else {
			part.NotReady("commands are pending and none is delivered, or a move of before is being finished")
		}
		metrics.MovesOpen.Set(float64(m.Open()), "mover")
		select {
		case <-t.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// wait serves until the context ends or a part fails, then stops the parts.
func (v *serving) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		v.Logger.Info().Msg("stopping")
	case <-v.parts.Failed().Done():
	}
	cause := context.Cause(v.parts.Failed())
	return errors.Join(cause, v.parts.Stop())
}

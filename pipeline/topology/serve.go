package topology

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"penstock/consumers/aggregator"
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
	*lookout
	bus     *bus.Bus
	parts   *Parts
	metrics *telemetry.Metrics
	server  *telemetry.Server
	stores  Stores // of the executor
}

// Run starts the parts and serves until the context ends (nil) or one fails: then
// all stop, and the failure is returned. A stop takes at most stopWithin for the
// decider's snapshot and as long again for the moves in flight.
func (s *Serve) Run(ctx context.Context) (err error) {
	if err := s.complete(); err != nil {
		return err
	}
	started := false
	defer func() {
		if !started && ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = nil // Told to stop before it had started, which is no failure.
		}
	}()
	if s.tablesOnly() {
		s.Logger.Info().Msg("no site has a store: tables are decided, and no data is moved")
		s.Roles = slices.DeleteFunc(slices.Clone(s.Roles), func(r Role) bool { return r == Executor })
	}
	if slices.Contains(s.Roles, Executor) {
		if err := CheckStores(s.Config); err != nil {
			return err // Before anything is made on the bus.
		}
	}
	v := &serving{Serve: s, lookout: newLookout(), parts: NewParts(s.Logger)}
	registry := telemetry.NewRegistry()
	if v.metrics, err = telemetry.New(registry, clock.System()); err != nil {
		return err
	}
	if v.bus, err = bus.Open(ctx, bus.Options{
		URL: s.NATS, Prefix: s.Prefix, Dir: s.dir("bus"), Listen: s.Listen, Name: "penstock-" + s.Name,
		Partitions: s.Config.Bus.Partitions, Window: s.Config.Placement.Window.Std(), Sync: syncOf(s.Config), Logger: s.Logger, Registerer: registry,
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.bus.Close()) }()
	if err := v.streams(ctx); err != nil {
		return err
	}
	if v.server, err = telemetryServer(s.Config, registry, v.ready, s.Logger); err != nil {
		return err
	}
	if v.server != nil {
		defer v.server.Close()
	}
	defer func() { err = errors.Join(err, v.stores.Close()) }()
	if err := v.start(ctx); err != nil {
		return errors.Join(err, v.parts.Stop())
	}
	started = true
	return wait(ctx, v.parts, s.Logger)
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
	if s.NATS != "" && s.Listen != "" {
		return fmt.Errorf("a bus at %s (--nats, or PENSTOCK_NATS) cannot be opened at %s (--listen): only an embedded one can: %w", s.NATS, s.Listen, ErrOptions)
	}
	if err := s.identify(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.State, 0o755); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// tablesOnly reports whether there is nothing that data could be moved between, and
// something else to do. Entry points and proxies are the executors of split, entry points
// and server switches those of servers, coders those of coding.
func (s *Serve) tablesOnly() bool {
	return s.Config.Tables() && len(s.Roles) > 1 && !slices.ContainsFunc(s.Config.Sites, func(x config.Site) bool { return x.Store != "" })
}

// identify fills in the name and the state folder that were not given.
func (s *Serve) identify() error {
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
	return nil
}

func (s *Serve) dir(name string) string {
	if name == "bus" && s.NATS != "" {
		return ""
	}
	return filepath.Join(s.State, name)
}

// telemetryServer binds the endpoint for metrics and health; nil if there is none.
func telemetryServer(cfg *config.Config, g prometheus.Gatherer, ready *telemetry.Readiness, log zerolog.Logger) (*telemetry.Server, error) {
	if cfg.Telemetry.Listen == "" {
		return nil, nil
	}
	token, err := SecretFile("telemetry.token_file", cfg.Telemetry.TokenFile)
	if err != nil {
		return nil, err
	}
	return telemetry.NewServer(telemetry.ServerOptions{Gatherer: g, Listen: cfg.Telemetry.Listen, Logger: log, Readiness: ready, Token: token})
}

// SecretFile reads a secret, "" if no file is named. Who names one wants to be asked for it:
// an empty one is refused, on loopback too. The error names the field, and of an empty file
// wraps ErrOptions.
func SecretFile(field, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w", field, err)
	}
	secret := strings.TrimSpace(string(b))
	if secret == "" {
		return "", fmt.Errorf("%s %s: it is empty: %w", field, name, ErrOptions)
	}
	return secret, nil
}

func syncOf(cfg *config.Config) bus.Sync {
	if cfg.Bus.Sync == "interval" {
		return bus.SyncInterval
	}
	return bus.SyncAlways
}

// streams makes the streams of an embedded bus, and checks those of another.
func (v *serving) streams(ctx context.Context) error {
	look := v.bus.Check
	if v.bus.Embedded() {
		look = v.bus.Init
	}
	err := look(ctx)
	var diff *bus.DiffError
	if !errors.As(err, &diff) {
		return err
	}
	if slices.ContainsFunc(diff.Diffs, bus.Diff.Missing) {
		prefix := ""
		if v.Prefix != "" {
			prefix = " --prefix " + v.Prefix
		}
		return fmt.Errorf("%w\nthis makes what is missing: penstock init --nats %s%s --partitions %d --window %s", err, v.NATS, prefix, v.Config.Bus.Partitions, v.Config.Placement.Window)
	}
	return fmt.Errorf("%w\nnothing was changed: change the streams, or bus.partitions and placement.window, or keep apart with --prefix", err)
}

// start starts the roles, in stop order, and the telemetry server last: it
// answers until everything else has stopped.
func (v *serving) start(ctx context.Context) error {
	if slices.Contains(v.Roles, Aggregator) {
		if err := startAggregators(ctx, v.parts, v.bus, aggregatorOptions{
			Flush: v.Config.Bus.Flush.Std(), IdleTimeout: v.Config.Bus.IdleTimeout.Std(), Purpose: bus.Serve,
			Metrics: aggregatorMeter{v.metrics}, Logger: v.Logger, Hook: v.Hook,
			Each: func(group string, a *aggregator.Aggregator) {
				v.watch("aggregator of "+group, a.Waiting)
			},
		}); err != nil {
			return err
		}
	}
	if slices.Contains(v.Roles, Decider) {
		if err := v.startDeciders(ctx); err != nil {
			return err
		}
	}
	if slices.Contains(v.Roles, Executor) {
		if err := v.startExecutor(ctx); err != nil {
			return err
		}
	}
	if err := v.watchBus(ctx); err != nil {
		return err
	}
	v.parts.Start("readiness", v.look)
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

func (v *serving) startExecutor(ctx context.Context) error {
	client, err := v.bus.Client(ctx, "stores")
	if err != nil {
		return err
	}
	stores, err := countedStores(ctx, v.Config, client, v.Logger, func(site, what string, n int64) { v.metrics.StoreEvents.Add(n, site, what) })
	if err != nil {
		return err
	}
	v.stores = stores
	behind, runGate, err := v.gate(ctx, stores)
	if err != nil {
		return err
	}
	m, err := startMover(ctx, v.parts, v.bus, moverOptions{
		Dir: v.dir("mover"), Name: v.Name, Stores: behind, Config: v.Config, DeleteAfter: v.Config.Placement.DeleteAfter.Std(),
		Metrics: executorMeter{v.metrics, control.Placement}, Logger: v.Logger, Hook: v.Hook,
	})
	if err != nil {
		return err
	}
	v.watch("executor of placement", func() string {
		v.metrics.MovesOpen.Set(float64(m.Open()), "mover")
		if m.loop.Ready() {
			return ""
		}
		return "commands are pending and none is delivered, or a move of before is being finished"
	})
	if runGate != nil {
		v.parts.Start("gate", runGate) // It is needed until the last move has stopped.
	}
	return v.watchPurge(ctx, m)
}

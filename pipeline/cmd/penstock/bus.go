package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"

	"penstock/infra/bus"
	"penstock/infra/telemetry"
)

// busFlags say on which bus a verb works: one at a URL, or the embedded one of
// a replay or a stopped serve, by its state folder.
type busFlags struct {
	NATS   string `name:"nats" help:"Address of a NATS server or of a running penstock (2.15.3 or later)." placeholder:"URL" env:"PENSTOCK_NATS"`
	State  string `help:"State folder of a replay or of a stopped serve, when there is no --nats." default:"penstock-out/state" type:"path"`
	Prefix string `help:"Keeps several Penstocks apart on one bus."`
}

// defaultState is the default of --state, as it stands in the tag of State.
const defaultState = "penstock-out/state"

// serveState is that of serve and init.
const serveState = "penstock-state"

// isDefaultState reports whether --state was left out.
func isDefaultState(state string) bool {
	unnamed, err := filepath.Abs(defaultState)
	return err == nil && state == unnamed
}

// open opens the bus and a client. Close the bus when done.
func (f *busFlags) open(con *console, role string) (*bus.Bus, *bus.Client, error) {
	b, err := f.connect(con.ctx, con)
	if err != nil {
		return nil, nil, err
	}
	c, err := b.Client(con.ctx, role)
	if err != nil {
		return nil, nil, errors.Join(err, b.Close())
	}
	return b, c, nil
}

// connect opens the bus.
func (f *busFlags) connect(ctx context.Context, con *console) (*bus.Bus, error) {
	o := bus.Options{URL: f.NATS, Prefix: f.Prefix, Name: "penstock-cli", Logger: con.logger()}
	if f.NATS == "" {
		o.Dir = filepath.Join(f.State, "bus")
		o.Purpose = bus.Replay
		if _, err := os.Stat(o.Dir); err != nil {
			return nil, fmt.Errorf("no bus under %s (name a server with --nats or another folder with --state): %w", f.State, err)
		}
	}
	b, err := bus.Open(ctx, o)
	if errors.Is(err, bus.ErrInUse) {
		return nil, fmt.Errorf("%w; start that process with --listen and name its address with --nats", err)
	}
	return b, err
}

// logger writes to standard error: for people on a terminal, else JSON.
func (con *console) logger() zerolog.Logger {
	log, err := telemetry.NewLogger(con.err, telemetry.LogOptions{Level: cmp.Or(con.level, "warn")})
	if err != nil {
		return zerolog.Nop() // The command line allows no other levels.
	}
	return log
}

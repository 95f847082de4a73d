package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"penstock/infra/bus"
	"penstock/pipeline/config"
	"penstock/schemas/window"
)

type initCmd struct {
	NATS       string        `name:"nats" help:"Address of a NATS server (2.15.3 or later)." placeholder:"URL" env:"PENSTOCK_NATS"`
	State      string        `help:"State folder of an embedded bus, when there is no --nats." default:"penstock-state" type:"path"`
	Prefix     string        `help:"Keeps several Penstocks apart on one bus."`
	Partitions int           `help:"Partitions of EVENTS, 1 to 25; fixed from then on." default:"8"`
	Window     time.Duration `help:"Width of placement's windows, whole seconds that divide a day; fixed from then on." default:"1h"`
	Check      bool          `help:"Change nothing: say what differs from what it should be."`
}

// Run makes the streams, or says what differs.
func (c *initCmd) Run(con *console) (err error) {
	if c.Partitions < 1 || c.Partitions > bus.MaxPartitions {
		return fmt.Errorf("%w: --partitions %d, expected 1 to %d", errUsage, c.Partitions, bus.MaxPartitions)
	}
	if err := window.CheckWidth(c.Window); err != nil {
		return fmt.Errorf("%w: --window: %w", errUsage, err)
	}
	o := bus.Options{URL: c.NATS, Prefix: c.Prefix, Name: "penstock-init", Partitions: c.Partitions, Window: c.Window, Logger: con.logger()}
	if c.NATS == "" {
		o.Dir = filepath.Join(c.State, "bus")
	}
	b, err := bus.Open(con.ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if !c.Check {
		if err := b.Init(con.ctx); err != nil {
			return err
		}
	}
	err = b.Check(con.ctx)
	if con.json {
		return errors.Join(err, c.encode(con, b.Replicas(), err))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(con.out, "streams and keys are as they should be, with %d replicas and %d partitions, windows of %s\n", b.Replicas(), c.Partitions, config.Duration(c.Window))
	return err
}

// encode writes for a machine what Check found. What it could not look at is not
// in it: that is the error alone.
func (c *initCmd) encode(con *console, replicas int, err error) error {
	type difference struct {
		Of    string `json:"of"`
		Field string `json:"field"`
		Have  string `json:"have"`
		Want  string `json:"want"`
	}
	out := struct {
		Fine        bool         `json:"fine"`
		Replicas    int          `json:"replicas"`
		Partitions  int          `json:"partitions"`
		Window      string       `json:"window"`
		Differences []difference `json:"differences"`
	}{err == nil, replicas, c.Partitions, config.Duration(c.Window).String(), []difference{}}
	var differs *bus.DiffError
	if err != nil && !errors.As(err, &differs) {
		return nil
	}
	if differs != nil {
		for _, d := range differs.Diffs {
			out.Differences = append(out.Differences, difference{d.Of, d.Field, d.Have, d.Want})
		}
	}
	return json.NewEncoder(con.out).Encode(out)
}

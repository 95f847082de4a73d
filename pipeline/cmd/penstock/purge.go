package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"penstock/pipeline/config"
	"penstock/pipeline/topology"
	"penstock/schemas/control"
)

type purgeCmd struct {
	busFlags
	Config string `short:"c" help:"Of a stopped serve with an embedded bus: its configuration, which names the stores." type:"existingfile"`
	Name   string `help:"Of a stopped serve: its name, by default the host's."`
}

// Run asks the running movers to delete what moved away, or does it for a
// stopped one.
func (c *purgeCmd) Run(con *console) error {
	if c.NATS != "" {
		return c.set(con, control.PurgeKey(control.Placement), control.Switch{},
			"running movers delete copies that moved away now", "; those that are not running keep delete_after")
	}
	if c.Config == "" {
		return fmt.Errorf("%w: name the bus of running movers with --nats, or the configuration of a stopped serve with --config", errUsage)
	}
	cfg, err := config.Load(c.Config)
	if err != nil {
		return err
	}
	n, err := topology.Purge(con.ctx, topology.PurgeOptions{Config: cfg, State: c.State, Prefix: c.Prefix, Name: c.Name, Logger: con.logger()})
	if err != nil && n == 0 {
		return err
	}
	if con.json {
		return errors.Join(err, json.NewEncoder(con.out).Encode(map[string]int{"deleted": n}))
	}
	fmt.Fprintf(con.out, "deleted %d copies that had moved away\n", n)
	return err
}

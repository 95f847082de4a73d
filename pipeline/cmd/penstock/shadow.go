package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"penstock/pipeline/config"
	"penstock/pipeline/topology"
)

type shadowCmd struct {
	busFlags
	Config string  `short:"c" required:"" help:"The configuration: sites, policy, prices." type:"existingfile"`
	Policy string  `help:"tmatch or optimal; by default the configuration's." enum:",tmatch,optimal" default:""`
	From   instant `help:"Leave out windows that start before this time (RFC 3339)." placeholder:"TIME"`
	Out    string  `help:"Folder of the report." default:"penstock-shadow" type:"path"`
}

// Run says what placement would have brought.
func (c *shadowCmd) Run(con *console) (err error) {
	cfg, err := config.Load(c.Config)
	if err != nil {
		return err
	}
	b, client, err := c.open(con, "shadow")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	s := topology.Shadow{
		Config: cfg, Policy: c.Policy, From: c.From.Time, Out: c.Out, Logger: con.logger(), Note: func(s string) { fmt.Fprintln(con.err, "note:", s) },
	}
	rep, err := s.Run(con.ctx, client)
	if err != nil {
		return err
	}
	if con.json {
		return json.NewEncoder(con.out).Encode(rep)
	}
	if err := rep.Summary(con.out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(con.out, "report   %s\n", filepath.Join(c.Out, "report.html"))
	return err
}

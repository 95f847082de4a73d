package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"penstock/infra/bus"
	"penstock/infra/objectstore"
	"penstock/pipeline/config"
	"penstock/pipeline/doctor"
	"penstock/pipeline/topology"
)

type doctorCmd struct {
	busFlags
	Config   string        `short:"c" help:"The configuration: sites, capacities and stores are looked at too." type:"existingfile"`
	Serve    bool          `help:"Is the configuration fit to be served?"`
	NoBus    bool          `name:"no-bus" help:"Look at the configuration, disks and stores only."`
	NoStores bool          `help:"Leave the stores out, and what coders need on their machines."`
	ReadOnly bool          `help:"Make nothing in the stores: by default an empty closed copy is made and removed."`
	Timeout  time.Duration `help:"Most time for one look." default:"10s"`
}

var errDoctor = errors.New("something is broken")

// Run looks for what would break; it fails if something is broken.
func (c *doctorCmd) Run(con *console) error {
	o := doctor.Options{Serve: c.Serve, ReadOnly: c.ReadOnly, Timeout: c.Timeout, Logger: con.logger()}
	if c.Config != "" {
		cfg, err := config.Load(c.Config)
		if err != nil {
			return err
		}
		o.Config, o.Split, o.Coding = cfg, func() error { return topology.CheckSplit(cfg) }, func() error { return topology.CheckCoding(cfg) }
		o.Servers = func() error { return topology.CheckServers(cfg) }
		if o.Programs, err = config.MissingPrograms(c.Config); err != nil {
			return err
		}
		if o.Coders = !c.NoStores; o.Coders {
			o.Stores = func(ctx context.Context, client *bus.Client) (map[string]objectstore.Store, func() error, error) {
				s, err := topology.ConfiguredStores(ctx, cfg, client, con.logger())
				return s, s.Close, err
			}
		}
	}
	if c.Serve && c.NATS == "" && isDefaultState(c.State) {
		c.State = serveState // Where serve keeps its own, unless told otherwise.
	}
	if c.NATS == "" {
		o.State = c.State
	}
	if _, err := os.Stat(filepath.Join(c.State, "bus")); !c.NoBus && (c.NATS != "" || err == nil) {
		o.Bus = func(ctx context.Context) (*bus.Bus, error) { return c.connect(ctx, con) }
	}
	r := doctor.Run(con.ctx, o)
	if o.Bus == nil && !c.NoBus {
		r.Findings = append(r.Findings, doctor.Finding{
			Area: "bus", What: "server", Verdict: doctor.Unknown, Text: "no bus under " + c.State,
			Hint: "name a server with --nats, another folder with --state, or leave it out with --no-bus",
		})
	}
	var err error
	if con.json {
		err = json.NewEncoder(con.out).Encode(r)
	} else {
		err = r.Print(con.out)
	}
	if err == nil && r.Count(doctor.Broken) > 0 {
		err = errDoctor
	}
	return err
}

package main

import (
	"penstock/pipeline/topology"
)

type coderCmd struct {
	Run    coderRunCmd    `cmd:"" default:"withargs" help:"Serve objects by an S3 API; without a word after coder it is this."`
	Status coderStatusCmd `cmd:"" help:"What a running coder holds, its queue, its codes and its stores."`
	Scrub  coderScrubCmd  `cmd:"" help:"Read and check every strip of every object of a running coder."`

	StoreIsNew coderStoreIsNewCmd `cmd:"" name:"store-is-new" help:"Say that what an absent store held is lost for good: it is filled anew from the others."`
}

type coderRunCmd struct {
	aloneFlags
	Coder  string `help:"Its name among coders of the configuration, if there are several." placeholder:"NAME"`
	Listen string `help:"Address of the S3 API instead of the configuration's." placeholder:"HOST:PORT"`
	Admin  string `help:"Address of status and scrub instead of the configuration's, or off." placeholder:"HOST:PORT"`
	Adopt  bool   `help:"Take over stores that belong to another state folder: the catalog is read back from them. The coder that had them stops."`
}

// Run serves until it is told to stop.
func (c *coderRunCmd) Run(con *console) error {
	a, err := c.alone(con, "coder", c.Coder, "coder")
	if err != nil {
		return err
	}
	x := topology.Coder{Alone: *a, Coder: c.Coder, Listen: c.Listen, Admin: c.Admin, Adopt: c.Adopt}
	return x.Run(con.ctx)
}

// Help shows coders.
func (coderCmd) Help() string {
	return `Examples:
  penstock coder -c penstock.yaml --nats nats://127.0.0.1:4222
  penstock coder -c penstock.yaml --nats nats://127.0.0.1:4222 --coder objects --state /var/lib/penstock/objects
  penstock coder status -c penstock.yaml
  penstock coder scrub -c penstock.yaml --repair
  penstock coder store-is-new -c penstock.yaml east-1

It answers S3 clients, and keeps objects as chunks in the stores of the configuration;
docs/coding.md tells how. Without the bus it goes on with the codes last in force.`
}

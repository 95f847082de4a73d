package main

import "penstock/pipeline/topology"

type redirectorCmd struct {
	aloneFlags
	Listen string `help:"Address instead of the configuration's." placeholder:"HOST:PORT"`
}

// Run serves until it is told to stop.
func (c *redirectorCmd) Run(con *console) error {
	a, err := c.alone(con, "redirector", "", "redirector")
	if err != nil {
		return err
	}
	r := topology.Redirector{Alone: *a, Listen: c.Listen}
	return r.Run(con.ctx)
}

// Help shows the redirector.
func (redirectorCmd) Help() string {
	return `Examples:
  penstock redirector -c penstock.yaml --nats nats://127.0.0.1:4222
  curl http://127.0.0.1:8090/v1/locations/ann
  curl -L http://127.0.0.1:8090/r/ann/u/ann/notes

While the bus is away it tells what it last knew, and how old that is.`
}

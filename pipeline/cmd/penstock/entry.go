package main

import (
	"penstock/pipeline/topology"
)

type entryCmd struct {
	aloneFlags
	Site   string `required:"" help:"The site at which it stands."`
	Listen string `help:"Address of the proxy instead of the configuration's." placeholder:"HOST:PORT"`
	// Internal may be off.
	Internal string `help:"Address at which components of the site call others, instead of the configuration's; or off." placeholder:"HOST:PORT"`
}

// Run serves until it is told to stop.
func (c *entryCmd) Run(con *console) error {
	a, err := c.alone(con, "entry", c.Site, "entry point of "+c.Site)
	if err != nil {
		return err
	}
	e := topology.Entry{Alone: *a, Site: c.Site, Listen: c.Listen, Internal: c.Internal}
	return e.Run(con.ctx)
}

// Help shows entry points.
func (entryCmd) Help() string {
	return `Examples:
  penstock entry --site us-east -c penstock.yaml --nats nats://127.0.0.1:4222
  penstock entry --site us-west -c penstock.yaml --nats nats://127.0.0.1:4222 --listen 0.0.0.0:80 --telemetry off
  penstock entry --site us-east -c penstock.yaml --nats nats://127.0.0.1:4222 --internal 127.0.0.1:8081
  curl -H 'Penstock-To: cart' -H 'Penstock-Component: web' http://127.0.0.1:8081/items

A lost bus never delays or fails a request: events wait on disk under --state.
Who reaches the internal address may call every component, in the name of any.`
}

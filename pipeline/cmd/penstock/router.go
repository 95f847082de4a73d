package main

import "penstock/pipeline/topology"

type routerCmd struct {
	aloneFlags
	Listen string   `help:"Address of the pull API instead of the configuration's, or off." placeholder:"HOST:PORT"`
	Target []string `help:"Name of a target of the section router that this process tends; may be given several times. By default all." placeholder:"NAME"`
}

// Run serves until it is told to stop.
func (c *routerCmd) Run(con *console) error {
	a, err := c.alone(con, "router", "", "router")
	if err != nil {
		return err
	}
	r := topology.Router{Alone: *a, Listen: c.Listen, Targets: c.Target}
	return r.Run(con.ctx)
}

// Help shows routers.
func (routerCmd) Help() string {
	return `Examples:
  penstock router -c penstock.yaml --nats nats://127.0.0.1:4222
  penstock router -c penstock.yaml --nats nats://127.0.0.1:4222 --target edge-east --listen off
  curl 'http://127.0.0.1:8091/v1/split/search?from=web&from_site=us-east'

It puts the split in force to HAProxies, Envoys and HTTPRoutes, which docs/routers.md
tells how to plug in, and tells it to those who ask. Without the bus all goes on by
what was last in force, also after a restart.`
}

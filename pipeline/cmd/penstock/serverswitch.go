package main

import "penstock/pipeline/topology"

type serverswitchCmd struct {
	aloneFlags
	Site []string `help:"Site whose servers this process turns on and off; may be given several times. By default all." placeholder:"NAME"`
}

// Run serves until it is told to stop.
func (c *serverswitchCmd) Run(con *console) error {
	a, err := c.alone(con, "serverswitch", "", "server switch")
	if err != nil {
		return err
	}
	s := topology.ServerSwitch{Alone: *a, Sites: c.Site}
	return s.Run(con.ctx)
}

// Help shows server switches.
func (serverswitchCmd) Help() string {
	return `Examples:
  penstock serverswitch -c penstock.yaml --nats nats://127.0.0.1:4222
  penstock serverswitch -c penstock.yaml --nats nats://127.0.0.1:4222 --site us-east

It turns servers on and off as servers.switching.hooks say how: by commands, by HTTP, in
a HAProxy, or by the scale of a Kubernetes workload. A server is stopped once no entry
point has a request there. Of several for one site one acts, the others wait for it to
go. docs/servers.md tells more.`
}

package main

import (
	"fmt"
	"strings"

	"penstock/pipeline/config"
	"penstock/pipeline/topology"
)

type serveCmd struct {
	Config string   `short:"c" required:"" help:"The configuration." type:"existingfile"`
	Roles  []string `help:"What this process runs: aggregator, decider, executor." default:"aggregator,decider,executor"`
	NATS   string   `name:"nats" help:"Address of a NATS server or cluster (2.15.3 or later); without one a server is embedded." placeholder:"URL" env:"PENSTOCK_NATS"`
	Prefix string   `help:"Keeps several Penstocks apart on one bus."`
	Listen string   `help:"Open the embedded bus to other processes at this address." placeholder:"HOST:PORT"`
	State  string   `help:"Folder of the embedded bus and of the mover's journal." default:"penstock-state" type:"path"`
	Name   string   `help:"Tells this process from others with the same roles; by default the host's name."`
}

// Run serves until it is told to stop.
func (c *serveCmd) Run(con *console) error {
	cfg, err := config.Load(c.Config)
	if err != nil {
		return err
	}
	log, err := con.serverLog()
	if err != nil {
		return err
	}
	for _, n := range cfg.Notes() {
		log.Warn().Msg(n)
	}
	s := topology.Serve{
		Config: cfg, NATS: c.NATS, Prefix: c.Prefix, Listen: c.Listen, State: c.State, Name: c.Name, Logger: log, Hook: con.hook,
	}
	s.Started = func(busURL, telemetryAddr string) {
		var roles []string
		for _, r := range s.Roles { // Those that there is work for.
			roles = append(roles, string(r))
		}
		said := "serving " + strings.Join(roles, ", ")
		if busURL != "" {
			said += "; bus at " + busURL
		}
		if telemetryAddr != "" {
			said += "; metrics and health at http://" + telemetryAddr
		}
		fmt.Fprintln(con.out, said)
	}
	for _, r := range c.Roles {
		s.Roles = append(s.Roles, topology.Role(strings.TrimSpace(r)))
	}
	return s.Run(con.ctx)
}

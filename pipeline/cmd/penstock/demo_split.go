package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"penstock/pipeline/demo/processes"
	"penstock/pipeline/demo/services"
	"penstock/pipeline/demo/split"
)

type demoSplitCmd struct {
	Out       string        `short:"o" help:"Folder of configurations, logs and the report, which stay there; what an earlier demonstration left in it is removed." default:"penstock-out/split-demo" type:"path"`
	Fast      bool          `help:"A minute and a half instead of seventeen and a half: one short fault, two policies, fewer requests."`
	Seed      uint64        `help:"Draws requests, how long work takes, and when faults begin." default:"1"`
	Policies  []string      `help:"Policies beside each other, the one that is judged first; greedy,closest,redirect, with --fast greedy,closest." placeholder:"NAME"`
	Component string        `help:"What gets slower." default:"quotes"`
	Site      string        `help:"Where it does." default:"us-east"`
	Added     time.Duration `help:"By how much." default:"300ms"`
	Rate      float64       `help:"Requests a second that enter at each site; 20, with --fast 10." placeholder:"N"`
	Faults    int           `help:"How often; 3, with --fast 1." placeholder:"N"`
	Fault     time.Duration `help:"For how long; 3m, with --fast 50s." placeholder:"DURATION"`
	Pause     time.Duration `help:"Time after each fault; 2m30s, with --fast none." placeholder:"DURATION"`
	RTT       time.Duration `name:"rtt" help:"Round trip between the sites; 44 ms, that of their distance." placeholder:"DURATION"`
}

// Run shows the demonstration and fails unless all promises were kept.
func (c *demoSplitCmd) Run(con *console) error {
	s := demoScreen(con, 10*time.Second)
	d := split.Demo{
		Dir: c.Out, Fast: c.Fast, Seed: c.Seed, Policies: c.Policies, Component: c.Component, Site: c.Site, Added: c.Added, Rate: c.Rate,
		Faults: c.Faults, Fault: c.Fault, Pause: c.Pause, RTT: c.RTT, Attach: attach, Screen: s, Logger: con.logger(),
	}
	r, err := d.Run(con.ctx)
	if errors.Is(err, split.ErrOptions) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if r == nil {
		return err
	}
	return demoResult(con, s, r, err)
}

// Help shows the demonstration.
func (demoSplitCmd) Help() string {
	return `Examples:
  penstock demo split
  penstock demo split --faults 1 -o try
  penstock demo split --policies lp,closest,locality-failover --component ledger
  penstock demo split --fast --json > result.json

Everything is real: for each policy fifteen processes of this program and a bus.
Only the distance between the sites is made, and what one service takes longer.
A run that took more than 30 % of the machine's processors is void.`
}

type demoServiceCmd struct {
	Component string `required:"" help:"Which one."`
	Site      string `required:"" help:"Where it runs."`
	Entry     string `required:"" help:"Internal listener of the site's entry point." placeholder:"URL"`
	Listen    string `required:"" placeholder:"HOST:PORT"`
	Control   string `required:"" help:"Where it can be made slower." placeholder:"HOST:PORT"`
	Seed      uint64 `help:"Draws how long work takes."`
}

// Run serves until it is told to stop.
func (c *demoServiceCmd) Run(con *console) error {
	log, err := con.serverLog()
	if err != nil {
		return err
	}
	s, err := services.New(services.Options{Component: c.Component, Site: c.Site, Entry: c.Entry, Seed: c.Seed, Logger: log})
	if err != nil {
		return err
	}
	defer s.Close()
	control, err := new(net.ListenConfig).Listen(con.ctx, "tcp", c.Control)
	if err != nil {
		return fmt.Errorf("service: control: %w", err)
	}
	l, err := new(net.ListenConfig).Listen(con.ctx, "tcp", c.Listen)
	if err != nil {
		return errors.Join(fmt.Errorf("service: %w", err), control.Close())
	}
	fmt.Fprintf(con.out, "%s of %s at %s\n", c.Component, c.Site, l.Addr())
	// The control serves as long as the service does, and ends with it.
	ctx, cancel := context.WithCancel(con.ctx)
	defer cancel()
	controlled := make(chan error, 1)
	go func() { controlled <- processes.Serve(ctx, control, s.Control()) }()
	err = processes.Serve(con.ctx, l, s.Handler())
	cancel()
	return errors.Join(err, <-controlled)
}

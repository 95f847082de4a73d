package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"penstock/infra/clock"
	"penstock/pipeline/demo/processes"
	"penstock/pipeline/demo/servers"
	"penstock/pipeline/demo/servers/backend"
)

type demoServersCmd struct {
	Out    string        `short:"o" help:"Folder of configurations, logs and the report, which stay there; what an earlier demonstration left in it is removed." default:"penstock-out/servers-demo" type:"path"`
	Fast   bool          `help:"A minute instead of five: a shorter day."`
	Seed   uint64        `help:"Draws requests, and how long servers take." default:"1"`
	Day    time.Duration `help:"How long the day of load is; 4m30s, with --fast 55s." placeholder:"DURATION"`
	Rate   float64       `help:"Requests a second by day, at each of the two sites; 75, with --fast 60." placeholder:"N"`
	Policy string        `help:"Which server, which place in its queue: one of servers.policy." default:"auto"`
}

// Run shows the demonstration and fails unless all promises were kept.
func (c *demoServersCmd) Run(con *console) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	s := demoScreen(con, 5*time.Second)
	d := servers.Demo{
		Dir: c.Out, Fast: c.Fast, Seed: c.Seed, Day: c.Day, Rate: c.Rate, Policy: c.Policy,
		Attach: attach, Hook: []string{exe, "demo", "switch"}, Screen: s, Logger: con.logger(),
	}
	r, err := d.Run(con.ctx)
	if errors.Is(err, servers.ErrOptions) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if r == nil {
		return err
	}
	return demoResult(con, s, r, err)
}

// Help shows the demonstration.
func (demoServersCmd) Help() string {
	return `Examples:
  penstock demo servers
  penstock demo servers --fast --seed 7 -o try
  penstock demo servers --policy A1 --rate 90
  penstock demo servers --fast --json > result.json

Everything is real: a bus with its decider, four entry points, a server switch whose hook
starts and stops the processes of servers, and these servers. Only how long they work is
made. A run on a machine that had no time to spare is void.`
}

type demoServerCmd struct {
	Listen   string        `required:"" placeholder:"HOST:PORT"`
	Control  string        `required:"" help:"Where it tells how it is, and can be made slower." placeholder:"HOST:PORT"`
	Workers  int           `required:"" help:"Requests that are worked on at the same time."`
	Slowness float64       `help:"How slow the machine is." default:"1"`
	Seed     uint64        `help:"Draws how long work takes."`
	Boot     time.Duration `help:"How long it takes until it listens."`
}

// Run serves until it is told to stop.
func (c *demoServerCmd) Run(con *console) error {
	var mu sync.Mutex
	tell := func(s backend.State) {
		mu.Lock()
		defer mu.Unlock()
		_ = json.NewEncoder(con.out).Encode(s) // Nobody may read it.
	}
	s, err := backend.New(backend.Options{Workers: c.Workers, Slowness: c.Slowness, Seed: c.Seed, Most: tell})
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	control, err := new(net.ListenConfig).Listen(con.ctx, "tcp", c.Control)
	if err != nil {
		return fmt.Errorf("server: control: %w", err)
	}
	ctx, cancel := context.WithCancel(con.ctx)
	defer cancel()
	controlled := make(chan error, 1)
	go func() { controlled <- processes.Serve(ctx, control, s.Control()) }()
	err = clock.System().Sleep(con.ctx, c.Boot)
	var l net.Listener
	if err == nil {
		if l, err = new(net.ListenConfig).Listen(con.ctx, "tcp", c.Listen); err == nil {
			stop := context.AfterFunc(con.ctx, s.End)
			err = processes.Serve(con.ctx, l, s.Handler())
			stop()
		}
	}
	if con.ctx.Err() != nil && errors.Is(err, con.ctx.Err()) {
		err = nil // It was told to stop before it had begun.
	}
	tell(s.State())
	cancel()
	return errors.Join(err, <-controlled)
}

type demoSwitchCmd struct {
	Action string `arg:"" enum:"on,off,status" help:"on, off or status."`
	Room   string `required:"" help:"Where the demonstration's machines are turned on and off." placeholder:"URL"`
	Server string `required:"" placeholder:"HOST:PORT"`
}

// Run asks for it. It ends with 1 for the status of a server that is off, and with 2 if it
// can't be asked.
func (c *demoSwitchCmd) Run(con *console) error {
	off, err := servers.Switch(con.ctx, c.Room, c.Action, c.Server)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if off {
		return fmt.Errorf("%s: %w", c.Server, errServerOff)
	}
	return nil
}

var errServerOff = errors.New("it is off")

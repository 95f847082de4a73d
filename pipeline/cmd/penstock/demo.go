package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"penstock/infra/objectstore/dir"
	"penstock/pipeline/demo"
	"penstock/pipeline/demo/notes"
	"penstock/pipeline/demo/processes"
	"penstock/pipeline/demo/screen"
)

type demoCmd struct {
	Live    demoLiveCmd    `cmd:"" help:"Three sites, their entry points and a crowd that moves: its data follows while it reads and writes."`
	Split   demoSplitCmd   `cmd:"" help:"Two sites of six services that call each other: one of them gets slow at one site, and calls go to the other."`
	Coding  demoCodingCmd  `cmd:"" help:"A coder over a store with made-up delays, beside static codes: load rises and falls, and codes follow."`
	Servers demoServersCmd `cmd:"" help:"A pool of servers of unequal speed and a day of load: requests queue by deadline, servers go on and off."`
	Server  demoServerCmd  `cmd:"" hidden:"" help:"One of the servers of a pool."`
	Switch  demoSwitchCmd  `cmd:"" hidden:"" help:"Turn a server of a pool on or off."`
	Notes   demoNotesCmd   `cmd:"" hidden:"" help:"The notes service of a site of the demonstration."`
	Service demoServiceCmd `cmd:"" hidden:"" help:"One of the six services of a site."`
	Part    demoPartCmd    `cmd:"" hidden:"" passthrough:"" help:"Run a verb that ends with the process that started it."`
}

type demoLiveCmd struct {
	Out    string        `short:"o" help:"Folder of configurations, stores and logs, which stay there; what an earlier demonstration left in it is removed." default:"penstock-out/live-demo" type:"path"`
	Fast   bool          `help:"Half a minute instead of one and a half: narrower windows, fewer people, one journey."`
	Seed   uint64        `help:"Draws people, friendships and what they do." default:"1"`
	People int           `help:"How many people; 300, with --fast 150." placeholder:"N"`
	Rate   float64       `help:"Requests a second of all of them; 150, with --fast 100." placeholder:"N"`
	Window time.Duration `help:"Width of placement's windows; 5s, with --fast 3s." placeholder:"DURATION"`
	Policy string        `help:"Policy of placement: optimal or tmatch." enum:"optimal,tmatch" default:"optimal"`
}

// Run shows the demonstration and fails unless all promises were kept.
func (c *demoLiveCmd) Run(con *console) error {
	s := demoScreen(con, 2*time.Second)
	l := demo.Live{
		Dir: c.Out, Fast: c.Fast, Seed: c.Seed, People: c.People, Rate: c.Rate, Window: c.Window, Policy: c.Policy,
		Attach: attach, Screen: s, Logger: con.logger(),
	}
	r, err := l.Run(con.ctx)
	if errors.Is(err, demo.ErrOptions) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if r == nil {
		return err
	}
	return demoResult(con, s, r, err)
}

// attach are the arguments by which a process of a demonstration ends with it.
var attach = []string{"demo", "part", "--"}

// demoScreen is where a demonstration is to be seen: standard output, or standard
// error if that is for the result.
func demoScreen(con *console, every time.Duration) *screen.Screen {
	o := screen.Options{Every: every}
	out := con.out
	if con.json {
		out = con.err
	}
	if f, ok := out.(*os.File); ok && isTerminal(f) {
		o.Terminal, o.Width = true, screen.WidthOf(f)
	}
	return screen.New(out, o)
}

// demoResult prints what came of a demonstration.
func demoResult(con *console, s *screen.Screen, r fmt.Stringer, err error) error {
	if con.json {
		return errors.Join(json.NewEncoder(con.out).Encode(r), err)
	}
	s.Say("\n%s", r)
	return err
}

// Help shows the demonstration.
func (demoLiveCmd) Help() string {
	return `Examples:
  penstock demo live
  penstock demo live --fast --seed 7 -o try
  penstock demo live --json > result.json

Everything is real: nine processes of this program, one bus, three stores on disk.
Only the distances are made: what goes between sites takes as long as it would.`
}

type demoNotesCmd struct {
	Site   string `required:"" help:"Where it runs."`
	Store  string `required:"" help:"Folder of the site's store." type:"path"`
	Listen string `required:"" placeholder:"HOST:PORT"`
}

// Run serves notes until it is told to stop.
func (c *demoNotesCmd) Run(con *console) error {
	log, err := con.serverLog()
	if err != nil {
		return err
	}
	st, err := dir.Open(c.Store, dir.Options{})
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(con.ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("notes service: %w", err)
	}
	fmt.Fprintf(con.out, "notes of %s at %s\n", c.Site, l.Addr())
	return notes.New(notes.Options{Site: c.Site, Store: st, Logger: log}).Run(con.ctx, l)
}

type demoPartCmd struct {
	Args []string `arg:"" help:"The verb and its arguments."`
}

// Run runs a verb until it ends or this process's standard input does.
func (c *demoPartCmd) Run(con *console) error {
	ctx, cancel := processes.Attach(con.ctx, os.Stdin)
	defer cancel()
	args := c.Args
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if code := runHooked(ctx, args, con.out, con.err, con.hook); code != 0 {
		return fmt.Errorf("exit code %d", code)
	}
	return nil
}

// Command penstock steers the traffic of a service that runs in several
// clouds: it replays recordings through the whole loop, serves the long-running
// parts, and is the operator's hand (DESIGN §5).
//
// Exit codes: 0 fine, 1 failed, 2 usage. What a person reads goes to standard
// output, logs to standard error.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // Machines without a database of zones know --zone, too.

	"github.com/alecthomas/kong"

	"penstock/pipeline/config"
	"penstock/pipeline/report"
	"penstock/pipeline/topology"
)

// cli is the whole command line; each verb has a file of its own.
type cli struct {
	LogLevel string `help:"Least level of the log lines on standard error: debug, info, warn, error; unless it is given, info of what serves and warn of everything else." enum:",debug,info,warn,error" default:"" env:"PENSTOCK_LOG"`
	JSON     bool   `name:"json" help:"Print for machines instead of people."`

	Replay       replayCmd       `cmd:"" help:"Send recordings through the whole loop on an embedded bus, write a report and exit."`
	Serve        serveCmd        `cmd:"" help:"Run the long-running parts: aggregator, decider, executor."`
	Entry        entryCmd        `cmd:"" help:"Run the entry point of a site: a proxy that finds each owner's data, and publishes what it serves."`
	Redirector   redirectorCmd   `cmd:"" help:"Run the service that tells where owners are."`
	Router       routerCmd       `cmd:"" help:"Put the split in force to HAProxies, Envoys and HTTPRoutes, and tell it to those who ask."`
	Coder        coderCmd        `cmd:"" help:"Serve objects by an S3 API, each cut into chunks in one or several stores."`
	Serverswitch serverswitchCmd `cmd:"" help:"Turn servers on and off as it is decided."`
	Follow       followCmd       `cmd:"" help:"Publish access logs as they grow."`
	Receive      receiveCmd      `cmd:"" help:"Take spans by OTLP, and publish the calls that they tell of."`

	Init   initCmd   `cmd:"" help:"Make the streams and keys on a bus."`
	Import importCmd `cmd:"" help:"Turn access logs, check-ins, recordings or a workload into a recording."`

	Demo       demoCmd       `cmd:"" help:"Show it at work, with real processes on this machine."`
	Experiment experimentCmd `cmd:"" help:"Run a paper's evaluation again, against baselines and the optimum."`

	Status   statusCmd   `cmd:"" help:"What is in force, and how far each part has come."`
	Explain  explainCmd  `cmd:"" help:"Why an owner's data is where it is, or the calls of a component are shared out as they are."`
	Shadow   shadowCmd   `cmd:"" help:"What placement would have brought, over the windows on a bus: nothing is moved."`
	Audit    auditCmd    `cmd:"" help:"Is every event accounted for?"`
	Doctor   doctorCmd   `cmd:"" help:"What would break: bus, permissions, clocks, disks, stores, capacities."`
	Mode     modeCmd     `cmd:"" help:"Switch a kind to observe, advise or act."`
	Freeze   freezeCmd   `cmd:"" help:"Stop decisions of a kind, or of all."`
	Thaw     thawCmd     `cmd:"" help:"Let decisions go on."`
	Rollback rollbackCmd `cmd:"" help:"Undo what was decided after a time, then freeze."`
	Evacuate evacuateCmd `cmd:"" help:"Empty a site within the others' room, and say what remains there."`
	Purge    purgeCmd    `cmd:"" help:"Delete copies that moved away now, not after delete_after."`

	Entries   entriesCmd   `cmd:"" help:"List the entry points that moves wait for, or forget one."`
	Locations locationsCmd `cmd:"" help:"Import, export or verify where owners' data is."`

	Completion completionCmd `cmd:"" help:"Print a completion script for bash or zsh."`

	Config  configCmd  `cmd:"" help:"Check a configuration, or print the defaults."`
	Schema  schemaCmd  `cmd:"" help:"Print the JSON Schemas of what travels."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// errUsage marks errors of the caller's words: exit code 2.
var errUsage = errors.New("usage")

// console is what verbs write to and how.
type console struct {
	ctx      context.Context //nolint:containedctx // One per run of the process; kong binds values, not calls.
	out, err io.Writer
	json     bool
	level    string
	terminal bool
	hook     func(point string) // of tests that kill the process there
}

func main() { os.Exit(runSignalled(os.Args[1:], os.Stdout, os.Stderr, nil)) }

// runSignalled is run as a process: the first signal stops what runs, a second
// one ends the process at once.
func runSignalled(args []string, stdout, stderr io.Writer, hook func(point string)) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return runHooked(ctx, args, stdout, stderr, hook)
}

// run is main without the process: arguments in, exit code out.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runHooked(ctx, args, stdout, stderr, nil)
}

// runHooked tells hook of points on the way, for tests that kill the process
// there.
func runHooked(ctx context.Context, args []string, stdout, stderr io.Writer, hook func(point string)) int {
	var c cli
	exit := -1
	parser, err := kong.New(&c,
		kong.Name("penstock"),
		kong.Description("Steer the traffic of a service that runs in several clouds.\n\n"+examples),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		fmt.Fprintln(stderr, "penstock:", err)
		return 1
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	k, err := parser.Parse(args)
	if exit >= 0 {
		return exit
	}
	if err != nil {
		fmt.Fprintf(stderr, "penstock: %v (penstock --help says what there is)\n", err)
		return 2
	}
	con := &console{ctx: ctx, out: stdout, err: stderr, json: c.JSON, level: c.LogLevel, terminal: isTerminal(stderr), hook: hook}
	err = k.Run(con)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage), errors.Is(err, config.ErrFaults), errors.Is(err, report.ErrLatency), errors.Is(err, topology.ErrOptions):
		fmt.Fprintf(stderr, "penstock: %v\n", err)
		return 2
	default:
		fmt.Fprintf(stderr, "penstock: %v\n", err)
		return 1
	}
}

// isTerminal reports whether a person watches w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

const examples = `Examples:
  penstock import workload infra/examples/paper-day.yaml -o day.parquet
  penstock replay day.parquet --config infra/examples/paper.yaml
  penstock replay access.log.gz --config infra/examples/world.yaml --geoip GeoLite2-City.mmdb
  penstock explain blog
  penstock serve --config penstock.yaml --listen 127.0.0.1:4222`

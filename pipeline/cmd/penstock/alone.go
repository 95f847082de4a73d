package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/rs/zerolog"

	"penstock/infra/telemetry"
	"penstock/pipeline/config"
	"penstock/pipeline/topology"
)

// aloneFlags are those of the verbs that run one part of the data plane.
type aloneFlags struct {
	Config    string `short:"c" required:"" help:"The configuration." type:"existingfile"`
	NATS      string `name:"nats" required:"" help:"Address of the bus: a NATS server or cluster, or a serve with --listen. It need not be there yet." placeholder:"URL" env:"PENSTOCK_NATS"`
	Prefix    string `help:"Keeps several Penstocks apart on one bus."`
	State     string `help:"Folder of what must outlive the process: events that were not sent yet, what was last known. By default penstock-VERB-NAME." type:"path" placeholder:"DIR"`
	Name      string `help:"Tells this process from others, on the bus too; by default from the host's name."`
	Telemetry string `help:"Address of metrics and health instead of the configuration's, or off." placeholder:"HOST:PORT"`
}

// alone reads the configuration and fills in what was left out.
func (f *aloneFlags) alone(con *console, verb, name, does string) (*topology.Alone, error) {
	cfg, err := config.Load(f.Config)
	if err != nil {
		return nil, err
	}
	switch f.Telemetry {
	case "":
	case "off":
		cfg.Telemetry.Listen = ""
	default:
		cfg.Telemetry.Listen = f.Telemetry
	}
	if f.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("a name is needed (--name): %w: %w", errUsage, err)
		}
		f.Name = strings.Trim(host+"-"+name, "-")
	}
	if f.State == "" {
		f.State = "penstock-" + verb + "-" + f.Name
	}
	log, err := con.serverLog()
	if err != nil {
		return nil, err
	}
	for _, n := range cfg.Notes() {
		log.Warn().Msg(n)
	}
	return &topology.Alone{
		Config: cfg, NATS: f.NATS, Prefix: f.Prefix, State: f.State, Name: f.Name, Logger: log,
		Started: func(addr, telemetryAddr string) {
			said := does
			if addr != "" {
				said += " at " + addr
			}
			if telemetryAddr != "" {
				said += "; metrics and health at http://" + telemetryAddr
			}
			fmt.Fprintln(con.out, said)
		},
	}, nil
}

// serverLog is the log of a process that serves: unless a level is asked for, it says when
// it starts and stops.
func (con *console) serverLog() (zerolog.Logger, error) {
	return telemetry.NewLogger(con.err, telemetry.LogOptions{Level: cmp.Or(con.level, "info")})
}

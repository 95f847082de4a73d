package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"penstock/infra/bus"
	"penstock/pipeline/config"
	"penstock/pipeline/report"
	"penstock/pipeline/topology"
	"penstock/producers/replay"
	"penstock/producers/replay/pace"
)

type replayCmd struct {
	Files      []string      `arg:"" help:"Recordings: Parquet, Arrow IPC, CSV, JSON Lines or access logs, plain, gz or zst; several are merged by time." type:"existingfile"`
	Config     string        `short:"c" required:"" help:"The configuration: sites, policy, guardrails." type:"existingfile"`
	Speed      string        `help:"max, or event time over wall time such as 10x." default:"max"`
	MaxLag     time.Duration `help:"Fail a paced run in which a row was sent later than that after its instant; 0 is no limit." default:"0s"`
	Out        string        `help:"Folder of the report." default:"penstock-out" type:"path"`
	State      string        `help:"Folder of bus, stores, journal and cursor; by default state in the folder of the report." type:"path"`
	Friends    string        `help:"Friendships: lines of two users and perhaps a social level." type:"existingfile"`
	Locations  string        `help:"Where owners' data is before the first record: CSV or Parquet as locations export writes it, and perhaps a column bytes, which says how much is stored." type:"existingfile"`
	Route      string        `help:"follow serves each request where the owner's data is (a what-if), recorded where the recording says." enum:",follow,recorded" default:""`
	Disorder   time.Duration `help:"How far out of order records may be." default:"60s"`
	MaxSkew    time.Duration `help:"How far a record may be ahead of the last one before it is taken for one from the future." default:"10m"`
	GeoIP      string        `name:"geoip" help:"mmdb file, or a folder with country ranges and centroids: the place of a client's address." type:"path"`
	OwnerDepth int           `help:"How many segments of an access log's path name the owner." default:"1"`
	Format     string        `help:"Format of all files: parquet, arrow, csv, jsonl, accesslog, or what import accesslog takes; by default told from their content."`
	Zone       string        `help:"Time zone of access logs that name none, such as Europe/Zurich." default:"UTC"`
	RunID      string        `name:"run" help:"Name of the run; by default a hash of the recordings and of the options that change rows or cuts."`
	Strict     bool          `help:"Fail at the first line that cannot be used."`
	Partitions int           `help:"Partitions of the bus, 1 to 25; by default the configuration's."`
	BatchRows  int           `help:"Most rows of a batch; by default the configuration's."`
	Flush      time.Duration `help:"How often fast windows are flushed; by default the configuration's."`
	Until      instant       `help:"End before the first record at or after this time (RFC 3339)." placeholder:"TIME"`
	NoWait     bool          `help:"Do not wait for decisions and moves at the end of each window."`
	NoMover    bool          `help:"Leave the mover out: commands wait on the bus. Needs --no-wait."`
	Apply      bool          `help:"Act on the configured stores instead of ones made for the replay."`
	Fresh      bool          `help:"Start afresh, whatever the state folder holds."`
	Sync       string        `help:"always, or interval: faster, and a power cut may lose acknowledged messages." enum:",always,interval" default:""`
}

// Run replays and prints the summary.
func (c *replayCmd) Run(con *console) error {
	cfg, err := config.Load(c.Config)
	if err != nil {
		return err
	}
	if err := c.override(cfg); err != nil {
		return err
	}
	speed, err := pace.ParseSpeed(c.Speed)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	disorder := c.Disorder
	if disorder == 0 {
		disorder = -1 // None, where 0 is the default.
	}
	r := topology.Replay{
		Files: c.Files, Config: cfg, Out: c.Out, State: c.State, Friends: c.Friends, Locations: c.Locations, GeoIP: c.GeoIP,
		OwnerDepth: c.OwnerDepth, Format: c.Format, Zone: c.Zone, Speed: speed, MaxLag: c.MaxLag, Route: c.Route, Disorder: disorder,
		MaxSkew: c.MaxSkew, RunID: c.RunID, Until: c.Until.Time, Strict: c.Strict, NoWait: c.NoWait, Apply: c.Apply, Fresh: c.Fresh,
		MoverOff: c.NoMover, Logger: con.logger(), Note: func(s string) { fmt.Fprintln(con.err, "note:", s) }, Hook: con.hook,
	}
	if cfg.Bus.Sync == "interval" {
		r.Sync = bus.SyncInterval
	}
	if con.terminal {
		r.Progress = progress(con)
	}
	rep, err := r.Run(con.ctx)
	if rep != nil {
		if perr := c.print(con, rep); perr != nil {
			return errors.Join(err, perr)
		}
	}
	var different *replay.DifferentError
	if errors.As(err, &different) {
		return fmt.Errorf("%w: %w\ngive the options of before to go on with it, or --fresh to drop it", errUsage, err)
	}
	if errors.Is(err, context.Canceled) && con.ctx.Err() != nil {
		return errors.New("stopped; the same command goes on where it was")
	}
	if errors.Is(err, topology.ErrOptions) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}

// override puts options of the command line over those of the file.
func (c *replayCmd) override(cfg *config.Config) error {
	if c.Partitions != 0 {
		cfg.Bus.Partitions = c.Partitions
	}
	if c.BatchRows != 0 {
		cfg.Bus.BatchRows = c.BatchRows
	}
	if c.Flush != 0 {
		cfg.Bus.Flush = config.Duration(c.Flush)
	}
	if c.Sync != "" {
		cfg.Bus.Sync = c.Sync
	}
	switch {
	case cfg.Bus.Partitions < 1 || cfg.Bus.Partitions > bus.MaxPartitions:
		return fmt.Errorf("%w: --partitions %d, expected 1 to %d", errUsage, c.Partitions, bus.MaxPartitions)
	case cfg.Bus.BatchRows < 1 || cfg.Bus.BatchRows > 8192:
		return fmt.Errorf("%w: --batch-rows %d, expected 1 to 8192", errUsage, c.BatchRows)
	case c.NoMover && !c.NoWait:
		return fmt.Errorf("%w: --no-mover needs --no-wait: nobody would answer the moves that a window waits for", errUsage)
	}
	return nil
}

// print writes the summary, or the report itself for machines.
func (c *replayCmd) print(con *console, rep *report.Report) error {
	if con.terminal {
		fmt.Fprint(con.err, "\r\033[K")
	}
	if con.json {
		return json.NewEncoder(con.out).Encode(rep)
	}
	if err := rep.Summary(con.out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(con.out, "report   %s\n", filepath.Join(c.Out, "report.html"))
	return err
}

// progress prints a line that is written over, for a person at a terminal.
func progress(con *console) func(replay.Progress) {
	return func(p replay.Progress) {
		waiting := ""
		if p.Waiting {
			waiting = ", waiting for the decision"
		}
		fmt.Fprintf(con.err, "\r\033[K%d rows, %s, %d windows%s", p.Rows, report.Instant(p.Time), p.Windows, waiting)
	}
}

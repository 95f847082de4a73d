package main

import (
	"errors"
	"fmt"
	"io"

	"penstock/pipeline/experiment"
	"penstock/pipeline/experiment/coding"
	servers "penstock/pipeline/experiment/serving"
	"penstock/pipeline/experiment/splitting"
)

type experimentCmd struct {
	Placement  experimentPlacementCmd  `cmd:"" help:"The evaluation of the placement paper: cases, friend models, baselines and the optimum; tables and plots."`
	Split      experimentSplitCmd      `cmd:"" help:"The evaluation of the request-splitting paper: applications, faults, policies, and greedy against the optimum; tables and plots."`
	Servers    experimentServersCmd    `cmd:"" help:"The evaluation of the paper on request distribution with perceptrons: loads, policies, servers on and off, and a clairvoyant bound; tables and plots."`
	Coding     experimentCodingCmd     `cmd:"" help:"The evaluation of the coded-storage paper: static codes, policies, stores, loads, steps; tables and plots."`
	CodingLive experimentCodingLiveCmd `cmd:"" name:"coding-live" help:"The same sweep at five loads with the real coder over a store with made-up delays, beside the simulation."`
}

type experimentPlacementCmd struct {
	Out   string `help:"Folder for experiment.json and experiment.html; none: only print." type:"path"`
	Seeds int    `help:"Days of each friend model." default:"10"`
	Quick bool   `help:"One day of the standard friend model only, and of what is varied the ends."`
	Data  string `help:"Folder with clouds-skyplane and cloud-regions-coords: the same on measured round trips and prices." type:"existingdir"`
}

// Run runs the experiment. A target that isn't reached is told, and no failure.
func (c *experimentPlacementCmd) Run(con *console) error {
	x := experimentRun{seeds: c.Seeds, quick: c.Quick, out: c.Out, unit: "days", data: "--data", badData: experiment.ErrData}
	return x.run(con, func(seeds int, progress func(done, all int)) (experimentResult, error) {
		params, err := experiment.Default()
		if err != nil {
			return nil, err
		}
		return experiment.Placement(con.ctx, experiment.Options{Params: params, Seeds: seeds, Quick: c.Quick, Data: c.Data, Progress: progress})
	})
}

type experimentSplitCmd struct {
	Out   string `help:"Folder for experiment-split.json and experiment-split.html; none: only print." type:"path"`
	Seeds int    `help:"Draws of arrivals, services, bad spells and random applications." default:"10"`
	Quick bool   `help:"One seed, short natural runs, and two faults of the random application."`
	Data  string `help:"Folder with azure-llm-2023 and nasa-19950801: the same with recorded arrivals." type:"existingdir"`
}

// Run runs the experiment. A target that isn't reached is told, and no failure.
func (c *experimentSplitCmd) Run(con *console) error {
	x := experimentRun{seeds: c.Seeds, quick: c.Quick, out: c.Out, unit: "runs", data: "--data", badData: splitting.ErrData}
	return x.run(con, func(seeds int, progress func(done, all int)) (experimentResult, error) {
		params, err := splitting.Default()
		if err != nil {
			return nil, err
		}
		return splitting.Split(con.ctx, splitting.Options{Params: params, Seeds: seeds, Quick: c.Quick, Data: c.Data, Progress: progress})
	})
}

type experimentServersCmd struct {
	Out   string `help:"Folder for experiment-servers.json and experiment-servers.html; none: only print." type:"path"`
	Seeds int    `help:"Draws of arrivals, pages, sizes and times at stations." default:"5"`
	Quick bool   `help:"One seed, and only the scenarios that are not held out."`
	Data  string `help:"Folder with azure-llm-2023 and nasa-19950801: recorded arrivals and sizes too." type:"existingdir"`
}

// Run runs the experiment. A target that isn't reached is told, and no failure.
func (c *experimentServersCmd) Run(con *console) error {
	x := experimentRun{seeds: c.Seeds, quick: c.Quick, out: c.Out, unit: "seeds of scenarios", data: "--data", badData: servers.ErrData}
	return x.run(con, func(seeds int, progress func(done, all int)) (experimentResult, error) {
		params, err := servers.Default()
		if err != nil {
			return nil, err
		}
		return servers.Serving(con.ctx, servers.Options{Params: params, Seeds: seeds, Quick: c.Quick, Data: c.Data, Progress: progress})
	})
}

type experimentCodingCmd struct {
	Out   string `help:"Folder for experiment-coding.json and experiment-coding.html; none: only print." type:"path"`
	Seeds int    `help:"Draws of arrivals and of the luck of requests." default:"10"`
	Quick bool   `help:"One seed, judged stores and loads only, fewer requests."`
	Sizes string `help:"File of sizes of requests, the last field of each line in bytes, plain or gzip: the same with recorded sizes." type:"existingfile"`
}

// Run runs the experiment. A target that isn't reached is told, and no failure.
func (c *experimentCodingCmd) Run(con *console) error {
	x := experimentRun{seeds: c.Seeds, quick: c.Quick, out: c.Out, unit: "runs", data: "--sizes", badData: coding.ErrSizes}
	return x.run(con, func(seeds int, progress func(done, all int)) (experimentResult, error) {
		params, err := coding.Default()
		if err != nil {
			return nil, err
		}
		return coding.Coding(con.ctx, coding.Options{Params: params, Seeds: seeds, Quick: c.Quick, Sizes: c.Sizes, Progress: progress})
	})
}

// experimentResult is what an experiment shows.
type experimentResult interface {
	JSON() ([]byte, error)
	Text(w io.Writer) error
	Write(dir string) error
}

// experimentRun is what all experiments have in common.
type experimentRun struct {
	seeds   int
	quick   bool
	out     string
	unit    string // of progress
	data    string // the option that names data
	badData error  // wrapped by what is wrong with it
}

// run makes a result, and writes and prints it.
func (x experimentRun) run(con *console, do func(seeds int, progress func(done, all int)) (experimentResult, error)) error {
	if x.seeds < 1 {
		return fmt.Errorf("%w: --seeds: got %d, expected at least 1", errUsage, x.seeds)
	}
	if x.quick {
		x.seeds = 1
	}
	var progress func(done, all int)
	if con.terminal {
		progress = func(done, all int) { fmt.Fprintf(con.err, "\r%d of %d %s", done, all, x.unit) }
		defer fmt.Fprintln(con.err)
	}
	r, err := do(x.seeds, progress)
	if errors.Is(err, x.badData) {
		return fmt.Errorf("%w: %s: %w", errUsage, x.data, err)
	}
	if err != nil {
		return err
	}
	if x.out != "" {
		if err := r.Write(x.out); err != nil {
			return err
		}
	}
	if !con.json {
		return r.Text(con.out)
	}
	body, err := r.JSON()
	if err != nil {
		return err
	}
	_, err = con.out.Write(body)
	return err
}

// Help shows experiments.
func (experimentCmd) Help() string {
	return `Examples:
  penstock experiment placement --out penstock-out
  penstock experiment placement --quick
  penstock experiment placement --data DIR --seeds 3
  penstock experiment split --out penstock-out --seeds 10
  penstock experiment split --quick
  penstock experiment servers --out penstock-out --seeds 20
  penstock experiment coding --out penstock-out
  penstock experiment coding --sizes FILE --seeds 3

What is run stands in infra/examples/experiment, and was fixed before the first
run. No bus is needed, and nothing is moved.`
}

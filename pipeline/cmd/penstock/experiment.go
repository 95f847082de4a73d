package main

import (
	"errors"
	"fmt"
	"io"

	"penstock/pipeline/experiment"
	"penstock/pipeline/experiment/splitting"
)

type experimentCmd struct {
	Placement experimentPlacementCmd `cmd:"" help:"The evaluation of the placement paper: cases, friend models, baselines and the optimum; tables and plots."`
	Split     experimentSplitCmd     `cmd:"" help:"The evaluation of the request-splitting paper: applications, faults, policies, and greedy against the optimum; tables and plots."`
}

type experimentPlacementCmd struct {
	Out   string `help:"Folder for experiment.json and experiment.html; none: only print." type:"path"`
	Seeds int    `help:"Days of each friend model." default:"10"`
	Quick bool   `help:"One day of the standard friend model only, and of what is varied the ends."`
	Data  string `help:"Folder with clouds-skyplane and cloud-regions-coords: the same on measured round trips and prices." type:"existingdir"`
}

// Run runs the experiment. A target that isn't reached is told, and no failure.
func (c *experimentPlacementCmd) Run(con *console) error {
	if c.Seeds < 1 {
		return fmt.Errorf("%w: --seeds: got %d, expected at least 1", errUsage, c.Seeds)
	}
	params, err := experiment.Default()
	if err != nil {
		return err
	}
	o := experiment.Options{Params: params, Seeds: c.Seeds, Quick: c.Quick, Data: c.Data}
	if c.Quick {
		o.Seeds = 1
	}
	if con.terminal {
		o.Progress = func(done, all int) { fmt.Fprintf(con.err, "\r%d of %d days", done, all) }
		defer fmt.Fprintln(con.err)
	}
	r, err := experiment.Placement(con.ctx, o)
	if errors.Is(err, experiment.ErrData) {
		return fmt.Errorf("%w: --data: %w", errUsage, err)
	}
	if err != nil {
		return err
	}
	if c.Out != "" {
		if err := r.Write(c.Out); err != nil {
			return err
		}
	}
	return printResult(con, r)
}

// printResult prints a result for machines or for people.
func printResult(con *console, r interface {
	JSON() ([]byte, error)
	Text(w io.Writer) error
},
) error {
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

type experimentSplitCmd struct {
	Out   string `help:"Folder for experiment-split.json and experiment-split.html; none: only print." type:"path"`
	Seeds int    `help:"Draws of arrivals, services, bad spells and random applications." default:"10"`
	Quick bool   `help:"One seed, short natural runs, and two faults of the random application."`
	Data  string `help:"Folder with azure-llm-2023 and nasa-19950801: the same with recorded arrivals." type:"existingdir"`
}

// Run runs the experiment. A target that isn't reached is told, and no failure.
func (c *experimentSplitCmd) Run(con *console) error {
	if c.Seeds < 1 {
		return fmt.Errorf("%w: --seeds: got %d, expected at least 1", errUsage, c.Seeds)
	}
	params, err := splitting.Default()
	if err != nil {
		return err
	}
	o := splitting.Options{Params: params, Seeds: c.Seeds, Quick: c.Quick, Data: c.Data}
	if c.Quick {
		o.Seeds = 1
	}
	if con.terminal {
		o.Progress = func(done, all int) { fmt.Fprintf(con.err, "\r%d of %d runs", done, all) }
		defer fmt.Fprintln(con.err)
	}
	r, err := splitting.Split(con.ctx, o)
	if errors.Is(err, splitting.ErrData) {
		return fmt.Errorf("%w: --data: %w", errUsage, err)
	}
	if err != nil {
		return err
	}
	if c.Out != "" {
		if err := r.Write(c.Out); err != nil {
			return err
		}
	}
	return printResult(con, r)
}

// Help shows experiments.
func (experimentCmd) Help() string {
	return `Examples:
  penstock experiment placement --out penstock-out
  penstock experiment placement --quick
  penstock experiment placement --data DIR --seeds 3
  penstock experiment split --out penstock-out --seeds 10
  penstock experiment split --quick

What is run stands in infra/examples/experiment, and was fixed before the first
run. No bus is needed, and nothing is moved.`
}

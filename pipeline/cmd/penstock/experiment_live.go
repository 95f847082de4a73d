package main

import (
	"errors"
	"fmt"
	"os"

	"penstock/pipeline/experiment/coding/live"
)

type experimentCodingLiveCmd struct {
	Out   string  `help:"Folder for coding-live.json and coding-live.html; none: only print." type:"path"`
	Seed  uint64  `help:"Draws arrivals, delays and contents." default:"1"`
	Scale float64 `help:"All delays are so many times those of the paper, and rates as much lower: the more, the less the machine's own time counts." default:"2"`
}

// Run runs the sweep, and fails unless all that is promised was kept.
func (c *experimentCodingLiveCmd) Run(con *console) (err error) {
	dir, err := os.MkdirTemp("", "penstock-coding-live-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r, err := live.Run(con.ctx, live.Options{
		Dir: dir, Seed: c.Seed, Scale: c.Scale, Logger: con.logger(),
		Say: func(format string, args ...any) { fmt.Fprintf(con.err, format+"\n", args...) },
	})
	if errors.Is(err, live.ErrOptions) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if r == nil {
		return err
	}
	if c.Out != "" {
		err = errors.Join(err, r.Write(c.Out))
	}
	if !con.json {
		return errors.Join(r.Text(con.out), err)
	}
	body, e := r.JSON()
	if e == nil {
		_, e = con.out.Write(body)
	}
	return errors.Join(e, err)
}

// Help shows the sweep.
func (experimentCodingLiveCmd) Help() string {
	return `Examples:
  penstock experiment coding-live
  penstock experiment coding-live --scale 4 --out penstock-out
  penstock experiment coding-live --seed 7 --json > result.json

The coder is the real one, over a store in memory with the paper's delays; the machine
must have time to spare, or the run is void.`
}

package main

import (
	"errors"
	"fmt"
	"time"

	"penstock/pipeline/demo/coding"
)

type demoCodingCmd struct {
	Out    string  `short:"o" help:"Folder of configurations, logs and the report, which stay there; what an earlier demonstration left in it is removed." default:"penstock-out/coding-demo" type:"path"`
	Fast   bool    `help:"Less than a minute instead of five: a light and a heavy load, and stores that stay as they are."`
	Seed   uint64  `help:"Draws requests, contents, and how long stores take." default:"1"`
	Scale  float64 `help:"All delays are so many times those of the paper, and rates as much lower." default:"2"`
	Writes float64 `help:"Share of requests that overwrite an object." default:"0.05"`
}

// Run shows the demonstration and fails unless all promises were kept.
func (c *demoCodingCmd) Run(con *console) error {
	s := demoScreen(con, 5*time.Second)
	d := coding.Demo{Dir: c.Out, Fast: c.Fast, Seed: c.Seed, Scale: c.Scale, Writes: c.Writes, Attach: attach, Screen: s, Logger: con.logger()}
	r, err := d.Run(con.ctx)
	if errors.Is(err, coding.ErrOptions) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if r == nil {
		return err
	}
	return demoResult(con, s, r, err)
}

// Help shows the demonstration.
func (demoCodingCmd) Help() string {
	return `Examples:
  penstock demo coding
  penstock demo coding --fast --seed 7 -o try
  penstock demo coding --scale 4
  penstock demo coding --fast --json > result.json

Everything is real: a bus with its decider, three coders that clients reach by S3, and
three stores that they reach by S3. Only how long the stores take is made. A run on a
machine that had no time to spare is void.`
}

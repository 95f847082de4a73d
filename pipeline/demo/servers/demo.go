package servers

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"penstock/pipeline/config"
	"penstock/pipeline/demo/screen"
	"penstock/pipeline/demo/servers/backend"
	"penstock/pipeline/demo/stage"
)

// Demo is the demonstration.
type Demo struct {
	// Dir holds configurations, logs, and the report, which stay there. What an earlier
	// demonstration left in it is removed.
	Dir string
	// Fast takes a minute: a shorter day.
	Fast bool
	// Seed draws requests, and how long servers take.
	Seed uint64
	// Day is how long the day of load is: 4 min 30 s, with Fast 55 s.
	Day time.Duration
	// Rate is how many requests a second come by day: 75, with Fast 60.
	Rate float64
	// Policy chooses server and place in its queue: auto.
	Policy string
	// Attach are the arguments before those of each process, which let it end with
	// this one.
	Attach []string
	// Hook are the program and arguments by which servers are turned on and off, before
	// the action.
	Hook   []string
	Screen *screen.Screen
	Logger zerolog.Logger
}

// What is shown, beside the options.
const (
	// workers are those of each server, and the most that Penstock has in service there.
	workers = 6
	// cost is that of a server that is on, a second, in the unit of penalties.
	cost = 1.0
	// initial is how many servers are on at first, and at least.
	initial = 2
	// critical is the potential penalty in the queues that turns a server on.
	critical = 2.0
	// boot is how long a server takes from its start to its first request.
	boot = 500 * time.Millisecond
	// writes is the share of requests for pages that may not be sent twice.
	writes = 0.1
	// files is the share of requests for files.
	files = 0.6
)

// slowness is that of the servers' machines.
var slowness = []float64{1, 1, 1.25, 1.5, 2, 3}

// Class is a class of requests.
type Class struct {
	Name    string        `json:"name"`
	Limit   time.Duration `json:"limit"`
	Penalty float64       `json:"penalty"` // of a second beyond it
}

// classes of requests. The decider, the entry points and the judge all go by these.
var classes = []Class{{backend.Static, 400 * time.Millisecond, 0.5}, {backend.Page, time.Second, 1}}

// classOf is a class by name.
func classOf(name string) *Class {
	return &classes[max(0, slices.IndexFunc(classes, func(c Class) bool { return c.Name == name }))]
}

// marker is the file by which a folder is known as a demonstration's.
const marker = "servers-demo.txt"

// head is its first line.
const head = "# Written by penstock demo servers.\n"

// complete fills in what was left out.
func (d *Demo) complete() error {
	length, rate := 270*time.Second, 75.0
	if d.Fast {
		// The load rises five times as fast, and servers start no faster.
		length, rate = 55*time.Second, 60
	}
	d.Day, d.Rate, d.Policy = cmp.Or(d.Day, length), cmp.Or(d.Rate, rate), cmp.Or(d.Policy, "auto")
	d.Logger = d.Logger.Level(zerolog.WarnLevel)
	switch {
	case d.Day < 5*time.Second || d.Day > 24*time.Hour:
		return fmt.Errorf("day %v, expected 5s to 24h: %w", d.Day, ErrOptions)
	case !(d.Rate >= 1) || d.Rate > 1000:
		return fmt.Errorf("rate %g, expected 1 to 1,000 requests a second: %w", d.Rate, ErrOptions)
	case !slices.Contains(config.ServerPolicies, d.Policy):
		return fmt.Errorf("policy %q, expected one of %v: %w", d.Policy, config.ServerPolicies, ErrOptions)
	}
	dir, err := filepath.Abs(d.Dir)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	d.Dir = dir
	if err := stage.Clear(d.Dir, marker, head); err != nil {
		if errors.Is(err, stage.ErrFolder) {
			err = fmt.Errorf("%w: %w", err, ErrOptions)
		}
		return err
	}
	return nil
}

// cooldown is the least time between two changes of how many servers are on: a day has
// room for 45.
func (d *Demo) cooldown() time.Duration {
	return max(2*time.Second, (d.Day / 45).Round(100*time.Millisecond))
}

// hold is over what time the decider's figures are averaged.
func (d *Demo) hold() time.Duration {
	if d.Day < 2*time.Minute {
		return 2 * time.Second
	}
	return 3 * time.Second
}

package split

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/rs/zerolog"

	policies "penstock/consumers/decider/split"
	"penstock/pipeline/demo/links"
	"penstock/pipeline/demo/screen"
	"penstock/pipeline/demo/services"
	"penstock/pipeline/demo/stage"
)

// Demo is the demonstration.
type Demo struct {
	// Dir holds configurations, logs, and the report, which stay there. What an
	// earlier demonstration left in it is removed.
	Dir string
	// Fast takes a minute and a half: one short fault, two policies, few requests.
	Fast bool
	// Seed draws requests, how long work takes, and when faults begin.
	Seed uint64
	// Policies are compared; the first is the one that promises something. Defaults to
	// greedy, closest and redirect, with Fast to greedy and closest.
	Policies []string
	// Component gets slower by Added at Site: quotes, 300 ms, us-east.
	Component, Site string
	Added           time.Duration
	// Rate is how many requests a second enter at each site: 20, with Fast 10.
	Rate float64
	// Faults is how often, Fault for how long, Pause how long after one nothing
	// happens: 3, 180 s, 150 s, with Fast 1, 50 s, 0. Warm is the time before the
	// first one: 60 s, with Fast 20 s.
	Faults             int
	Warm, Fault, Pause time.Duration
	// RTT is the round trip between the sites; 0 is that of their distance.
	RTT time.Duration
	// Attach are the arguments before those of each process, which let it end with
	// this one.
	Attach []string
	Screen *screen.Screen
	Logger zerolog.Logger
}

// places are the sites, in the order that breaks ties.
var places = []links.Place{
	{Name: "us-east", Lat: 37.3719, Lon: -79.8164},
	{Name: "us-central", Lat: 29.4167, Lon: -98.5},
}

// marker is the file by which a folder is known as a demonstration's.
const marker = "split-demo.txt"

// head is its first line.
const head = "# Written by penstock demo split.\n"

const (
	shortestFault = 50 * time.Second // in which four windows close
	// shortFault is the fault over all of which no quantile says anything: a row that
	// moved within four windows was slow for too much of it.
	shortFault = 2 * time.Minute
)

// complete fills in what was left out.
func (d *Demo) complete() error {
	rate, faults, warm, fault, pause := 20.0, 3, time.Minute, 3*time.Minute, 150*time.Second
	compared := []string{policies.Greedy, policies.Closest, policies.Redirect}
	if d.Fast {
		// Whoever has seen fewer windows can't tell a slow replica from one that gets
		// more than it takes, which is left slowly.
		rate, faults, warm, fault, pause = 10, 1, 40*time.Second, shortestFault, 0
		compared = compared[:2]
	}
	d.Rate, d.Faults = cmp.Or(d.Rate, rate), cmp.Or(d.Faults, faults)
	d.Warm, d.Fault, d.Pause = cmp.Or(d.Warm, warm), cmp.Or(d.Fault, fault), cmp.Or(d.Pause, pause)
	d.Component, d.Site, d.Added = cmp.Or(d.Component, "quotes"), cmp.Or(d.Site, places[0].Name), cmp.Or(d.Added, 300*time.Millisecond)
	if len(d.Policies) == 0 {
		d.Policies = compared
	}
	d.Logger = d.Logger.Level(zerolog.WarnLevel)
	if err := d.check(); err != nil {
		return err
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

// check finds what makes no demonstration.
func (d *Demo) check() error {
	for i, p := range d.Policies {
		if !slices.Contains(policies.Policies, p) || slices.Contains(d.Policies[:i], p) {
			return fmt.Errorf("policy %q, expected different ones of %v: %w", p, policies.Policies, ErrOptions)
		}
	}
	if _, ok := services.Find(d.Component); !ok || d.Component == services.Front {
		return fmt.Errorf("component %q, expected one behind %s: %w", d.Component, services.Front, ErrOptions)
	}
	if d.siteNumber() < 0 {
		return fmt.Errorf("site %q, expected %s or %s: %w", d.Site, places[0].Name, places[1].Name, ErrOptions)
	}
	if d.Rate <= 0 || d.Rate > 1000 || d.Faults < 1 || d.Fault < shortestFault || d.Warm < 2*width || d.Pause < 0 || d.Added < time.Millisecond || d.RTT < 0 {
		return fmt.Errorf("expected up to 1,000 requests a second, a fault or more of at least %v and 1ms, and at least %v before: %w", shortestFault, 2*width, ErrOptions)
	}
	return nil
}

// siteNumber is that of the site with the fault, −1 if there is no such site.
func (d *Demo) siteNumber() int {
	return slices.IndexFunc(places, func(p links.Place) bool { return p.Name == d.Site })
}

// roundTrip is that between two sites.
func (d *Demo) roundTrip(a, b links.Place) time.Duration {
	if a.Name != b.Name && d.RTT > 0 {
		return d.RTT
	}
	return links.Between(a, b)
}

// durations are those of the plan.
func (d *Demo) durations() durations {
	out := durations{faults: d.Faults, warm: d.Warm, fault: d.Fault, pause: d.Pause, phase: width}
	if d.Fast {
		out.phase = 0 // A fault begins with a window, so that fewer seconds do.
	}
	return out
}

// names are those of the sites.
func names() (out []string) {
	for _, p := range places {
		out = append(out, p.Name)
	}
	return out
}

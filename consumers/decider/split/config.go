package split

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"penstock/consumers/decider/settings"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// Values of Config.Policy.
const (
	Greedy           = "greedy"            // the paper's: fill the best combination first
	LP               = "lp"                // least total delay, with curves and egress
	Closest          = "closest"           // the nearest site that is not failing, as by DNS
	Redirect         = "redirect"          // whole requests go to one site
	LocalityFailover = "locality-failover" // the nearest site with capacity, then the next
)

// Policies lists them.
var Policies = []string{Greedy, LP, Closest, Redirect, LocalityFailover}

// Site is a place where replicas run.
type Site struct {
	Name string  `json:"name"`
	Lat  float64 `json:"lat"` // degrees; where nothing was measured, distance stands for delay
	Lon  float64 `json:"lon"`
}

// Step is the largest change of a share in one window, 0 to 1.
type Step struct {
	Down float64 `json:"down"` // away from a replica that got worse
	Up   float64 `json:"up"`   // of any other change
}

// Component is what is known of a component beforehand. One that is not named is
// taken as it is seen.
type Component struct {
	Name string `json:"name"`
	// Sites at which it runs; none: those at which it was seen.
	Sites []string `json:"sites,omitempty"`
	// Capacity in calls a second by site; a site that is not named takes any
	// number, until its delays say otherwise.
	Capacity map[string]float64 `json:"capacity,omitempty"`
	// Pin lets calls go to these sites only; none: to all.
	Pin []string `json:"pin,omitempty"`
	// WritesAt is the site of all calls that write; "": as the rest. The router
	// keeps to it; delays and capacities are learned with it in.
	WritesAt string `json:"writes_at,omitempty"`
	// CallBytes and AnswerBytes are those of a call, for the price of egress.
	CallBytes   int64 `json:"call_bytes,omitempty"`
	AnswerBytes int64 `json:"answer_bytes,omitempty"`
}

// Rule says at which sites the components that a pattern matches may be called.
type Rule struct {
	// Match is a pattern: * is any text, also none, ? any one byte.
	Match string   `json:"match"`
	Sites []string `json:"sites"`
}

// Link is the delay between two sites where none was measured, both ways.
type Link struct {
	From  string        `json:"from"`
	To    string        `json:"to"`
	Delay time.Duration `json:"delay"`
}

// Probing says how what is not known is found out.
type Probing struct {
	// Share of a row's requests that may go out as probes, 0 to 0.1; defaults to
	// 0.1, the most. Below 0: no probes.
	Share float64 `json:"share"`
	// Floor is the least part of the budget of a site that needs probes, relative
	// to an equal part, 0 to 1; defaults to 0.25. The rest goes by 1 ÷ delay.
	Floor float64 `json:"floor"`
}

// Config is what the policy is told. The zero value of a field is its default
// unless the field says otherwise.
type Config struct {
	Policy string `json:"policy"` // defaults to greedy
	// Sites in the order that ends every tie; 1 to 256.
	Sites []Site `json:"sites"`
	// Window is the width of a window, a multiple of 10 s; defaults to 10 s.
	Window time.Duration `json:"window"`
	// History is over how many windows delays and rates are smoothed; defaults to
	// 5, at most 64.
	History int `json:"history"`
	// MinSamples is the least number of calls in History for a row to be decided
	// and for a delay to count as known; defaults to 30.
	MinSamples int64 `json:"min_samples"`
	// Damping is the share of the way to the target that one window goes, above 0,
	// at most 1; defaults to 0.5. Away from what got worse it is 1.
	Damping float64 `json:"damping"`
	// MaxStep defaults to 0.5 down and 0.2 up.
	MaxStep Step `json:"max_step"`
	// Change is by how much a delay, a rate or a capacity must have changed for
	// the plan to be made anew; defaults to 0.1. Below 0: always.
	Change float64 `json:"change"`
	// Margin is by how much another site must be better than the nearest one, as a
	// share of its delay; half of it once calls have left. Defaults to 0.1; below
	// 0: none.
	Margin float64 `json:"margin"`
	// DeadBand is the change of a share that is not worth a command; defaults to
	// 0.02.
	DeadBand float64 `json:"dead_band"`
	// Cooldown is how long a share that went up does not go down again, and the
	// other way round; defaults to 6 windows. Below 0: none.
	Cooldown time.Duration `json:"cooldown"`
	// TTL is after how much time without enough samples a row goes back to its
	// default, and half of it the age at which a table is sent again; defaults to
	// 10 min.
	TTL time.Duration `json:"ttl"`
	// ErrorCost is what a failed call costs, as delay: else a replica that fails
	// at once would look fast. Defaults to 1 s; below 0: nothing.
	ErrorCost time.Duration `json:"error_cost"`
	// Failing is the share of errors from which closest and locality-failover
	// leave a replica; defaults to 0.5.
	Failing float64 `json:"failing"`
	// Resolution is how many parts a whole is cut into; defaults to 10,000.
	Resolution int     `json:"resolution"`
	Probes     Probing `json:"probes"`
	// Components in any order.
	Components []Component `json:"components,omitempty"`
	// Coders are components whose clients have no site: what coders log of them is no
	// call that a table could send elsewhere, and is left out. Calls of a coder with the
	// caller's site are as those of any component.
	Coders []string `json:"coders,omitempty"`
	// Residency: the first rule that matches a component binds it.
	Residency []Rule `json:"residency,omitempty"`
	// Colocate names groups of components: calls between two of a group stay at
	// their site, and a caller of several sends all to the same sites.
	Colocate [][]string `json:"colocate,omitempty"`
	Links    []Link     `json:"links,omitempty"`
	// Egress is US dollars a GB (1e9 B) that leaves a site, by site. MSPerUSD is
	// the delay (ms) that a dollar is worth, of policy lp; 0: money doesn't count.
	Egress   map[string]float64 `json:"egress,omitempty"`
	MSPerUSD float64            `json:"ms_per_usd,omitempty"`
	// EntryScope is the scope of the table of calls that no component makes;
	// defaults to entry.
	EntryScope string `json:"entry_scope"`
}

// withDefaults returns the configuration with defaults in place of zeros, and
// zeros in place of what is below 0 to be none.
func (c Config) withDefaults() Config {
	if c.Policy == "" {
		c.Policy = Greedy
	}
	if c.EntryScope == "" {
		c.EntryScope = control.Outside
	}
	settings.OrElse(&c.Window, window.Delay.Width)
	settings.OrElse(&c.History, 5)
	settings.OrElse(&c.MinSamples, 30)
	settings.OrElse(&c.Damping, 0.5)
	settings.OrElse(&c.MaxStep.Down, 0.5)
	settings.OrElse(&c.MaxStep.Up, 0.2)
	settings.OrElse(&c.Change, 0.1)
	settings.OrElse(&c.Margin, 0.1)
	settings.OrElse(&c.DeadBand, 0.02)
	settings.OrElse(&c.Cooldown, 6*c.Window)
	settings.OrElse(&c.TTL, 10*time.Minute)
	settings.OrElse(&c.ErrorCost, time.Second)
	settings.OrElse(&c.Failing, 0.5)
	settings.OrElse(&c.Resolution, 10_000)
	settings.OrElse(&c.Probes.Share, 0.1)
	settings.OrElse(&c.Probes.Floor, 0.25)
	return c
}

// Validate reports every fault, each with its field; the error wraps ErrConfig.
func (c Config) Validate() error {
	c = c.withDefaults()
	f := new(settings.Faults)
	known := false
	for _, p := range Policies {
		known = known || p == c.Policy
	}
	f.Need(known, "policy", c.Policy, "greedy, lp, closest, redirect or locality-failover")
	f.Need(c.Window > 0 && c.Window%window.Delay.Width == 0, "window", c.Window, "a multiple of 10s")
	f.Need(c.History >= 1 && c.History <= 64, "history", c.History, "1 to 64 windows")
	f.Need(c.MinSamples >= 1, "min_samples", c.MinSamples, "at least 1")
	share := func(field string, v float64) { f.Need(v > 0 && v <= 1, field, v, "more than 0, at most 1") }
	share("damping", c.Damping)
	share("max_step.down", c.MaxStep.Down)
	share("max_step.up", c.MaxStep.Up)
	share("failing", c.Failing)
	f.Need(c.Change < 10 && !math.IsNaN(c.Change), "change", c.Change, "below 10")
	f.Need(c.Margin < 10 && !math.IsNaN(c.Margin), "margin", c.Margin, "below 10")
	f.Need(c.DeadBand < 1 && !math.IsNaN(c.DeadBand), "dead_band", c.DeadBand, "below 1")
	f.Need(c.TTL >= 2*c.Window, "ttl", c.TTL, "at least two windows")
	f.Need(c.Resolution >= 10 && c.Resolution <= 1_000_000, "resolution", c.Resolution, "10 to 1,000,000")
	f.Need(c.Probes.Share <= 0.1, "probes.share", c.Probes.Share, "at most 0.1")
	f.Need(c.Probes.Floor >= 0 && c.Probes.Floor <= 1, "probes.floor", c.Probes.Floor, "0 to 1")
	f.Need(c.MSPerUSD >= 0 && !math.IsInf(c.MSPerUSD, 1), "ms_per_usd", c.MSPerUSD, "0 or more")
	c.checkNames(f)
	return f.Err(ErrConfig)
}

// checkNames checks what names sites and components.
func (c *Config) checkNames(f *settings.Faults) {
	sites := map[string]bool{}
	f.Need(len(c.Sites) > 0 && len(c.Sites) <= control.MaxSplitSites, "sites", len(c.Sites), "1 to 256")
	for i, s := range c.Sites {
		at := fmt.Sprintf("sites[%d]", i)
		f.Need(s.Name != "" && len(s.Name) <= control.MaxID && !sites[s.Name], at+".name", s.Name, "a name of its own of 1 to 1024 bytes")
		f.Need(s.Lat >= -90 && s.Lat <= 90 && s.Lon >= -180 && s.Lon <= 180, at, fmt.Sprint(s.Lat, " ", s.Lon), "degrees")
		sites[s.Name] = true
	}
	site := func(field, name string) { f.Need(sites[name], field, name, "the name of a site") }
	all := func(field string, names []string) {
		for i, n := range names {
			site(fmt.Sprintf("%s[%d]", field, i), n)
		}
	}
	names := map[string]bool{}
	for i, k := range c.Components {
		at := fmt.Sprintf("components[%d]", i)
		f.Need(k.Name != "" && len(k.Name) <= control.MaxID && !names[k.Name] && k.Name != c.EntryScope, at+".name", k.Name, "a name of its own, and not "+c.EntryScope)
		names[k.Name] = true
		all(at+".sites", k.Sites)
		all(at+".pin", k.Pin)
		if k.WritesAt != "" {
			site(at+".writes_at", k.WritesAt)
		}
		for _, n := range slices.Sorted(maps.Keys(k.Capacity)) {
			x := k.Capacity[n]
			site(at+".capacity", n)
			f.Need(x >= 0 && !math.IsInf(x, 1), at+".capacity."+n, x, "0 or more calls a second")
		}
		f.Need(k.CallBytes >= 0 && k.AnswerBytes >= 0, at, "negative bytes", "bytes of 0 or more")
		f.Need(len(c.allowedByConfig(&c.Components[i])) > 0, at, k.Name, "a site that sites, pin and residency leave")
	}
	for i, n := range c.Coders {
		f.Need(n != "" && len(n) <= control.MaxID, fmt.Sprintf("coders[%d]", i), n, "a name of 1 to 1024 bytes")
	}
	for i, r := range c.Residency {
		f.Need(r.Match != "" && len(r.Sites) > 0, fmt.Sprintf("residency[%d]", i), r.Match, "a pattern and sites")
		all(fmt.Sprintf("residency[%d].sites", i), r.Sites)
	}
	for i, g := range c.Colocate {
		f.Need(len(g) > 1, fmt.Sprintf("colocate[%d]", i), len(g), "two components or more")
	}
	for i, l := range c.Links {
		site(fmt.Sprintf("links[%d].from", i), l.From)
		site(fmt.Sprintf("links[%d].to", i), l.To)
		f.Need(l.Delay >= 0, fmt.Sprintf("links[%d].delay", i), l.Delay, "0 or more")
	}
	for _, n := range slices.Sorted(maps.Keys(c.Egress)) {
		x := c.Egress[n]
		site("egress", n)
		f.Need(x >= 0 && !math.IsInf(x, 1), "egress."+n, x, "0 or more dollars a GB")
	}
}

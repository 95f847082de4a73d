package placement

import (
	"errors"
	"fmt"
	"math"
	"time"

	"penstock/schemas/control"
)

// Values of Config.Policy, Config.Place and Config.Traffic.
const (
	TMatch    = "tmatch"    // the paper's
	Optimal   = "optimal"   // least total of the printed objective
	Latest    = "latest"    // a user is where it was last seen
	Mean      = "mean"      // a user is at the mean of where it was seen
	Owner     = "owner"     // traffic of an owner: bytes requested of its data
	Requester = "requester" // traffic of an owner: bytes that it requested
)

// Site is a place that can hold data.
type Site struct {
	Name string  `json:"name"`
	Lat  float64 `json:"lat"` // degrees, −90 to 90
	Lon  float64 `json:"lon"` // degrees, −180 to 180
	// Capacity is the traffic that the site takes without queueing, in bytes a
	// window, both ways. At least 1.
	Capacity int64 `json:"capacity"`
}

// Limits bound what one window may move; what they hold back is a reason.
type Limits struct {
	Moves int   `json:"moves,omitempty"` // moves a window; 0: no limit
	Bytes int64 `json:"bytes,omitempty"` // stored bytes moved a window; 0: no limit
}

// Rule says which sites may hold the data of the owners that a pattern matches.
type Rule struct {
	// Match is a pattern of owners: * is any text, also none, ? any one byte,
	// everything else is itself.
	Match string   `json:"match"`
	Sites []string `json:"sites"`
}

// Friend is a line of a friends file: user's social level with owner before
// anything was seen. Undirected friendships are two of them.
type Friend struct {
	Owner string `json:"owner"`
	User  string `json:"user"`
	Level int64  `json:"level,omitempty"` // 0: none given, counts as 1
}

// Objective is what policy optimal makes least, in units of weight: one is the
// difference between an owner's best site and its worst, with alpha + beta = 1.
// The zero Objective is the default one. In any other, an Overload of 0 is its
// default and the other fields are what they are.
type Objective struct {
	// Overload is the weight of as much traffic over a capacity as a mean owner
	// has (all traffic ÷ owners with traffic); defaults to 100. Greater than 0.
	Overload float64 `json:"overload"`
	// PerGB is the weight of moving 1 GB (1e9 B); defaults to 1.
	PerGB float64 `json:"per_gb"`
	// PerUSD is the weight of a US dollar of egress; defaults to 1.
	PerUSD float64 `json:"per_usd"`
	// Margin is the weight by which another site must be better than where an
	// owner's data is; defaults to 0.02. New owners, and those whose site is being
	// emptied, don't pay it.
	Margin float64 `json:"margin"`
}

// withDefaults returns the objective with defaults in place of zeros.
func (o Objective) withDefaults() Objective {
	if o == (Objective{}) {
		return Objective{Overload: 100, PerGB: 1, PerUSD: 1, Margin: 0.02}
	}
	if o.Overload == 0 {
		o.Overload = 100
	}
	return o
}

// Config is what the policy is told. The zero value of a field is its default
// unless the field says otherwise.
type Config struct {
	// Sites in the order that ends every tie. At least one.
	Sites []Site `json:"sites"`
	// Window is the width of a window; defaults to 1 h.
	Window time.Duration `json:"window"`
	// Alpha weighs distance, Beta social weight (PAPERS §1.2, formula 3). Both
	// finite, not negative, and not both 0; their sum need not be 1, since only
	// their ratio decides. Both 0 defaults to 0.3 and 0.7.
	Alpha float64 `json:"alpha"`
	Beta  float64 `json:"beta"`
	// Headroom is the share of a capacity that is kept free, 0 to below 1.
	Headroom float64 `json:"headroom"`
	// TieTolerance is how much greater than the least a weight may be and still
	// tie with it, in units of a normalised weight; at least 0.
	TieTolerance float64 `json:"tie_tolerance"`
	// Place is latest (default of tmatch) or mean (default of optimal).
	Place string `json:"place"`
	// Traffic is owner (default) or requester.
	Traffic string `json:"traffic"`
	Limits  Limits `json:"limits"`
	// Cooldown is the event time after a move of an owner's data in which it
	// isn't moved again; 0: none.
	Cooldown time.Duration `json:"cooldown"`
	// MinRequests is the least number of requests in a window that is decided;
	// a window without any is never decided.
	MinRequests int64 `json:"min_requests"`
	// Residency: the first rule that matches an owner binds it; an owner without
	// one may be anywhere.
	Residency []Rule `json:"residency,omitempty"`
	// Friends are social levels from before the first window.
	Friends []Friend `json:"friends,omitempty"`
	// Locations are imported: where owners' data is at the beginning.
	Locations map[string]control.Location `json:"locations,omitempty"`
	// Stored is how many bytes are stored, at the beginning, of owners that
	// Locations has; absent ones have 0.
	Stored map[string]int64 `json:"stored,omitempty"`
	// Policy is tmatch (default) or optimal. In canonical JSON tmatch isn't
	// written, so that its configurations have the digests that they had.
	Policy string `json:"policy,omitempty"`
	// Objective is what optimal makes least, and by what LastPlan measures either
	// policy.
	Objective Objective `json:"objective,omitzero"`
	// Egress is US dollars a GB (1e9 B) that leaves a site, by site; none: 0.
	Egress map[string]float64 `json:"egress,omitempty"`
	// BackOff is for how many windows at most an owner is held whose moves fail:
	// 1, 2, 4 and so on after each failure in a row. 0: 64 of optimal; tmatch does
	// not hold it.
	BackOff int `json:"back_off,omitempty"`
}

// withDefaults returns the configuration with defaults in place of zeros.
func (c Config) withDefaults() Config {
	if c.Window == 0 {
		c.Window = time.Hour
	}
	if c.Alpha == 0 && c.Beta == 0 {
		c.Alpha, c.Beta = 0.3, 0.7
	}
	if c.Policy == TMatch {
		c.Policy = ""
	}
	if c.Place == "" {
		c.Place = Latest
		if c.Policy == Optimal {
			c.Place = Mean
		}
	}
	if c.Policy == Optimal {
		c.Objective = c.Objective.withDefaults()
		if c.BackOff == 0 {
			c.BackOff = maxBackOff
		}
	}
	if c.Traffic == "" {
		c.Traffic = Owner
	}
	return c
}

// faults collects what is wrong with a configuration.
type faults []error

func (f *faults) add(field string, got any, expected string) {
	*f = append(*f, fmt.Errorf("%s: got %v, expected %s", field, got, expected))
}

// Validate returns all faults of the configuration, each with its field and
// what was expected, in one error that wraps ErrConfig; nil if there are none.
func (c *Config) Validate() error {
	d := c.withDefaults()
	var f faults
	known := d.checkSites(&f)
	d.checkWeights(&f)
	d.checkGuardrails(&f)
	d.checkObjective(&f, known)
	d.checkOwners(&f, known)
	if len(f) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrConfig, errors.Join(f...))
}

func (c *Config) checkSites(f *faults) map[string]bool {
	known := make(map[string]bool, len(c.Sites))
	if len(c.Sites) == 0 || len(c.Sites) > maxSites {
		f.add("sites", len(c.Sites), fmt.Sprintf("1 to %d sites", maxSites))
	}
	for i, s := range c.Sites {
		at := fmt.Sprintf("sites[%d]", i)
		if s.Name == "" {
			f.add(at+".name", `""`, "a name")
		}
		if known[s.Name] {
			f.add(at+".name", s.Name, "a name that no other site has")
		}
		known[s.Name] = true
		if !(s.Lat >= -90 && s.Lat <= 90) {
			f.add(at+".lat", s.Lat, "degrees from -90 to 90")
		}
		if !(s.Lon >= -180 && s.Lon <= 180) {
			f.add(at+".lon", s.Lon, "degrees from -180 to 180")
		}
		if s.Capacity < 1 {
			f.add(at+".capacity", s.Capacity, "at least 1 byte a window")
		}
	}
	return known
}

func (c *Config) checkWeights(f *faults) {
	if !(c.Alpha >= 0) || math.IsInf(c.Alpha, 0) {
		f.add("alpha", c.Alpha, "a finite number of at least 0 (with beta not 0, alpha may be 0)")
	}
	if !(c.Beta >= 0) || math.IsInf(c.Beta, 0) {
		f.add("beta", c.Beta, "a finite number of at least 0 (with alpha not 0, beta may be 0)")
	}
	if c.Alpha+c.Beta > maxWeight {
		f.add("alpha + beta", c.Alpha+c.Beta, fmt.Sprintf("at most %v: only the ratio decides", maxWeight))
	}
	if !(c.Headroom >= 0 && c.Headroom < 1) {
		f.add("headroom", c.Headroom, "a share from 0 to below 1")
	}
	if !(c.TieTolerance >= 0 && c.TieTolerance <= maxWeight) {
		f.add("tie_tolerance", c.TieTolerance, fmt.Sprintf("a number from 0 to %v", maxWeight))
	}
	if c.Place != Latest && c.Place != Mean {
		f.add("place", c.Place, "latest or mean")
	}
	if c.Traffic != Owner && c.Traffic != Requester {
		f.add("traffic", c.Traffic, "owner or requester")
	}
}

func (c *Config) checkGuardrails(f *faults) {
	if c.Window < time.Second || c.Window%time.Second != 0 {
		f.add("window", c.Window, "whole seconds, at least 1s")
	}
	if c.Cooldown < 0 {
		f.add("cooldown", c.Cooldown, "at least 0")
	}
	if c.Limits.Moves < 0 {
		f.add("limits.moves", c.Limits.Moves, "at least 0 (0: no limit)")
	}
	if c.Limits.Bytes < 0 {
		f.add("limits.bytes", c.Limits.Bytes, "at least 0 (0: no limit)")
	}
	if c.MinRequests < 0 {
		f.add("min_requests", c.MinRequests, "at least 0")
	}
	if c.BackOff < 0 || c.BackOff > maxBackOff {
		f.add("back_off", c.BackOff, fmt.Sprintf("0 to %d windows", maxBackOff))
	}
}

func (c *Config) checkObjective(f *faults, known map[string]bool) {
	if c.Policy != "" && c.Policy != Optimal {
		f.add("policy", c.Policy, "tmatch or optimal")
	}
	o := c.Objective.withDefaults()
	if !(o.Overload > 0 && o.Overload <= maxWeight) {
		f.add("objective.overload", o.Overload, fmt.Sprintf("a number above 0, at most %v", maxWeight))
	}
	for _, w := range []struct {
		field string
		v     float64
	}{{"per_gb", o.PerGB}, {"per_usd", o.PerUSD}, {"margin", o.Margin}} {
		if !(w.v >= 0 && w.v <= maxWeight) {
			f.add("objective."+w.field, w.v, fmt.Sprintf("a number from 0 to %v", maxWeight))
		}
	}
	for _, site := range sortedKeys(c.Egress) {
		at := fmt.Sprintf("egress[%.80q]", site)
		if !known[site] {
			f.add(at, site, "the name of a site")
		}
		if usd := c.Egress[site]; !(usd >= 0 && usd <= maxWeight) {
			f.add(at, usd, fmt.Sprintf("US dollars a GB, from 0 to %v", maxWeight))
		}
	}
}

func (c *Config) checkOwners(f *faults, known map[string]bool) {
	if len(c.Residency) > math.MaxUint16-1 {
		f.add("residency", len(c.Residency), "fewer than 65,535 rules")
	}
	for i, r := range c.Residency {
		at := fmt.Sprintf("residency[%d]", i)
		if r.Match == "" {
			f.add(at+".match", `""`, "a pattern of owners")
		}
		if len(r.Sites) == 0 {
			f.add(at+".sites", "none", "at least one site")
		}
		for j, s := range r.Sites {
			if !known[s] {
				f.add(fmt.Sprintf("%s.sites[%d]", at, j), s, "the name of a site")
			}
		}
	}
	for i, fr := range c.Friends {
		at := fmt.Sprintf("friends[%d]", i)
		if fr.Owner == "" || fr.User == "" || fr.Owner == fr.User {
			f.add(at, fmt.Sprintf("owner %.80q, user %.80q", fr.Owner, fr.User), "two names that differ")
		}
		if fr.Level < 0 {
			f.add(at+".level", fr.Level, "at least 0")
		}
	}
	for _, owner := range sortedKeys(c.Locations) {
		l, at := c.Locations[owner], fmt.Sprintf("locations[%.80q]", owner)
		if owner == "" {
			f.add(at, `""`, "an owner")
		}
		if !known[l.Site] {
			f.add(at+".site", l.Site, "the name of a site")
		}
	}
	for _, owner := range sortedKeys(c.Stored) {
		if _, located := c.Locations[owner]; !located || c.Stored[owner] < 0 {
			f.add(fmt.Sprintf("stored[%.80q]", owner), c.Stored[owner], "0 or more, of an owner of locations")
		}
	}
}

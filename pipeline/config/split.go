package config

import (
	"slices"
	"time"
)

// Component is a part of the service whose calls are split over sites (DESIGN §4.2).
type Component struct {
	Name string `yaml:"name"`
	// Servers are its addresses by site, for entry points and for those who ask for
	// the split. Those of entry.component stand in sites[].servers.
	Servers map[string][]string `yaml:"servers"`
	// Sites at which it runs, where servers do not say so.
	Sites []string `yaml:"sites"`
	// Hosts are the names by which calls ask for it, exact or *.SUFFIX.
	Hosts []string `yaml:"hosts"`
	// Path is a pattern of the paths that are for it, such as /cart/**.
	Path string `yaml:"path"`
	// Public lets calls from outside reach it by Hosts or Path.
	Public bool `yaml:"public"`
	// Capacity in calls a second by site; a site that is not named takes any number,
	// until its delays say otherwise.
	Capacity map[string]float64 `yaml:"capacity"`
	// Pin lets calls go to these sites only.
	Pin []string `yaml:"pin"`
	// WritesAt is the site of all calls that write.
	WritesAt string `yaml:"writes_at"`
	// CallBytes and AnswerBytes are those of a call, for the price of egress.
	CallBytes   Size `yaml:"call_bytes"`
	AnswerBytes Size `yaml:"answer_bytes"`
}

// Split is the kind of DESIGN §4.2. It is decided if there are components.
type Split struct {
	Policy string `yaml:"policy"`
	// Window is the width of a window, a multiple of 10 s.
	Window Duration `yaml:"window"`
	// History is over how many windows delays and rates are smoothed.
	History int `yaml:"history"`
	// MinSamples is the least number of calls in History for a row to be decided.
	MinSamples int  `yaml:"min_samples"`
	MaxStep    Step `yaml:"max_step"`
	// Damping is the share of the way to the target that one window goes.
	Damping float64 `yaml:"damping"`
	// Change is by how much a delay, a rate or a capacity must have changed for a new
	// plan; 0: a new plan each window.
	Change float64 `yaml:"change"`
	// Margin is by how much another site must be better than the nearest.
	Margin float64 `yaml:"margin"`
	// DeadBand is the change of a share that is not worth a command.
	DeadBand float64 `yaml:"dead_band"`
	// Cooldown is how long a share that rose does not fall, and the other way round;
	// auto is six windows.
	Cooldown AutoDuration `yaml:"cooldown"`
	// TTL is after how long without enough samples a row goes back to its default.
	TTL Duration `yaml:"ttl"`
	// ErrorCost is what a failed call costs, as delay.
	ErrorCost Duration `yaml:"error_cost"`
	// Failing is the share of errors from which closest and locality-failover leave
	// a replica.
	Failing float64 `yaml:"failing"`
	// Resolution is how many parts a whole is cut into.
	Resolution int     `yaml:"resolution"`
	Probes     Probing `yaml:"probes"`
	// Colocate names groups of components that are served at one site together.
	Colocate [][]string `yaml:"colocate"`
	// Residency: the first rule that matches a component binds it to sites.
	Residency []Residency `yaml:"residency"`
	// Links are delays between sites where none was measured, both ways.
	Links []SplitLink `yaml:"links"`
	// MSPerUSD is the delay (ms) that a dollar of egress is worth, of policy lp.
	MSPerUSD float64 `yaml:"ms_per_usd"`
}

// Step is the largest change of a ratio a period.
type Step struct {
	Down float64 `yaml:"down"`
	Up   float64 `yaml:"up"`
}

// Probing says how what is not known is found out.
type Probing struct {
	// Share of a row's requests that may go out as probes; 0: none.
	Share float64 `yaml:"share"`
	// Floor is the least part of a site's probes, relative to an equal part.
	Floor float64 `yaml:"floor"`
}

// SplitLink is the delay between two sites.
type SplitLink struct {
	From  string   `yaml:"from"`
	To    string   `yaml:"to"`
	Delay Duration `yaml:"delay"`
}

// Session says what keeps a client's calls at one site.
type Session struct {
	// Cookie is the name of a cookie that the entry point sets, Header that of a
	// header of the client's; at most one of them.
	Cookie string `yaml:"cookie"`
	Header string `yaml:"header"`
	// TTL is how long the cookie lasts.
	TTL Duration `yaml:"ttl"`
}

func defaultSplit() Split {
	return Split{
		Policy: "greedy", Window: Duration(10 * time.Second), History: 5, MinSamples: 30, MaxStep: Step{Down: 0.5, Up: 0.2},
		Damping: 0.5, Change: 0.1, Margin: 0.1, DeadBand: 0.02, Cooldown: AutoDuration{Auto: true}, TTL: Duration(10 * time.Minute),
		ErrorCost: Duration(time.Second), Failing: 0.5, Resolution: 10_000, Probes: Probing{Share: 0.1, Floor: 0.25},
	}
}

// Splits says whether anything is split.
func (c *Config) Splits() bool { return len(c.Components) > 0 }

// Component returns the component of that name, nil if there is none.
func (c *Config) Component(name string) *Component {
	for i := range c.Components {
		if c.Components[i].Name == name {
			return &c.Components[i]
		}
	}
	return nil
}

// ServersOf returns the addresses of a component at a site.
func (c *Config) ServersOf(component, site string) []string {
	if s := c.Site(site); component == c.Entry.Component && s != nil {
		return s.Servers
	}
	if k := c.Component(component); k != nil {
		return k.Servers[site]
	}
	return nil
}

// SitesOf returns the sites at which a component is said to run, in the order of the
// sites.
func (c *Config) SitesOf(component string) []string {
	var out []string
	k := c.Component(component)
	for _, s := range c.Sites {
		if len(c.ServersOf(component, s.Name)) > 0 || k != nil && slices.Contains(k.Sites, s.Name) {
			out = append(out, s.Name)
		}
	}
	return out
}

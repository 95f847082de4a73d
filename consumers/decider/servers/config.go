package servers

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"penstock/consumers/decider/servers/switching"
	"penstock/consumers/decider/settings"
	"penstock/schemas/control"
	"penstock/schemas/window"
)

// The policies.
const (
	// None never changes how many servers run.
	None = "none"
	// Penalty turns servers on and off by penalties and cost.
	Penalty = "penalty"
	// Forecast does so too, and turns servers on before a peak.
	Forecast = "forecast"
)

// Server is a server of a zone.
type Server struct {
	// Name as to_server and gauges have it; of one server at a site only.
	Name string `json:"name"`
	// Slots is the most requests in service at it (M); 0: Config.Slots.
	Slots int `json:"slots,omitempty"`
	// Cost of it in cost units per second; 0: Config.ServerCost.
	Cost float64 `json:"cost,omitempty"`
	// Off says that it is off before anything was decided.
	Off bool `json:"off,omitempty"`
}

// Zone is a pool of servers.
type Zone struct {
	Name    string   `json:"name"`
	Servers []Server `json:"servers"`
}

// Site is a site with servers.
type Site struct {
	Name  string `json:"name"`
	Zones []Zone `json:"zones"`
	// Least and Most servers that run; 0: Config's, as far as the site has them.
	Least int `json:"least,omitempty"`
	Most  int `json:"most,omitempty"`
}

// Class is a class of requests.
type Class struct {
	Name string `json:"name"`
	// Limit of the response time; defaults to 1 s. A request that no server got is as late.
	Limit time.Duration `json:"limit"`
	// Penalty in cost units per second of lateness; defaults to Config.Penalty. Below 0: none.
	Penalty float64 `json:"penalty"`
}

// Config is what the policy is told. The zero value of a field is its default unless the
// field says otherwise. Package switching says what the fields from Critical on mean.
type Config struct {
	Policy string `json:"policy"` // none, penalty or forecast; defaults to penalty
	// Coders are servers of no site: what coders log of their clients' requests is none of
	// this policy's concern, and is left out.
	Coders []string `json:"coders,omitempty"`
	// Sites in the order of commands; 1 to 1024.
	Sites []Site `json:"sites"`
	// Window is the width of a window, a multiple of 1 s; defaults to 1 s.
	Window time.Duration `json:"window"`
	// Classes of requests; of another class Penalty, and a limit of 1 s.
	Classes []Class `json:"classes,omitempty"`
	// Penalty in cost units per second of lateness; defaults to 1.
	Penalty float64 `json:"penalty"`
	// Slots of a server; defaults to 16.
	Slots int `json:"slots"`
	// ServerCost in cost units per second; defaults to 1.
	ServerCost float64 `json:"server_cost"`

	// Critical defaults to ten times ServerCost.
	Critical    float64       `json:"critical"`
	Hysteresis  float64       `json:"hysteresis"`  // defaults to 0.2
	Utilisation float64       `json:"utilisation"` // defaults to 0.7
	Hold        int           `json:"hold"`        // windows; defaults to 3
	Cooldown    time.Duration `json:"cooldown"`    // defaults to 1 min; below 0: none
	StartDelay  time.Duration `json:"start_delay"` // defaults to 10 s; below 0: none
	Least       int           `json:"least"`       // of a site; defaults to 1
	Most        int           `json:"most"`        // of a site; 0: all
	MostUp      int           `json:"most_up"`     // defaults to 4
	Retry       time.Duration `json:"retry"`       // defaults to 10 min
	MinSamples  int64         `json:"min_samples"` // defaults to 10
	WeightStep  float64       `json:"weight_step"` // a window; defaults to 0.1
	Season      time.Duration `json:"season"`      // a day; defaults to 24 h

	// WeightChange is by how much a zone's share must have changed for another table;
	// defaults to 0.02. Below 0: any change.
	WeightChange float64 `json:"weight_change"`
	// TTL is how long a table is good for; one is sent again after half of it.
	// Defaults to 10 min.
	TTL time.Duration `json:"ttl"`
}

// withDefaults returns the configuration with defaults in place of zeros.
func (c Config) withDefaults() Config {
	if c.Policy == "" {
		c.Policy = Penalty
	}
	settings.OrElse(&c.Window, window.Service.Width)
	settings.OrElse(&c.Penalty, 1)
	settings.OrElse(&c.Slots, 16)
	settings.OrElse(&c.ServerCost, 1)
	settings.OrElse(&c.Critical, 10*c.ServerCost)
	settings.OrElse(&c.Hysteresis, 0.2)
	settings.OrElse(&c.Utilisation, 0.7)
	settings.OrElse(&c.Hold, 3)
	settings.OrElse(&c.Cooldown, time.Minute)
	settings.OrElse(&c.StartDelay, 10*time.Second)
	settings.OrElse(&c.Least, 1)
	settings.OrElse(&c.MostUp, 4)
	settings.OrElse(&c.Retry, 10*time.Minute)
	settings.OrElse(&c.MinSamples, 10)
	settings.OrElse(&c.WeightStep, 0.1)
	settings.OrElse(&c.Season, 24*time.Hour)
	settings.OrElse(&c.WeightChange, 0.02)
	settings.OrElse(&c.TTL, 10*time.Minute)
	classes := make([]Class, len(c.Classes))
	for i, x := range c.Classes {
		settings.OrElse(&x.Limit, time.Second)
		settings.OrElse(&x.Penalty, c.Penalty)
		classes[i] = x
	}
	if c.Classes != nil {
		c.Classes = classes
	}
	return c
}

// Validate reports every fault, each with its field; the error wraps ErrConfig.
func (c Config) Validate() error {
	c = c.withDefaults()
	f := new(settings.Faults)
	f.Need(c.Policy == None || c.Policy == Penalty || c.Policy == Forecast, "policy", c.Policy, "none, penalty or forecast")
	f.Need(c.Window > 0 && c.Window%window.Service.Width == 0, "window", c.Window, "a multiple of 1s")
	f.Need(c.Penalty > 0 && c.Penalty <= most, "penalty", c.Penalty, "above 0, at most 1e9")
	f.Need(c.Slots >= 1 && c.Slots <= 1<<20, "slots", c.Slots, "1 to 1,048,576")
	f.Need(c.ServerCost > 0 && c.ServerCost <= most, "server_cost", c.ServerCost, "above 0, at most 1e9")
	f.Need(c.Least >= 1, "least", c.Least, "at least 1")
	f.Need(c.Most == 0 || c.Most >= c.Least, "most", c.Most, "least or more, 0: all")
	f.Need(c.WeightChange < 1, "weight_change", c.WeightChange, "below 1")
	f.Need(c.TTL >= 2*c.Window, "ttl", c.TTL, "at least two windows")
	for i, n := range c.Coders {
		f.Need(usable(n), fmt.Sprintf("coders[%d]", i), n, "a name of 1 to 1024 bytes")
	}
	names := map[string]bool{}
	for i := range c.Classes {
		x, at := &c.Classes[i], fmt.Sprintf("classes[%d]", i)
		f.Need(usable(x.Name) && !names[x.Name], at+".name", x.Name, "a name of its own of 1 to 1024 bytes")
		f.Need(x.Limit > 0, at+".limit", x.Limit, "above 0")
		f.Need(x.Penalty <= most, at+".penalty", x.Penalty, "at most 1e9")
		names[x.Name] = true
	}
	f.Need(len(c.Sites) > 0 && len(c.Sites) <= 1024, "sites", len(c.Sites), "1 to 1024")
	sites := map[string]bool{}
	for i := range c.Sites {
		x, at := &c.Sites[i], fmt.Sprintf("sites[%d]", i)
		f.Need(usable(x.Name) && !sites[x.Name], at+".name", x.Name, "a name of its own of 1 to 1024 bytes")
		sites[x.Name] = true
		c.checkSite(f, at, x)
	}
	return errors.Join(f.Err(ErrConfig), c.checkRules())
}

// usable says whether a name can be a site's, zone's, server's or class's.
func usable(name string) bool {
	return name != "" && len(name) <= control.MaxID && utf8.ValidString(name)
}

// checkRules reports what no rule can be made with, of the first site of which that is so:
// it mostly is of all.
func (c *Config) checkRules() error {
	for i := range c.Sites {
		if err := c.options(&c.Sites[i]).Validate(); len(c.Sites[i].Zones) > 0 && err != nil {
			return fmt.Errorf("%w: sites[%d]: %w", ErrConfig, i, err)
		}
	}
	return nil
}

// most is the greatest cost and penalty.
const most = 1e9

func (c *Config) checkSite(f *settings.Faults, at string, x *Site) {
	f.Need(len(x.Zones) > 0 && len(x.Zones) <= control.MaxZones, at+".zones", len(x.Zones), "1 to 256")
	zones, servers, on := map[string]bool{}, map[string]bool{}, false
	for j := range x.Zones {
		z, at := &x.Zones[j], fmt.Sprintf("%s.zones[%d]", at, j)
		f.Need(usable(z.Name) && !zones[z.Name], at+".name", z.Name, "a name of its own of 1 to 1024 bytes")
		f.Need(len(z.Servers) > 0, at+".servers", len(z.Servers), "at least one")
		zones[z.Name] = true
		for k, s := range z.Servers {
			f.Need(usable(s.Name) && !servers[s.Name], fmt.Sprintf("%s.servers[%d].name", at, k), s.Name, "a name of its own of 1 to 1024 bytes")
			servers[s.Name], on = true, on || !s.Off
		}
	}
	f.Need(on, at+".zones", "no server that is on", "at least one that is on at first")
}

// options are those of a site's rule.
func (c *Config) options(x *Site) switching.Options {
	o := switching.Options{
		Fixed: c.Policy == None, Forecast: c.Policy == Forecast, Cost: c.ServerCost, Critical: c.Critical,
		Hysteresis: c.Hysteresis, Utilisation: c.Utilisation, Hold: c.Hold, Period: c.Window, Cooldown: c.Cooldown,
		StartDelay: c.StartDelay, MostUp: c.MostUp, Retry: c.Retry, MinSamples: c.MinSamples, WeightStep: c.WeightStep, Season: c.Season,
	}
	for z := range x.Zones {
		for _, s := range x.Zones[z].Servers {
			settings.OrElse(&s.Slots, c.Slots)
			o.Servers = append(o.Servers, switching.Server{Zone: z, Slots: s.Slots, Cost: s.Cost})
		}
	}
	n := len(o.Servers)
	if o.Least = x.Least; o.Least == 0 {
		o.Least = min(c.Least, n)
	}
	if o.Most = x.Most; o.Most == 0 && c.Most > 0 {
		o.Most = max(o.Least, min(c.Most, n))
	}
	return o
}

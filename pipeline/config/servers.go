package config

import (
	"maps"
	"net"
	"net/url"
	"slices"
	"time"
)

// Servers is the kind of DESIGN §4.3: which server of a site, and which place in its
// queue, a request of entry.component gets, and which servers are on. It is steered if
// there are classes.
type Servers struct {
	// Policy chooses server and place: A1, A2 and A3 are the paper's.
	Policy string `yaml:"policy"`
	// Zone is how a zone of the site is chosen, within the weights in force: by penalty
	// per request, or load.
	Zone string `yaml:"zone"`
	// Window is the width of a window, a multiple of 1 s.
	Window Duration `yaml:"window"`
	// InService is the most requests in service at a server, over all entry points of
	// its site; Queue the most that wait for it at one of them.
	InService int `yaml:"in_service"`
	Queue     int `yaml:"queue"`
	// Ramp is in what time a new server comes to its full share.
	Ramp Duration `yaml:"ramp"`
	// Trial is after how long without a request a server that looks slow has one all the
	// same, so that it is found when it is fast again; 0: never.
	Trial Duration `yaml:"trial"`
	// Classes of requests, as entry.class names them, each with its limit and penalty.
	// The class other is that of all that is not listed.
	Classes map[string]Class `yaml:"classes"`
	// ServerCost is that of a server that is on, a second, in the unit of penalties.
	ServerCost float64 `yaml:"server_cost"`
	// TTL is how long a table is good for.
	TTL Duration `yaml:"ttl"`
	// Zones are pools of a site's servers behind one switch. Servers that none lists are
	// one of the site's own name.
	Zones []Zone `yaml:"zones"`
	// Switching turns servers on and off.
	Switching Switching `yaml:"switching"`
}

// OtherClass is the class of requests that no other lists.
const OtherClass = "other"

// Class is the deadline and penalty of a class of requests.
type Class struct {
	// TMax is the limit of the response time; Penalty is what each second beyond it
	// costs.
	TMax    Duration `yaml:"t_max"`
	Penalty float64  `yaml:"penalty"`
	// Kind is static (a file) or dynamic (a program answers); empty: static for the class
	// static, else dynamic.
	Kind string `yaml:"kind"`
}

// Zone is a pool of servers.
type Zone struct {
	Site string `yaml:"site"`
	Name string `yaml:"name"`
	// Servers by name: HOST:PORT as in sites[].servers.
	Servers []string `yaml:"servers"`
}

// Switching is when servers are turned on and off, and how.
type Switching struct {
	// Policy is none (all are on), penalty, the paper's rule, or forecast: on before
	// the peak.
	Policy string `yaml:"policy"`
	// Least and Most servers that are on at a site; Most 0: all.
	Least int `yaml:"least"`
	Most  int `yaml:"most"`
	// Initial is how many are on before anything is known; 0: all.
	Initial int `yaml:"initial"`
	// Cooldown is the least time between two changes of a site.
	Cooldown Duration `yaml:"cooldown"`
	// StartDelay is how long a server takes from its start to its first request.
	StartDelay Duration `yaml:"start_delay"`
	// Hold is over what time figures are averaged, and for how long one server must have
	// been too many before it is turned off; a multiple of the window.
	Hold Duration `yaml:"hold"`
	// MostUp is how many are turned on at once at most. Retry is after how long one that
	// failed is tried again.
	MostUp int      `yaml:"most_up"`
	Retry  Duration `yaml:"retry"`
	// Critical is the potential penalty in the queues of a site that turns a server on;
	// 0: what a server costs in ten seconds.
	Critical float64 `yaml:"critical"`
	// Hysteresis is the part of a server's cost below which the mean penalty must be, and
	// Utilisation what the servers that stay may have, for one to be turned off.
	Hysteresis  float64 `yaml:"hysteresis"`
	Utilisation float64 `yaml:"utilisation"`
	// Drain is the longest that requests in service are waited for.
	Drain Duration `yaml:"drain"`
	// Ready is the path that a server that was turned on has to answer with 2xx; empty:
	// it has to take a connection.
	Ready string `yaml:"ready"`
	// Hooks turn servers on and off; the first that has the server counts.
	Hooks []SwitchHook `yaml:"hooks"`
}

// SwitchHook is a way to turn servers on and off.
type SwitchHook struct {
	// Kind is command, http, haproxy, kubernetes or none.
	Kind string `yaml:"kind"`
	// Sites and Zones that it is for; neither: all.
	Sites []string `yaml:"sites"`
	Zones []string `yaml:"zones"`
	// Timeout of one try.
	Timeout Duration `yaml:"timeout"`
	// On and Off are commands with their arguments, Status one that ends with 0 if the
	// server is on. {server}, {host}, {port}, {zone} and {site} stand for what it is about.
	On     []string `yaml:"on"`
	Off    []string `yaml:"off"`
	Status []string `yaml:"status"`
	// URL is asked by http, and the API server of kubernetes; TokenFile holds the token,
	// CAFile who signs. StatusURL tells http whether a server is on.
	URL       string `yaml:"url"`
	StatusURL string `yaml:"status_url"`
	TokenFile string `yaml:"token_file"`
	CAFile    string `yaml:"ca_file"`
	// Address is that of HAProxy's runtime API; Backend the one whose servers are meant,
	// by the names in Names, or their addresses.
	Address string            `yaml:"address"`
	Backend string            `yaml:"backend"`
	Names   map[string]string `yaml:"names"`
	// Namespace and Workload (deployment/NAME) are what kubernetes scales.
	Namespace string `yaml:"namespace"`
	Workload  string `yaml:"workload"`
}

// For says whether a hook is for a zone of a site.
func (h *SwitchHook) For(site, zone string) bool {
	return (len(h.Sites) == 0 || slices.Contains(h.Sites, site)) && (len(h.Zones) == 0 || slices.Contains(h.Zones, zone))
}

// Switching policies.
const (
	SwitchNone     = "none"
	SwitchPenalty  = "penalty"
	SwitchForecast = "forecast"
)

func defaultServers() Servers {
	return Servers{
		Policy: "A1", Zone: "penalty", Window: Duration(time.Second), InService: 16, Queue: 1000, Ramp: Duration(10 * time.Second), Trial: Duration(10 * time.Second),
		ServerCost: 1, TTL: Duration(10 * time.Minute),
		Switching: Switching{
			Policy: SwitchNone, Least: 1, Cooldown: Duration(time.Minute), StartDelay: Duration(30 * time.Second), Hold: Duration(3 * time.Second),
			MostUp: 4, Retry: Duration(10 * time.Minute), Hysteresis: 0.2, Utilisation: 0.7, Drain: Duration(5 * time.Minute),
		},
	}
}

// Dispatches says whether requests are queued and servers chosen by deadline and
// penalty.
func (c *Config) Dispatches() bool { return len(c.Servers.Classes) > 0 }

// Tables says whether any kind is steered whose commands are tables.
func (c *Config) Tables() bool { return c.Splits() || c.Dispatches() || c.Codes() }

// ServerName is what events, queues and tables call a server: host and port of its URL.
func ServerName(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Host
}

// ServerZone is a zone of a site with its servers, by name.
type ServerZone struct {
	Name    string
	Servers []string
}

// ZonesOf returns the zones of a site in the order of the file, with servers in that of
// sites[].servers; last the one of servers that no zone lists.
func (c *Config) ZonesOf(site string) []ServerZone {
	s := c.Site(site)
	if s == nil {
		return nil
	}
	var out []ServerZone
	listed := map[string]bool{}
	for _, z := range c.Servers.Zones {
		if z.Site != site {
			continue
		}
		one := ServerZone{Name: z.Name}
		for _, address := range s.Servers {
			if name := ServerName(address); slices.Contains(z.Servers, name) {
				one.Servers = append(one.Servers, name)
				listed[name] = true
			}
		}
		out = append(out, one)
	}
	rest := ServerZone{Name: site}
	for _, address := range s.Servers {
		if name := ServerName(address); !listed[name] {
			rest.Servers = append(rest.Servers, name)
		}
	}
	if len(rest.Servers) > 0 {
		out = append(out, rest)
	}
	return out
}

// ClassNames are the classes with a limit, by name.
func (s *Servers) ClassNames() []string { return slices.Sorted(maps.Keys(s.Classes)) }

// IsStatic says whether requests of a class are of files.
func (s *Servers) IsStatic(class string) bool {
	if kind := s.Classes[class].Kind; kind != "" {
		return kind == "static"
	}
	return class == "static"
}

// HostPort cuts a server's name.
func HostPort(server string) (host, port string) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return server, ""
	}
	return host, port
}

package config

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ServerPolicies are those that choose a server and a place in its queue.
var ServerPolicies = []string{"A1", "A2", "A3", "rr", "wrr", "ll", "cap", "p2c", "peak-ewma", "prequal", "icbs", "auto"}

// mostNumber bounds the numbers without a unit of the section servers.
const mostNumber = 1e9

// leastTrial keeps servers that are slow from having more than a few requests as trials.
const leastTrial = 100 * time.Millisecond

// dispatching checks the section servers.
func (c *checker) dispatching(cfg *Config) {
	s := &cfg.Servers
	c.oneOf("servers.policy", s.Policy, ServerPolicies...)
	c.oneOf("servers.zone", s.Zone, "penalty", "load")
	c.need(s.Window > 0 && s.Window.Std()%time.Second == 0, "servers.window", s.Window.String(), "a multiple of 1s")
	c.between("servers.in_service", float64(s.InService), 1, 1_000_000)
	c.between("servers.queue", float64(s.Queue), 1, 1_000_000)
	c.need(s.Trial == 0 || s.Trial.Std() >= leastTrial, "servers.trial", s.Trial.String(), "0 (never), or at least "+leastTrial.String())
	c.need(s.ServerCost > 0 && s.ServerCost <= mostNumber, "servers.server_cost", num(s.ServerCost), "more than 0, at most "+num(mostNumber))
	c.need(s.Window <= 0 || s.TTL >= 2*s.Window, "servers.ttl", s.TTL.String(), "at least two windows")
	for _, name := range s.ClassNames() {
		k, p := s.Classes[name], "servers.classes."+name
		c.need(name != "" && len(name) <= 200, p, name, "a name of 1 to 200 bytes")
		c.need(k.TMax > 0, p+".t_max", k.TMax.String(), "more than 0")
		c.between(p+".penalty", k.Penalty, 0, mostNumber)
		c.need(k.Kind == "" || k.Kind == "static" || k.Kind == "dynamic", p+".kind", k.Kind, "static or dynamic")
	}
	c.zones(cfg)
	c.switching(cfg)
}

// zones checks that each server has one.
func (c *checker) zones(cfg *Config) {
	names, taken := map[string]bool{}, map[string]bool{}
	for i, z := range cfg.Servers.Zones {
		p := fmt.Sprintf("servers.zones[%d]", i)
		site := cfg.Site(z.Site)
		c.need(site != nil, p+".site", z.Site, "the name of a site")
		key := z.Site + "\x00" + z.Name
		c.need(z.Name != "" && len(z.Name) <= 200 && !names[key], p+".name", z.Name, "a name of 1 to 200 bytes that no other zone of the site has")
		c.need(z.Name != z.Site, p+".name", z.Name, "another name than the site's, which the zone of all other servers has")
		names[key] = true
		c.need(len(z.Servers) > 0, p+".servers", "", "at least one server")
		for j, server := range z.Servers {
			at, one := fmt.Sprintf("%s.servers[%d]", p, j), z.Site+"\x00"+server
			has := site != nil && slices.ContainsFunc(site.Servers, func(a string) bool { return ServerName(a) == server })
			c.need(has, at, server, "HOST:PORT of one of the site's servers")
			c.need(!taken[one], at, server, "a server that is in no other zone")
			taken[one] = true
		}
	}
}

func (c *checker) switching(cfg *Config) {
	w, p := &cfg.Servers.Switching, "servers.switching"
	c.oneOf(p+".policy", w.Policy, SwitchNone, SwitchPenalty, SwitchForecast)
	c.need(w.Least >= 1, p+".least", strconv.Itoa(w.Least), "1 or more servers")
	c.need(w.Most == 0 || w.Most >= w.Least, p+".most", strconv.Itoa(w.Most), "0 (all), or no less than least")
	c.need(w.Initial == 0 || w.Initial >= w.Least && (w.Most == 0 || w.Initial <= w.Most), p+".initial", strconv.Itoa(w.Initial), "0 (all), or least to most")
	c.need(w.Hold > 0 && (cfg.Servers.Window <= 0 || w.Hold%cfg.Servers.Window == 0 && w.Hold/cfg.Servers.Window <= 3600), p+".hold", w.Hold.String(), "1 to 3600 windows")
	c.need(w.MostUp >= 1, p+".most_up", strconv.Itoa(w.MostUp), "1 or more servers")
	c.need(w.Retry > 0, p+".retry", w.Retry.String(), "more than 0")
	c.between(p+".critical", w.Critical, 0, mostNumber)
	c.need(w.Hysteresis > 0 && w.Hysteresis < 1, p+".hysteresis", num(w.Hysteresis), "above 0, below 1")
	c.need(w.Utilisation > 0 && w.Utilisation <= 1, p+".utilisation", num(w.Utilisation), "more than 0, at most 1")
	c.need(w.Ready == "" || strings.HasPrefix(w.Ready, "/"), p+".ready", w.Ready, "a path that begins with /")
	c.need(w.Policy == SwitchNone || cfg.Dispatches(), p+".policy", w.Policy, "servers.classes: without limits there are no penalties")
	if cfg.Dispatches() && w.Policy != SwitchNone {
		for _, s := range cfg.Sites {
			c.need(len(s.Servers) == 0 || len(s.Servers) >= w.Least, p+".least", strconv.Itoa(w.Least), fmt.Sprintf("at most the %d servers of site %s", len(s.Servers), s.Name))
		}
	}
	for i := range w.Hooks {
		c.hook(cfg, fmt.Sprintf("%s.hooks[%d]", p, i), &w.Hooks[i])
	}
}

func (c *checker) hook(cfg *Config, p string, h *SwitchHook) {
	c.oneOf(p+".kind", h.Kind, "command", "http", "haproxy", "kubernetes", "none")
	c.siteNames(cfg, p+".sites", h.Sites)
	for j, z := range h.Zones {
		known := slices.ContainsFunc(cfg.Sites, func(s Site) bool {
			return slices.ContainsFunc(cfg.ZonesOf(s.Name), func(x ServerZone) bool { return x.Name == z })
		})
		c.need(known, fmt.Sprintf("%s.zones[%d]", p, j), z, "the name of a zone")
	}
	switch h.Kind {
	case "command":
		c.need(len(h.On) > 0 && h.On[0] != "", p+".on", "", "a command with its arguments, such as [systemctl, start, web@{port}]")
		c.need(len(h.Off) > 0 && h.Off[0] != "", p+".off", "", "a command with its arguments")
		c.placeholders(p+".on", h.On)
		c.placeholders(p+".off", h.Off)
		c.placeholders(p+".status", h.Status)
	case "http":
		c.absolute(p+".url", h.URL)
		if h.StatusURL != "" {
			c.absolute(p+".status_url", h.StatusURL)
		}
	case "haproxy":
		c.need(h.Address != "", p+".address", "", "the path of a UNIX socket, or HOST:PORT, of the runtime API")
		c.need(haproxyName.MatchString(h.Backend), p+".backend", h.Backend, "the name of a backend")
		for _, server := range slices.Sorted(maps.Keys(h.Names)) {
			c.need(haproxyName.MatchString(h.Names[server]), p+".names."+server, h.Names[server], "the name of a server of HAProxy")
		}
	case "kubernetes":
		if h.URL != "" {
			c.absolute(p+".url", h.URL)
		}
		sites := 0
		for _, s := range cfg.Sites {
			if slices.ContainsFunc(cfg.ZonesOf(s.Name), func(z ServerZone) bool { return h.For(s.Name, z.Name) }) {
				sites++
			}
		}
		c.need(sites <= 1, p+".sites", strconv.Itoa(sites), "one site: each would write the scale of the workload")
		c.need(objectName.MatchString(h.Namespace), p+".namespace", h.Namespace, "a namespace")
		kind, name, _ := strings.Cut(h.Workload, "/")
		c.need((kind == "deployment" || kind == "statefulset") && objectName.MatchString(name), p+".workload", h.Workload, "deployment/NAME or statefulset/NAME")
	}
}

// placeholder is a word that a hook's command has in place of what it is about.
var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// placeholders checks that a command has none that nothing is put in place of.
func (c *checker) placeholders(p string, argv []string) {
	for i, arg := range argv {
		for _, word := range placeholder.FindAllString(arg, -1) {
			known := slices.Contains([]string{"{server}", "{host}", "{port}", "{zone}", "{site}", "{action}"}, word)
			c.need(known, fmt.Sprintf("%s[%d]", p, i), word, "one of: {server}, {host}, {port}, {zone}, {site}, {action}")
		}
	}
}

// absolute checks an address of HTTP.
func (c *checker) absolute(p, address string) {
	u, err := url.Parse(address)
	c.need(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "", p, address, "http://HOST or https://HOST, with or without a path")
}

// serverNotes are those of the section servers.
func (c *Config) serverNotes() (notes []string) {
	s := &c.Servers
	if !c.Dispatches() {
		if fmt.Sprint(*s) != fmt.Sprint(defaultServers()) {
			notes = append(notes, "servers steers nothing: there are no classes with limits and penalties")
		}
		return notes
	}
	if s.Switching.Policy != SwitchNone && len(s.Switching.Hooks) == 0 {
		notes = append(notes, "servers.switching: there are no hooks; servers that are to be off get no requests, and go on running")
	}
	if s.Switching.Policy == SwitchNone && len(s.Switching.Hooks) > 0 {
		notes = append(notes, "servers.switching.hooks do nothing: the policy is none")
	}
	if w := &s.Switching; w.Policy != SwitchNone && w.Cooldown < s.Ramp {
		notes = append(notes, fmt.Sprintf("servers.switching.cooldown %v is shorter than servers.ramp %v: more servers are turned on than are needed, before the one before has its share", w.Cooldown, s.Ramp))
	}
	for _, name := range s.ClassNames() {
		listed := name == OtherClass || slices.ContainsFunc(c.Entry.Class, func(r ClassRule) bool { return r.Class == name })
		if !listed {
			notes = append(notes, fmt.Sprintf("servers.classes.%s: no rule of entry.class gives a request this class", name))
		}
	}
	if _, other := s.Classes[OtherClass]; !other {
		for _, r := range c.Entry.Class {
			if _, listed := s.Classes[r.Class]; !listed {
				notes = append(notes, fmt.Sprintf("entry.class: servers.classes has no %s, nor other: such requests have no limit", r.Class))
			}
		}
	}
	return notes
}

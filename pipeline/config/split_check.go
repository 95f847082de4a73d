package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"penstock/producers/entry/identify"
	"penstock/producers/entry/strict"
	"penstock/schemas/control"
)

// reserved are the names of callers from outside, and of those that don't say who they
// are.
var reserved = []string{control.Outside, control.Unnamed}

// components checks the parts of the service.
func (c *checker) components(cfg *Config) {
	names, hosts := map[string]bool{}, map[string]bool{}
	for i := range cfg.Components {
		k, p := &cfg.Components[i], fmt.Sprintf("components[%d]", i)
		c.need(k.Name != "" && len(k.Name) <= 200 && !slices.Contains(reserved, k.Name), p+".name", k.Name, "a name of 1 to 200 bytes, and not "+strings.Join(reserved, " or ")+", which callers without a name have")
		c.need(!names[k.Name], p+".name", k.Name, "a name that no other component has")
		names[k.Name] = true
		c.componentServers(cfg, p, k)
		c.siteNames(cfg, p+".sites", k.Sites)
		c.siteNames(cfg, p+".pin", k.Pin)
		for j, h := range k.Hosts {
			at := fmt.Sprintf("%s.hosts[%d]", p, j)
			c.need(isHostPattern(h), at, h, "a name such as cart.internal or *.cart.internal")
			c.need(!hosts[strings.ToLower(h)], at, h, "a name that no other component has")
			hosts[strings.ToLower(h)] = true
		}
		if k.Path != "" {
			_, err := identify.CompilePattern(k.Path, "")
			c.need(err == nil, p+".path", k.Path, "a pattern such as /cart/**"+reason(err))
		}
		c.need(!k.Public || len(k.Hosts) > 0 || k.Path != "", p+".public", "true", "hosts or path, by which calls from outside ask for it")
		for _, site := range slices.Sorted(maps.Keys(k.Capacity)) {
			at := p + ".capacity." + site
			c.need(cfg.Site(site) != nil, at, site, "the name of a site")
			c.between(at, k.Capacity[site], 0, 1e9)
		}
		if k.WritesAt != "" {
			c.need(cfg.Site(k.WritesAt) != nil, p+".writes_at", k.WritesAt, "the name of a site")
			c.need(len(k.Pin) == 0 || slices.Contains(k.Pin, k.WritesAt), p+".writes_at", k.WritesAt, "one of pin")
		}
		c.need(len(cfg.SitesOf(k.Name)) > 0, p, k.Name, "servers, or sites, at one site or more")
	}
}

func (c *checker) componentServers(cfg *Config, p string, k *Component) {
	for _, site := range slices.Sorted(maps.Keys(k.Servers)) {
		at := p + ".servers." + site
		c.need(cfg.Site(site) != nil, at, site, "the name of a site")
		c.servers(at, k.Servers[site])
	}
	c.need(len(k.Servers) == 0 || k.Name != cfg.Entry.Component, p+".servers", "", "none: the servers of entry.component stand in sites[].servers")
}

func (c *checker) siteNames(cfg *Config, p string, names []string) {
	for i, n := range names {
		c.need(cfg.Site(n) != nil, fmt.Sprintf("%s[%d]", p, i), n, "the name of a site")
	}
}

// isHostPattern reports whether a text can be a host without a port, or *.SUFFIX.
func isHostPattern(h string) bool {
	h = strings.TrimPrefix(h, "*.")
	return h != "" && len(h) <= 253 && !strings.ContainsAny(h, "*:/") && strict.IsHost(h)
}

func (c *checker) split(cfg *Config) {
	s := &cfg.Split
	c.oneOf("split.policy", s.Policy, "greedy", "lp", "closest", "redirect", "locality-failover")
	c.need(s.Window > 0 && s.Window.Std()%(10*time.Second) == 0, "split.window", s.Window.String(), "a multiple of 10s")
	c.between("split.history", float64(s.History), 1, 64)
	c.need(s.MinSamples >= 1, "split.min_samples", strconv.Itoa(s.MinSamples), "1 or more")
	for _, x := range []struct {
		field string
		v     float64
	}{{"max_step.down", s.MaxStep.Down}, {"max_step.up", s.MaxStep.Up}, {"damping", s.Damping}, {"failing", s.Failing}, {"probes.floor", s.Probes.Floor}} {
		c.need(x.v > 0 && x.v <= 1, "split."+x.field, num(x.v), "more than 0, at most 1")
	}
	c.between("split.change", s.Change, 0, 10)
	c.between("split.margin", s.Margin, 0, 10)
	c.need(s.DeadBand >= 0 && s.DeadBand < 1, "split.dead_band", num(s.DeadBand), "0 to below 1")
	c.need(s.Window <= 0 || s.TTL >= 2*s.Window, "split.ttl", s.TTL.String(), "at least two windows")
	c.between("split.resolution", float64(s.Resolution), 10, 1_000_000)
	c.between("split.probes.share", s.Probes.Share, 0, 0.1)
	c.between("split.ms_per_usd", s.MSPerUSD, 0, 1e12)
	for i, g := range s.Colocate {
		p := fmt.Sprintf("split.colocate[%d]", i)
		c.need(len(g) > 1, p, strings.Join(g, ", "), "two components or more")
		for j, n := range g {
			c.need(cfg.Component(n) != nil, fmt.Sprintf("%s[%d]", p, j), n, "the name of a component")
		}
	}
	for i, r := range s.Residency {
		p := fmt.Sprintf("split.residency[%d]", i)
		c.need(r.Match != "", p+".match", "", "a pattern such as eu-*")
		c.need(len(r.Sites) > 0, p+".sites", "", "at least one site")
		c.siteNames(cfg, p+".sites", r.Sites)
	}
	for i, l := range s.Links {
		p := fmt.Sprintf("split.links[%d]", i)
		c.need(cfg.Site(l.From) != nil, p+".from", l.From, "the name of a site")
		c.need(cfg.Site(l.To) != nil, p+".to", l.To, "the name of a site")
		c.need(l.Delay >= 0, p+".delay", l.Delay.String(), "0 or more")
	}
}

// session checks what keeps a client's calls at one site, and the listener for calls
// between components.
func (c *checker) session(e *Entry) {
	if e.Internal != "" {
		c.address("entry.internal", e.Internal)
		c.need(e.Internal != e.Listen, "entry.internal", e.Internal, "another address than entry.listen")
	}
	s := &e.Session
	c.need(s.Cookie == "" || s.Header == "", "entry.session", "", "a cookie or a header, not both")
	for _, f := range [...]struct{ field, name string }{{"cookie", s.Cookie}, {"header", s.Header}} {
		c.need(f.name == "" || strict.IsToken(f.name), "entry.session."+f.field, f.name, "a name")
	}
	c.need(s.TTL >= Duration(time.Second), "entry.session.ttl", s.TTL.String(), "at least 1s")
}

package config

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"penstock/infra/address"
)

// Names that others give to what they have: HAProxy to backends and servers,
// Kubernetes to its objects (RFC 1123) and kinds.
var (
	haproxyName = regexp.MustCompile(`^[A-Za-z0-9_.:-]+$`)
	targetName  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	objectName  = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	labelName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	kindName    = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)
)

// router checks the targets of split tables and who may ask for them.
func (c *checker) router(cfg *Config) {
	r := &cfg.Router
	if r.Listen != "" {
		c.address("router.listen", r.Listen)
		c.need(address.IsLoopback(address.Host(r.Listen)) || r.Public || r.TokenFile != "", "router.token_file", "",
			"a token file, or public: true, since listen is off loopback")
	}
	c.need(r.Rate >= 0, "router.rate", strconv.Itoa(r.Rate), "0 (no limit) or more questions a second")
	c.need(r.TotalRate >= 0, "router.total_rate", strconv.Itoa(r.TotalRate), "0 (no limit) or more questions a second")
	c.need(r.Look.Std() > 0, "router.look", r.Look.String(), "more than 0")
	names := map[string]bool{"pull": true}
	for i := range r.HAProxy {
		p := fmt.Sprintf("router.haproxy[%d]", i)
		c.target(p, r.HAProxy[i].Name, names)
		c.haproxy(cfg, p, &r.HAProxy[i])
	}
	for i := range r.XDS {
		p := fmt.Sprintf("router.xds[%d]", i)
		c.target(p, r.XDS[i].Name, names)
		c.xds(cfg, p, &r.XDS[i])
	}
	for i := range r.Gateway {
		p := fmt.Sprintf("router.gateway[%d]", i)
		c.target(p, r.Gateway[i].Name, names)
		c.gateway(cfg, p, &r.Gateway[i])
	}
}

func (c *checker) target(at, name string, taken map[string]bool) {
	c.need(targetName.MatchString(name), at+".name", name, "a name of 1 to 64 letters, digits, _ and -")
	c.need(!taken[name], at+".name", name, "a name that no other target has; pull is the pull API's")
	taken[name] = true
}

// link checks which calls something carries. Two that carry the same contradict each
// other only where one is told apart from the other; targets say that.
func (c *checker) link(cfg *Config, at string, l RouterLink) {
	c.need(l.From != "" && len(l.From) <= 200, at+".from", l.From, "the calling component, of 1 to 200 bytes; entry for calls from outside")
	c.need(cfg.Site(l.FromSite) != nil, at+".from_site", l.FromSite, "the name of a site")
	c.need(l.To != "" && len(l.To) <= 200, at+".to", l.To, "the component that is called, of 1 to 200 bytes")
}

// places checks the sites of a mapping, and that there is one.
func places[V any](c *checker, cfg *Config, at, what string, of map[string]V) []string {
	c.need(len(of) > 0, at, "", what+" of each site")
	sites := slices.Sorted(maps.Keys(of))
	for _, site := range sites {
		c.need(cfg.Site(site) != nil, at+"."+site, site, "the name of a site")
	}
	return sites
}

func (c *checker) haproxy(cfg *Config, at string, h *RouterHAProxy) {
	c.need(h.Address != "", at+".address", "", "the path of a UNIX socket, or HOST:PORT, of the runtime API")
	if text := strings.TrimPrefix(h.Address, "tcp:"); h.Address != "" && !strings.Contains(text, "/") && !strings.HasPrefix(text, "unix:") {
		c.address(at+".address", text)
	}
	c.need(len(h.Backends) > 0, at+".backends", "", "the backends whose weights are to be set")
	backends := map[string]bool{}
	for i := range h.Backends {
		b, p := &h.Backends[i], fmt.Sprintf("%s.backends[%d]", at, i)
		c.need(haproxyName.MatchString(b.Name), p+".name", b.Name, "the name of a backend of HAProxy")
		c.need(!backends[b.Name], p+".name", b.Name, "a backend that is not listed before")
		backends[b.Name] = true
		c.link(cfg, p, b.Link())
		servers := map[string]bool{}
		for _, site := range places(c, cfg, p+".servers", "the servers", b.Servers) {
			c.need(len(b.Servers[site]) > 0, p+".servers."+site, "", "at least one server")
			for j, s := range b.Servers[site] {
				q := fmt.Sprintf("%s.servers.%s[%d]", p, site, j)
				c.need(haproxyName.MatchString(s), q, s, "the name of a server of the backend")
				c.need(!servers[s], q, s, "a server that is not listed before")
				servers[s] = true
			}
		}
	}
}

func (c *checker) xds(cfg *Config, at string, x *RouterXDS) {
	c.address(at+".listen", x.Listen)
	c.need((x.TLS.Cert == "") == (x.TLS.Key == ""), at+".tls", "", "both cert and key, or neither")
	c.need(x.TLS.ClientCA == "" || x.TLS.Cert != "", at+".tls.client_ca", x.TLS.ClientCA, "a cert and a key beside it")
	c.need(address.IsLoopback(address.Host(x.Listen)) || x.TokenFile != "" || x.TLS.ClientCA != "", at+".token_file", "",
		"a token file or tls.client_ca, since listen is off loopback")
	c.need(x.Base != "", at+".base", "", "the file with the Envoys' configuration")
	c.need(len(x.Splits) > 0, at+".splits", "", "the routes or endpoints whose weights are to be set")
	for i := range x.Splits {
		s, p := &x.Splits[i], fmt.Sprintf("%s.splits[%d]", at, i)
		c.link(cfg, p, s.Link())
		for _, site := range slices.Sorted(maps.Keys(s.Ready)) {
			u, err := url.Parse(s.Ready[site])
			c.need(cfg.Site(site) != nil, p+".ready."+site, site, "the name of a site")
			c.need(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "", p+".ready."+site, s.Ready[site], "an http or https URL")
		}
		route := s.RouteConfig != "" || s.Route != "" || len(s.Clusters) > 0
		zones := s.Endpoints != "" || len(s.Zones) > 0
		c.need(route != zones, p, "", "either route_config, route and clusters, or endpoints and zones")
		switch {
		case route == zones:
		case route:
			c.need(s.RouteConfig != "", p+".route_config", "", "the name of a route configuration")
			c.need(s.Route != "", p+".route", "", "the name of a route in it")
			c.each(p+".clusters", "cluster", places(c, cfg, p+".clusters", "the cluster", s.Clusters), s.Clusters)
		case zones:
			c.need(s.Endpoints != "", p+".endpoints", "", "the name of a cluster")
			c.each(p+".zones", "zone", places(c, cfg, p+".zones", "the zone", s.Zones), s.Zones)
		}
	}
}

// each checks that sites have something, and each its own.
func (c *checker) each(at, what string, sites []string, of map[string]string) {
	seen := map[string]bool{}
	for _, site := range sites {
		c.need(of[site] != "" && !seen[of[site]], at+"."+site, of[site], "a "+what+" that no other site has")
		seen[of[site]] = true
	}
}

func (c *checker) gateway(cfg *Config, at string, g *RouterGateway) {
	if g.URL != "" {
		u, err := url.Parse(g.URL)
		ok := err == nil && u.Host != "" && u.RawQuery == "" && u.Fragment == "" && u.User == nil
		c.need(ok && (u.Scheme == "https" || u.Scheme == "http" && address.IsLoopback(u.Hostname())), at+".url", g.URL,
			"an https URL, or an http URL on loopback")
	}
	c.need(len(g.Routes) > 0, at+".routes", "", "the rules of HTTPRoutes whose weights are to be set")
	rules := map[string]bool{}
	for i := range g.Routes {
		r, p := &g.Routes[i], fmt.Sprintf("%s.routes[%d]", at, i)
		c.need(labelName.MatchString(r.Namespace), p+".namespace", r.Namespace, "the name of a namespace")
		c.need(objectName.MatchString(r.Route), p+".route", r.Route, "the name of an HTTPRoute")
		n, err := strconv.Atoi(r.Rule)
		c.need(err == nil && n >= 0 && n < 16 || err != nil && objectName.MatchString(r.Rule), p+".rule", r.Rule, "the place of a rule from 0, at most 15, or its name")
		id := r.Namespace + "/" + r.Route + "/" + r.Rule
		c.need(!rules[id], p+".rule", r.Rule, "a rule that is not listed before")
		rules[id] = true
		c.link(cfg, p, r.Link())
		seen := map[RouterGatewayBackend]bool{}
		for _, site := range places(c, cfg, p+".backends", "the backendRef", r.Backends) {
			c.gatewayBackend(p+".backends."+site, r.Backends[site])
			c.need(!seen[r.Backends[site]], p+".backends."+site, r.Backends[site].Name, "a backendRef that no other site has")
			seen[r.Backends[site]] = true
		}
	}
}

func (c *checker) gatewayBackend(at string, b RouterGatewayBackend) {
	c.need(objectName.MatchString(b.Name), at+".name", b.Name, "the name of a Service")
	c.need(b.Port >= 0 && b.Port <= 65535, at+".port", strconv.Itoa(b.Port), "0 (any) to 65535")
	c.need(b.Namespace == "" || labelName.MatchString(b.Namespace), at+".namespace", b.Namespace, "the name of a namespace, or nothing: the route's")
	c.need(b.Group == "" || objectName.MatchString(b.Group), at+".group", b.Group, "the group of the kind, or nothing")
	c.need(b.Kind == "" || kindName.MatchString(b.Kind), at+".kind", b.Kind, "a kind such as ServiceImport, or nothing: Service")
}

package config

import "time"

// Router is the process that puts split tables to those who carry calls without our
// entry points, and answers who asks for them (penstock router; DESIGN §4.2). One
// file names the targets of all sites; which a process tends is said on its command
// line.
type Router struct {
	// Listen is the address of the pull API; empty is none.
	Listen    string `yaml:"listen"`
	TokenFile string `yaml:"token_file"`
	// Public answers off loopback without a token.
	Public bool `yaml:"public"`
	// Rate is questions a second for one client of the pull API, TotalRate for all; 0 is
	// no limit.
	Rate      int `yaml:"rate"`
	TotalRate int `yaml:"total_rate"`
	// Look is how often each target is looked at: whether it still has what it was
	// told, and whether a table's time is over.
	Look Duration `yaml:"look"`
	// HAProxy, XDS and Gateway are the targets. Names are unique over all of them.
	HAProxy []RouterHAProxy `yaml:"haproxy"`
	XDS     []RouterXDS     `yaml:"xds"`
	Gateway []RouterGateway `yaml:"gateway"`
}

// RouterLink is which calls something carries.
type RouterLink struct {
	From     string // the calling component; entry for calls from outside
	FromSite string // where they come from
	To       string // the component that is called
}

// RouterHAProxy is a running HAProxy.
type RouterHAProxy struct {
	// Name is the target's, in outcomes too.
	Name string `yaml:"name"`
	// Address of its runtime API: the path of a UNIX socket, or HOST:PORT.
	Address string `yaml:"address"`
	// StateFile is where HAProxy reads its servers' states when it starts; empty:
	// none is written.
	StateFile string `yaml:"state_file"`
	// Timeout of a question to it.
	Timeout  Duration               `yaml:"timeout"`
	Backends []RouterHAProxyBackend `yaml:"backends"`
}

// RouterHAProxyBackend is a backend of HAProxy that carries the calls of a link.
type RouterHAProxyBackend struct {
	Name     string `yaml:"name"`
	From     string `yaml:"from"`
	FromSite string `yaml:"from_site"`
	To       string `yaml:"to"`
	// Servers are the names of its servers at each site.
	Servers map[string][]string `yaml:"servers"`
	// Writes is set for a backend that carries the calls that write, and they alone.
	Writes bool `yaml:"writes"`
}

// RouterXDS is a control plane for Envoys.
type RouterXDS struct {
	Name string `yaml:"name"`
	// Listen is the address of its discovery services. Off loopback they need a
	// token or a client certificate.
	Listen    string    `yaml:"listen"`
	TokenFile string    `yaml:"token_file"`
	TLS       RouterTLS `yaml:"tls"`
	// Base is a file with the Envoys' configuration: resources with listeners,
	// routes, clusters and endpoints, in YAML or JSON.
	Base string `yaml:"base"`
	// Wait is how long a table waits for Envoys to acknowledge it.
	Wait   Duration         `yaml:"wait"`
	Splits []RouterXDSSplit `yaml:"splits"`
}

// RouterTLS names files in PEM.
type RouterTLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	// ClientCA signs those who may connect; empty: nobody is asked who they are.
	ClientCA string `yaml:"client_ca"`
}

// RouterXDSSplit is what carries the calls of a link: a route with weighted clusters,
// or the localities of a cluster.
type RouterXDSSplit struct {
	From     string `yaml:"from"`
	FromSite string `yaml:"from_site"`
	To       string `yaml:"to"`
	// RouteConfig and Route name a route; Clusters is the cluster of each site.
	RouteConfig string            `yaml:"route_config"`
	Route       string            `yaml:"route"`
	Clusters    map[string]string `yaml:"clusters"`
	// Endpoints names a cluster; Zones is the zone of each site.
	Endpoints string            `yaml:"endpoints"`
	Zones     map[string]string `yaml:"zones"`
	// Ready is a URL of each site that answers GET with 2xx while the component can
	// take requests there. A site without one is taken for ready.
	Ready  map[string]string `yaml:"ready"`
	Writes bool              `yaml:"writes"`
}

// RouterGateway is a Kubernetes API server with HTTPRoutes.
type RouterGateway struct {
	Name string `yaml:"name"`
	// URL of the API server; empty: that of the cluster the process runs in, with the
	// token and the CA of its service account.
	URL       string `yaml:"url"`
	TokenFile string `yaml:"token_file"`
	CAFile    string `yaml:"ca_file"`
	// Timeout of a request to it.
	Timeout Duration             `yaml:"timeout"`
	Routes  []RouterGatewayRoute `yaml:"routes"`
}

// RouterGatewayRoute is a rule of an HTTPRoute that carries the calls of a link.
type RouterGatewayRoute struct {
	Namespace string `yaml:"namespace"`
	Route     string `yaml:"route"`
	// Rule is its name, or its place from 0.
	Rule     string `yaml:"rule"`
	From     string `yaml:"from"`
	FromSite string `yaml:"from_site"`
	To       string `yaml:"to"`
	// Backends is the backendRef of each site.
	Backends map[string]RouterGatewayBackend `yaml:"backends"`
	Writes   bool                            `yaml:"writes"`
}

// RouterGatewayBackend is what a backendRef refers to.
type RouterGatewayBackend struct {
	Name string `yaml:"name"`
	// Port 0 is any.
	Port int `yaml:"port"`
	// Namespace defaults to the route's.
	Namespace string `yaml:"namespace"`
	// Group and Kind default to a Service.
	Group string `yaml:"group"`
	Kind  string `yaml:"kind"`
}

// Link of a backend.
func (b *RouterHAProxyBackend) Link() RouterLink { return RouterLink{b.From, b.FromSite, b.To} }

// Link of a split.
func (s *RouterXDSSplit) Link() RouterLink { return RouterLink{s.From, s.FromSite, s.To} }

// Link of a route's rule.
func (r *RouterGatewayRoute) Link() RouterLink { return RouterLink{r.From, r.FromSite, r.To} }

// Targets are the names of all targets, in the order of the file, kind by kind.
func (r *Router) Targets() []string {
	var names []string
	for _, h := range r.HAProxy {
		names = append(names, h.Name)
	}
	for _, x := range r.XDS {
		names = append(names, x.Name)
	}
	for _, g := range r.Gateway {
		names = append(names, g.Name)
	}
	return names
}

func defaultRouter() Router {
	return Router{Listen: "127.0.0.1:8091", Rate: 100, Look: Duration(time.Second)}
}

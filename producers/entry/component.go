package entry

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"penstock/infra/shares"
	"penstock/producers/entry/identify"
	"penstock/producers/entry/strict"
	"penstock/producers/entry/upstream"
	"penstock/schemas/control"
	"penstock/schemas/event"
)

// classProbe is the class of rows of probes, and of the calls that they cause.
const classProbe = "probe"

// component is a part of the service that requests can be for.
type component struct {
	name    string
	owns    bool // owners' data is its own: it is Options.Component
	hosts   []string
	pattern *identify.Pattern
	public  bool
	local   Upstream
	allowed []bool // by site, whether it may serve it; nil: all may
	index   int    // among all, for metrics
	// dispatched is set if a dispatcher that wants to know their class admits requests to
	// the own servers.
	dispatched bool
	// writesAt is the site of its writes where no table has one; noSite: there is none.
	writesAt int

	cookie   string           // the session's, "" if there is none
	cookies  [2][]string      // what sets it, by site; for clients without and with TLS
	replicas []*replica       // by site
	budget   *upstream.Budget // of what is sent to another site when the first fails
}

// compileComponents makes the components out of the options: the first is
// Options.Component.
func (e *Entry) compileComponents() error {
	o := &e.o
	e.own = &component{name: o.Component, owns: true, local: o.Local, writesAt: noSite}
	e.components, e.named = []*component{e.own}, map[string]*component{o.Component: e.own}
	for i := range o.Components {
		if err := e.addComponent(&o.Components[i]); err != nil {
			return fmt.Errorf("component %.80q: %w", o.Components[i].Name, err)
		}
	}
	for i, c := range e.components {
		if d, ok := c.local.(dispatches); ok {
			c.dispatched = d.Dispatches()
		}
		c.index, c.budget = i, upstream.NewBudget(fallbackShare, fallbackLeast)
		for _, s := range o.Sites {
			c.replicas = append(c.replicas, &replica{name: shares.Replica{Component: c.name, Site: s.Name}})
		}
		if err := e.sessionOf(c); err != nil {
			return fmt.Errorf("component %.80q: %w", c.name, err)
		}
	}
	return nil
}

// dispatches is what a pool may have beside Upstream: whether a dispatcher admits its
// requests.
type dispatches interface{ Dispatches() bool }

// Bounds of what is sent to another site when the chosen one fails: a share of a
// component's requests of the last 10 s, and at least so many a second.
const fallbackShare, fallbackLeast = 0.2, 3

func (e *Entry) addComponent(r *ComponentRoute) error {
	c := e.named[r.Name]
	switch {
	case r.Name == "" || !isHeaderValue(r.Name) || len(r.Name) > event.MaxID || r.Name == control.Outside || r.Name == control.Unnamed:
		return fmt.Errorf("expected a name of printable ASCII, not %s or %s: %w", control.Outside, control.Unnamed, ErrOption)
	case c != nil && (c != e.own || c.hosts != nil || c.pattern != nil):
		return fmt.Errorf("it is there twice: %w", ErrOption)
	case c == e.own && r.Local != nil:
		return fmt.Errorf("its servers are Options.Local: %w", ErrOption)
	case c == nil:
		c = &component{name: r.Name, local: r.Local, writesAt: noSite}
		e.components, e.named[r.Name] = append(e.components, c), c
	}
	e.routes = append(e.routes, c)
	c.public = r.Public
	for _, h := range r.Hosts {
		name, ok := strings.CutPrefix(h, "*.")
		if name == "" || !isHost(name) {
			return fmt.Errorf("host %.80q, expected NAME or *.NAME: %w", h, ErrOption)
		}
		if ok {
			name = "." + name
		}
		c.hosts = append(c.hosts, strings.ToLower(name))
	}
	var err error
	if r.Path != "" {
		if c.pattern, err = identify.CompilePattern(r.Path, ""); err != nil {
			return fmt.Errorf("%w: %w", ErrOption, err)
		}
	}
	if len(r.Sites) > 0 {
		c.allowed = make([]bool, len(e.o.Sites))
	}
	for _, s := range r.Sites {
		i, ok := e.router.index[s]
		if !ok {
			return fmt.Errorf("site %.80q is none: %w", s, ErrOption)
		}
		c.allowed[i] = true
	}
	return e.setWritesAt(c, r.WritesAt)
}

// setWritesAt says where a component's writes go.
func (e *Entry) setWritesAt(c *component, site string) error {
	if site == "" {
		return nil
	}
	i, ok := e.router.index[site]
	switch {
	case !ok:
		return fmt.Errorf("writes at %.80q, which is no site: %w", site, ErrOption)
	case e.o.Shares == nil:
		return fmt.Errorf("writes at %.80q, but each call is served where it is made: there are no shares: %w", site, ErrOption)
	}
	c.writesAt = i
	return nil
}

func isHost(name string) bool {
	return strict.IsHost(name) && !strings.ContainsAny(name, ":*[]")
}

// hostOf is the name in a Host, in small letters, without port and final dot.
func hostOf(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i:], ']') < 0 {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// matches reports whether a request is for the component, by its host and path.
func (c *component) matches(host, path string) bool {
	if c.hosts == nil && c.pattern == nil {
		return false
	}
	if c.hosts != nil && !slices.ContainsFunc(c.hosts, func(name string) bool {
		if name[0] == '.' {
			return len(host) > len(name) && strings.HasSuffix(host, name)
		}
		return name == host
	}) {
		return false
	}
	if c.pattern == nil {
		return true
	}
	_, ok := c.pattern.Match(path)
	return ok
}

// may reports whether a site may serve the component.
func (c *component) may(site int) bool { return c.allowed == nil || c.allowed[site] }

// callee finds out which component a request is for, who calls it, and whether it is
// a probe, from the headers as they came. It answers and returns false if that is no
// component that can be called here.
//
// A client from outside names nothing: which public component it reaches follows
// from host and path. A component of the site and a peer name the callee.
func (x *exchange) callee(h http.Header, path string) bool {
	e, r := x.e, x.r
	named := h[headerTo]
	switch {
	case x.hop != nil && x.hop.proven:
		x.from, x.probe = decodeID(first(h, headerComponent)), first(h, headerProbe) == probeMark
		if len(named) == 0 {
			return true
		}
		if x.to = e.named[named[0]]; x.to != nil {
			return true
		}
		x.to = nowhereNamed
		x.kind = kindFailed
		x.refuse(http.StatusServiceUnavailable, reasonNoComponent, "no server is free: try again")
		return false
	case x.marked && len(named) > 0:
		// A peer with another key calls a component: what is served to strangers would
		// answer in its stead.
		x.disownCall()
		return false
	case !x.client.door.internal:
		if len(e.routes) > 0 {
			x.to = e.byHost(hostOf(r.Host), path, true)
		}
		return true
	}
	x.from, x.probe = e.caller(h), first(h, headerProbe) == probeMark
	switch {
	case len(named) == 1:
		x.to = e.named[named[0]]
	case len(named) == 0:
		x.to = e.byHost(hostOf(r.Host), path, false)
	default:
		x.to = nil
	}
	if x.to == nil {
		x.to = nowhereNamed
		x.kind = kindRefused
		x.refuse(http.StatusNotFound, reasonNoComponent, "no component of that name, or for that host and path, is known here")
		return false
	}
	return true
}

// nowhereNamed stands for what is no component: its rows name none.
var nowhereNamed = &component{writesAt: noSite}

// byHost returns the component that a request is for by its host and path: for
// one from outside the first public one, else Options.Component; for one of the site
// the first one, else nil.
func (e *Entry) byHost(host, path string, outside bool) *component {
	for _, c := range e.routes {
		if (c.public || !outside) && c.matches(host, path) {
			return c
		}
	}
	if outside {
		return e.own
	}
	return nil
}

// caller is the component that a call of the site says it is from.
func (e *Entry) caller(h http.Header) string {
	names := h[headerComponent]
	if len(names) == 0 {
		return control.Unnamed
	}
	if len(names) > 1 || names[0] == "" || len(names[0]) > event.MaxID || !isHeaderValue(names[0]) || names[0] == control.Outside {
		e.m.ignored("component", "unusable")
		return control.Unnamed
	}
	return names[0]
}

// link is what the shares of a request stand under.
func (x *exchange) link() shares.Link {
	from := x.from
	if from == "" {
		from = control.Outside
	}
	return shares.Link{From: from, FromSite: x.e.o.Site, To: x.to.name}
}

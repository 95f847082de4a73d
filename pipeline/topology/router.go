package topology

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"penstock/consumers/executor/router"
	"penstock/consumers/executor/router/pull"
	"penstock/infra/shares"
	"penstock/pipeline/config"
)

// Router is the process that puts split tables to those who carry calls without our
// entry points, and tells them who asks (DESIGN §4.2): HAProxies, Envoys, HTTPRoutes
// of Kubernetes clusters, and the pull API. Each follows the tables on its own, so
// that one that can't be reached holds up no other.
type Router struct {
	Alone
	// Listen overrides the address of the pull API; "off" is none.
	Listen string
	// Targets are the names of those of the configuration that this process tends;
	// none: all.
	Targets []string
}

// pullName is the pull API among targets.
const pullName = "pull"

// Run serves until the context ends.
func (r *Router) Run(ctx context.Context) error {
	if r.Config != nil {
		if r.Listen != "" {
			r.Config.Router.Listen = strings.TrimSuffix(r.Listen, "off")
		}
		if err := r.check(); err != nil {
			return err
		}
	}
	return r.run(ctx, "router", r.start)
}

// check says whether there is anything to do, and what Targets are.
func (r *Router) check() error {
	names := r.Config.Router.Targets()
	for _, name := range r.Targets {
		if !slices.Contains(names, name) {
			has := "no targets are configured in the section router"
			if len(names) > 0 {
				has = "the configuration has " + strings.Join(names, ", ")
			}
			return fmt.Errorf("there is no target %q: %s: %w", name, has, ErrOptions)
		}
	}
	if len(names) == 0 && !r.tells() {
		why := "there are no components that the pull API could tell of"
		if r.Config.Splits() {
			why = "the pull API is off (--listen, router.listen)"
		}
		return fmt.Errorf("nothing is left to do: the section router names no target, and %s: %w", why, ErrOptions)
	}
	return nil
}

// tends says whether a target is this process's.
func (r *Router) tends(name string) bool {
	return len(r.Targets) == 0 || slices.Contains(r.Targets, name)
}

// tells says whether there is a pull API.
func (r *Router) tells() bool { return r.Config.Router.Listen != "" && r.Config.Splits() }

// start makes the targets, each with what follows the tables for it.
func (r *Router) start(ctx context.Context, v *alone) (string, error) {
	var said []string
	where := "no address of its own"
	if r.tells() {
		addr, err := r.pull(ctx, v)
		if err != nil {
			return "", err
		}
		where = addr
	}
	c := &r.Config.Router
	for i := range c.HAProxy {
		if h := &c.HAProxy[i]; r.tends(h.Name) {
			if err := r.follow(ctx, v, h.Name, func() (router.Target, error) { return haproxyTarget(v, h) }); err != nil {
				return "", err
			}
			said = append(said, h.Name)
		}
	}
	for i := range c.XDS {
		if x := &c.XDS[i]; r.tends(x.Name) {
			addr, err := r.xds(ctx, v, x)
			if err != nil {
				return "", err
			}
			said = append(said, x.Name+" at "+addr)
		}
	}
	for i := range c.Gateway {
		if g := &c.Gateway[i]; r.tends(g.Name) {
			if err := r.gateway(ctx, v, g); err != nil {
				return "", err
			}
			said = append(said, g.Name)
		}
	}
	if len(said) > 0 {
		where += ", for " + strings.Join(said, ", ")
	}
	return where, nil
}

// follow makes a target and keeps it at the tables in force.
func (r *Router) follow(ctx context.Context, v *alone, name string, open func() (router.Target, error)) error {
	target, err := open()
	if err != nil {
		return fmt.Errorf("target %s: %w", name, err)
	}
	_, err = v.followSplit(ctx, "router-"+r.Name+"-"+name, target, r.Config.Router.Look.Std())
	if err != nil {
		return fmt.Errorf("target %s: %w", name, err)
	}
	return nil
}

// pull serves the pull API, and returns where.
func (r *Router) pull(ctx context.Context, v *alone) (string, error) {
	c := &r.Config.Router
	tables := shares.New(shares.Options{Name: pullName, Sites: siteNames(r.Config)})
	followed, err := v.followSplit(ctx, "router-"+r.Name+"-"+pullName, router.Local(tables), c.Look.Std())
	if err != nil {
		return "", err
	}
	o := pull.Options{
		Components: told(r.Config), Connected: v.client.Connected, Listen: c.Listen, Logger: r.Logger, Public: c.Public,
		Rate: float64(c.Rate), Ready: followed.Known, Registerer: v.registry, Shares: tables, Sites: siteNames(r.Config),
		TotalRate: float64(c.TotalRate), WritesAt: writesAt(r.Config),
	}
	token, err := SecretFile("router.token_file", c.TokenFile)
	if err != nil {
		return "", err
	}
	if token != "" {
		o.Tokens = []string{token}
	}
	server, err := pull.New(o)
	if err != nil {
		return "", fmt.Errorf("router: %w", err)
	}
	v.parts.Start(pullName, server.Run)
	return server.Addr(), nil
}

// told are the components of which the pull API tells, with their servers by site:
// those of the configuration, and what entry points call, which has servers whether it
// is listed or not.
func told(c *config.Config) map[string]map[string][]string {
	out := map[string]map[string][]string{}
	add := func(name string) {
		at := map[string][]string{}
		for _, site := range c.SitesOf(name) {
			at[site] = c.ServersOf(name, site)
		}
		out[name] = at
	}
	for i := range c.Components {
		add(c.Components[i].Name)
	}
	if name := c.Entry.Component; len(c.SitesOf(name)) > 0 {
		add(name)
	}
	return out
}

// writesAt are the sites of all writes, of the components that have one.
func writesAt(c *config.Config) map[string]string {
	out := map[string]string{}
	for i := range c.Components {
		if k := &c.Components[i]; k.WritesAt != "" {
			out[k.Name] = k.WritesAt
		}
	}
	return out
}

// splitLink is a link of the configuration.
func splitLink(l config.RouterLink) shares.Link {
	return shares.Link{From: l.From, FromSite: l.FromSite, To: l.To}
}

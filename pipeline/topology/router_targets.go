package topology

import (
	"context"

	"penstock/consumers/executor/router"
	"penstock/consumers/executor/router/gatewayapi"
	"penstock/consumers/executor/router/haproxy"
	"penstock/pipeline/config"
	"penstock/schemas/control"
)

func haproxyTarget(v *alone, c *config.RouterHAProxy) (router.Target, error) {
	o := haproxy.Options{
		Address: c.Address, Name: c.Name, StateFile: c.StateFile, Timeout: c.Timeout.Std(), Metrics: executorMeter{v.metrics, control.Split},
	}
	for i := range c.Backends {
		b := &c.Backends[i]
		o.Backends = append(o.Backends, haproxy.Backend{Name: b.Name, Link: splitLink(b.Link()), Servers: b.Servers, Writes: b.Writes})
	}
	return haproxy.New(o)
}

func gatewayTarget(v *alone, c *config.RouterGateway) (*gatewayapi.Target, error) {
	o := gatewayapi.Options{
		URL: c.URL, Name: c.Name, TokenFile: c.TokenFile, CAFile: c.CAFile, Timeout: c.Timeout.Std(), StateFile: v.dir("gateway-" + c.Name + ".json"),
		Metrics: executorMeter{v.metrics, control.Split},
	}
	for i := range c.Routes {
		r := &c.Routes[i]
		route := gatewayapi.Route{Namespace: r.Namespace, Name: r.Route, Rule: r.Rule, Link: splitLink(r.Link()), Writes: r.Writes, Backends: map[string]gatewayapi.Backend{}}
		for site, b := range r.Backends {
			route.Backends[site] = gatewayapi.Backend{Group: b.Group, Kind: b.Kind, Namespace: b.Namespace, Name: b.Name, Port: b.Port}
		}
		o.Routes = append(o.Routes, route)
	}
	return gatewayapi.New(o)
}

// gateway follows the tables for a Kubernetes API server.
func (r *Router) gateway(ctx context.Context, v *alone, c *config.RouterGateway) error {
	var target *gatewayapi.Target
	if err := r.follow(ctx, v, c.Name, func() (_ router.Target, err error) {
		target, err = gatewayTarget(v, c)
		return target, err
	}); err != nil {
		return err
	}
	v.parts.Start("connections of "+c.Name, func(ctx context.Context) error {
		<-ctx.Done()
		target.Close()
		return nil
	})
	return nil
}

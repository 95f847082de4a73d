package xds

import (
	"cmp"
	"context"
	"fmt"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"penstock/consumers/executor"
	"penstock/consumers/executor/router"
	"penstock/infra/clock"
	"penstock/infra/shares"
)

// Units is the resolution: weights of a route, and of a cluster's localities, sum
// up to it.
const Units = 10_000

// Options of a Target.
type Options struct {
	// Base is what is served while no table says otherwise.
	Base Base
	// Clock paces the waiting of Drain and Put. Defaults to the machine's.
	Clock clock.Clock
	// Metrics gets the counts. Defaults to none.
	Metrics executor.Metrics
	// Name is the target in outcomes. Defaults to "xds".
	Name string
	// Ready says whether a replica is placed and can take requests; router.ErrNotReady,
	// shares.ErrAbsent. Nil: all that the configuration names are.
	Ready func(ctx context.Context, r shares.Replica) error
	// Running counts the requests that clients have at a replica, for Drain; nil if
	// nobody knows.
	Running func(ctx context.Context, r shares.Replica) (int, error)
	// Splits are what may be changed. Needed.
	Splits []Split
	// Wait is how long Put waits for clients to acknowledge. Defaults to 1 s.
	Wait time.Duration
}

// Base is a configuration. It must be consistent: listeners name all routes, and
// clusters all endpoints.
type Base struct {
	Listeners []*listenerv3.Listener
	Routes    []*routev3.RouteConfiguration
	Clusters  []*clusterv3.Cluster
	Endpoints []*endpointv3.ClusterLoadAssignment
}

// Split is what carries the calls of a link: a route with weighted clusters, or a
// cluster with localities.
type Split struct {
	Link shares.Link
	// RouteConfig and Route name a route of Base with an action to weighted
	// clusters; Clusters is which of these stands for which site.
	RouteConfig, Route string
	Clusters           map[string]string
	// Endpoints names a cluster of Base whose localities stand for sites; Zones is
	// the zone of each site.
	Endpoints string
	Zones     map[string]string
	// Writes is set for what carries the calls that write, and they alone.
	Writes bool
}

// What a Target counts besides.
const (
	// Ignored counts rows of tables that no Split carries.
	Ignored executor.Counter = "ignored"
	// Refused counts refusals of clients: of what is unconfirmed, or good.
	Refused executor.Counter = "refused"
	// Silent counts clients that did not answer while Put waited.
	Silent executor.Counter = "silent"
)

func (o *Options) complete() error {
	o.Name = cmp.Or(o.Name, "xds")
	o.Wait = cmp.Or(o.Wait, time.Second)
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Metrics == nil {
		o.Metrics = executor.NoMetrics{}
	}
	if len(o.Splits) == 0 || o.Wait < 0 {
		return fmt.Errorf("xds: splits are needed, and no negative time: %w", router.ErrOptions)
	}
	for i := range o.Splits {
		s := &o.Splits[i]
		route := s.RouteConfig != "" && s.Route != "" && len(s.Clusters) > 0
		zones := s.Endpoints != "" && len(s.Zones) > 0
		if s.Link.From == "" || s.Link.To == "" || route == zones {
			return fmt.Errorf("xds: split %d, %+v: expected a link, and a route with clusters or endpoints with zones: %w", i, s.Link, router.ErrOptions)
		}
		if err := s.within(&o.Base); err != nil {
			return err
		}
	}
	return nil
}

// sites maps sites to what stands for them.
func (s *Split) sites() map[string]string {
	if s.Endpoints != "" {
		return s.Zones
	}
	return s.Clusters
}

package xds

import (
	"context"
	"fmt"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"penstock/consumers/executor/router"
	"penstock/consumers/executor/router/routertest"
	"penstock/infra/shares"
)

var (
	second   = shares.Link{From: routertest.Frontend, FromSite: routertest.East, To: "cart"}
	checkout = shares.Link{From: routertest.Checkout, FromSite: routertest.East, To: routertest.Search}
)

// The splits of the world: two routes with weighted clusters, and a cluster with
// localities.
func splits() []Split {
	clusters := map[string]string{"east": "search-east", "north": "search-north", "west": "search-west"}
	return []Split{
		{Link: routertest.Link, RouteConfig: "main", Route: "search", Clusters: clusters},
		{Link: checkout, RouteConfig: "main", Route: "checkout", Clusters: clusters},
		{Link: second, Endpoints: "cart", Zones: map[string]string{"east": "e", "north": "n", "west": "w"}},
	}
}

func weighted(name string) *routev3.Route {
	w := &routev3.WeightedCluster{}
	for _, cluster := range []string{"search-east", "search-north", "search-west", "search-canary"} {
		weight := uint32(100)
		if cluster == "search-canary" { // it stands for no site
			weight = 0
		}
		w.Clusters = append(w.Clusters, &routev3.WeightedCluster_ClusterWeight{Name: cluster, Weight: wrapperspb.UInt32(weight)})
	}
	return &routev3.Route{
		Name:   name,
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/" + name}},
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_WeightedClusters{WeightedClusters: w}}},
	}
}

func ads() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}

func endpoints(name string) *endpointv3.ClusterLoadAssignment {
	e := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	for i, zone := range []string{"e", "n", "w"} {
		for priority := range uint32(2) { // the second stands in for the first
			e.Endpoints = append(e.Endpoints, &endpointv3.LocalityLbEndpoints{
				Locality: &corev3.Locality{Zone: zone}, Priority: priority, LoadBalancingWeight: wrapperspb.UInt32(7),
				LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address(8000 + uint32(i))}}}},
			})
		}
	}
	return e
}

func address(port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

func base(t *testing.T) Base {
	t.Helper()
	manager, err := anypb.New(&hcmv3.HttpConnectionManager{
		StatPrefix:     "in",
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: ads(), RouteConfigName: "main"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := Base{
		Listeners: []*listenerv3.Listener{{
			Name: "in", Address: address(10000),
			FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
				Name: "envoy.filters.network.http_connection_manager", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: manager},
			}}}},
		}},
		Routes: []*routev3.RouteConfiguration{{Name: "main", VirtualHosts: []*routev3.VirtualHost{{
			Name: "all", Domains: []string{"*"}, Routes: []*routev3.Route{weighted("search"), weighted("checkout"), weighted("foreign")},
		}}}},
		Endpoints: []*endpointv3.ClusterLoadAssignment{endpoints("cart"), endpoints("other")},
	}
	for _, name := range []string{"cart", "other"} {
		b.Clusters = append(b.Clusters, &clusterv3.Cluster{
			Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads()},
			CommonLbConfig: &clusterv3.Cluster_CommonLbConfig{LocalityConfigSpecifier: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig_{
				LocalityWeightedLbConfig: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig{},
			}},
		})
	}
	return b
}

// world is a target with a server and a client of each kind.
type world struct {
	t            *testing.T
	target       *Target
	conn         *grpc.ClientConn
	whole, delta *client

	requests routertest.Requests // by an Envoy

	mu   sync.Mutex
	down map[string]bool
}

// open starts a target and its server; follow has clients follow it.
func open(t *testing.T, edit func(o *Options)) *world {
	t.Helper()
	w := &world{t: t, down: map[string]bool{}}
	w.requests.Weights = w.up
	o := Options{
		Base: base(t), Splits: splits(), Wait: 10 * time.Second,
		Ready: func(_ context.Context, r shares.Replica) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.down[r.Site] {
				return fmt.Errorf("%s: %w", r.Site, router.ErrNotReady)
			}
			return nil
		},
		Running: w.requests.Running,
	}
	if edit != nil {
		edit(&o)
	}
	var err error
	if w.target, err = New(o); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	w.target.Register(context.Background(), s)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	if w.conn, err = grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.conn.Close() })
	return w
}

func (w *world) follow(whole, delta *client) *world {
	w.t.Helper()
	delta.delta = true
	w.whole, w.delta = follow(w.t, w.conn, whole), follow(w.t, w.conn, delta)
	w.settled(w.whole)
	w.settled(w.delta)
	return w
}

// settled waits until a client has got all it asked for, and the target knows it.
func (w *world) settled(c *client) {
	w.t.Helper()
	late := time.Now().Add(20 * time.Second)
	for c.responses.Load() < int64(len(asked)) || w.unanswered() > 0 {
		if time.Now().After(late) {
			w.t.Fatal("a client did not get all it asked for")
		}
		time.Sleep(time.Millisecond)
	}
}

func (w *world) unanswered() (n int) {
	w.target.mu.Lock()
	defer w.target.mu.Unlock()
	for _, s := range w.target.streams {
		n += len(s.sent)
	}
	return n
}

func (w *world) split(l shares.Link) *Split {
	return w.target.splits(func(s *Split) bool { return s.Link == l })[0]
}

// up are the weights that an Envoy has, of sites that are up.
func (w *world) up(l shares.Link) map[string]int64 {
	w.t.Helper()
	weights := w.whole.weights(w.split(l))
	if others := w.delta.weights(w.split(l)); !maps.Equal(weights, others) {
		w.t.Errorf("%+v: clients disagree, %v and %v", l, weights, others)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	up := map[string]int64{}
	for site, weight := range weights {
		if !w.down[site] {
			up[site] = int64(weight)
		}
	}
	return up
}

func (w *world) suite() routertest.World {
	return routertest.World{
		Target: w.target, Second: second, Resolution: 1. / Units,
		Send: w.requests.Send, Hold: w.requests.Hold,
		Up: func(site string, up bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.down[site] = !up
		},
		Foreign: func() string {
			ours := []*Split{w.split(routertest.Link), w.split(second)}
			return w.whole.frozen(ours) + w.delta.frozen(ours)
		},
	}
}

// TestXDSIsATarget runs the suite with a client of each variant.
func TestXDSIsATarget(t *testing.T) {
	t.Parallel()
	routertest.Run(t, func(t *testing.T) routertest.World {
		return open(t, nil).follow(&client{}, &client{}).suite()
	})
}

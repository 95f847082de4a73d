package xds

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	statusv3 "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// client follows a target as an Envoy does, in one variant or the other: it takes
// responses over one aggregated stream and acknowledges or refuses each.
type client struct {
	t     *testing.T
	delta bool
	// judge refuses a response by its error. nil: all is taken.
	judge func(held Base) error
	// mute responses are not answered until it is closed. nil: never.
	mute chan struct{}

	refusals, responses atomic.Int64
	ended               chan error // the stream's end

	mu   sync.Mutex
	held map[string]map[string]validated // by type and name
}

// follow opens the stream.
func follow(t *testing.T, conn grpc.ClientConnInterface, c *client) *client {
	t.Helper()
	c.t, c.ended, c.held = t, make(chan error, 1), map[string]map[string]validated{}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); <-c.ended })
	api := discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
	run := c.runWhole
	if c.delta {
		run = c.runDelta
	}
	go func() {
		err := run(ctx, api)
		c.ended <- err
		close(c.ended)
	}()
	return c
}

// asked are the types with the names that a client asks for.
var asked = []struct {
	url   string
	names []string
}{
	{resource.ClusterType, nil},
	{resource.EndpointType, []string{"cart", "other"}},
	{resource.ListenerType, nil},
	{resource.RouteType, []string{"main"}},
}

func (c *client) runWhole(ctx context.Context, api discoveryv3.AggregatedDiscoveryServiceClient) error {
	s, err := api.StreamAggregatedResources(ctx)
	if err != nil {
		return err
	}
	versions, names := map[string]string{}, map[string][]string{}
	for _, a := range asked {
		names[a.url] = a.names
		if err := s.Send(&discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: "whole"}, TypeUrl: a.url, ResourceNames: a.names}); err != nil {
			return err
		}
	}
	for {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		fault := c.take(r.GetTypeUrl(), r.GetResources(), nil)
		if fault == nil {
			versions[r.GetTypeUrl()] = r.GetVersionInfo()
		}
		if err := s.Send(&discoveryv3.DiscoveryRequest{
			TypeUrl: r.GetTypeUrl(), ResourceNames: names[r.GetTypeUrl()], ResponseNonce: r.GetNonce(), VersionInfo: versions[r.GetTypeUrl()], ErrorDetail: fault,
		}); err != nil {
			return err
		}
	}
}

func (c *client) runDelta(ctx context.Context, api discoveryv3.AggregatedDiscoveryServiceClient) error {
	s, err := api.DeltaAggregatedResources(ctx)
	if err != nil {
		return err
	}
	for _, a := range asked {
		if err := s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "delta"}, TypeUrl: a.url, ResourceNamesSubscribe: a.names}); err != nil {
			return err
		}
	}
	for {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		var all []*anypb.Any
		for _, one := range r.GetResources() {
			all = append(all, one.GetResource())
		}
		fault := c.take(r.GetTypeUrl(), all, r.GetRemovedResources())
		if err := s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce(), ErrorDetail: fault}); err != nil {
			return err
		}
	}
}

// take brings a response into force, or says why not.
func (c *client) take(url string, all []*anypb.Any, removed []string) *statusv3.Status {
	c.responses.Add(1)
	if c.mute != nil && c.responses.Load() > int64(len(asked)) {
		<-c.mute
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	next := map[string]validated{}
	for name, m := range c.held[url] {
		next[name] = m
	}
	for _, a := range all {
		m, err := a.UnmarshalNew()
		v, ok := m.(validated)
		if err != nil || !ok || v.ValidateAll() != nil {
			c.t.Errorf("%v: %v", a.GetTypeUrl(), err)
			continue
		}
		next[cachev3.GetResourceName(v)] = v
	}
	for _, name := range removed {
		c.t.Errorf("%s was removed", name)
	}
	before := c.held[url]
	c.held[url] = next
	if c.judge == nil {
		return nil
	}
	if err := c.judge(c.base()); err != nil {
		c.held[url] = before
		c.refusals.Add(1)
		return &statusv3.Status{Code: 3, Message: err.Error()}
	}
	return nil
}

// base is what the client has in force. The lock is held.
func (c *client) base() Base {
	var b Base
	for _, of := range c.held {
		for _, m := range of {
			switch m := m.(type) {
			case *listenerv3.Listener:
				b.Listeners = append(b.Listeners, m)
			case *routev3.RouteConfiguration:
				b.Routes = append(b.Routes, m)
			case *clusterv3.Cluster:
				b.Clusters = append(b.Clusters, m)
			case *endpointv3.ClusterLoadAssignment:
				b.Endpoints = append(b.Endpoints, m)
			}
		}
	}
	return b
}

// weights are what the client has in force for a split, by site.
func (c *client) weights(s *Split) map[string]uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.base()
	found, err := s.slots(&b)
	if err != nil {
		c.t.Error(err)
	}
	weights := map[string]uint32{}
	for site, all := range found {
		weights[site] = (*all[0]).GetValue()
	}
	return weights
}

// frozen is all that the client has in force, byte for byte, but the weights of
// some splits.
func (c *client) frozen(but []*Split) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.base()
	b = b.copy()
	for _, s := range but {
		found, err := s.slots(&b)
		if err != nil {
			c.t.Error(err)
		}
		for _, all := range found {
			for _, slot := range all {
				*slot = nil
			}
		}
	}
	byName := map[string]string{}
	note := func(m validated) {
		bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			c.t.Error(err)
		}
		byName[string(m.ProtoReflect().Descriptor().Name())+" "+cachev3.GetResourceName(m)] = string(bytes)
	}
	for _, m := range b.Listeners {
		note(m)
	}
	for _, m := range b.Routes {
		note(m)
	}
	for _, m := range b.Clusters {
		note(m)
	}
	for _, m := range b.Endpoints {
		note(m)
	}
	return fmt.Sprintf("%q", byName)
}

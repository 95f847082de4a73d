package xds

import (
	"errors"
	"fmt"
	"strconv"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
)

// served is a configuration with its snapshot.
type served struct {
	base     Base
	snapshot *cachev3.Snapshot
	versions map[string]string // by type
}

func clone[M proto.Message](all []M) []M {
	out := make([]M, len(all))
	for i, m := range all {
		out[i], _ = proto.Clone(m).(M)
	}
	return out
}

// clone copies what weights are in; the rest is shared, since nobody changes it.
func (b *Base) clone() Base {
	return Base{Listeners: b.Listeners, Clusters: b.Clusters, Routes: clone(b.Routes), Endpoints: clone(b.Endpoints)}
}

// copy copies all of it.
func (b *Base) copy() Base {
	return Base{
		clone[*listenerv3.Listener](b.Listeners), clone[*routev3.RouteConfiguration](b.Routes),
		clone[*clusterv3.Cluster](b.Clusters), clone[*endpointv3.ClusterLoadAssignment](b.Endpoints),
	}
}

// validated is what all generated messages are.
type validated interface {
	types.Resource
	ValidateAll() error
}

func items[M validated](all []M) ([]types.Resource, error) {
	out := make([]types.Resource, len(all))
	var faults error
	for i, m := range all {
		out[i] = m
		if err := m.ValidateAll(); err != nil {
			faults = errors.Join(faults, fmt.Errorf("%s: %w: %w", cachev3.GetResourceName(m), ErrInvalid, err))
		}
	}
	return out, faults
}

// equal compares resources of one type, which are in the same order.
func equal[M proto.Message](a, b []M) bool {
	for i := range a {
		if !proto.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// serve makes a snapshot of a configuration. Types in which it is equal to the
// one before keep their version.
func serve(b Base, before *served, number uint64) (*served, error) {
	s := &served{base: b, versions: map[string]string{}, snapshot: &cachev3.Snapshot{}}
	listeners, e1 := items(b.Listeners)
	routes, e2 := items(b.Routes)
	clusters, e3 := items(b.Clusters)
	endpoints, e4 := items(b.Endpoints)
	if err := errors.Join(e1, e2, e3, e4); err != nil {
		return nil, err
	}
	version := strconv.FormatUint(number, 10)
	for _, of := range [...]struct {
		url   string
		kind  types.ResponseType
		items []types.Resource
		same  func() bool
	}{
		{resource.ListenerType, types.Listener, listeners, func() bool { return true }},
		{resource.RouteType, types.Route, routes, func() bool { return equal(before.base.Routes, b.Routes) }},
		{resource.ClusterType, types.Cluster, clusters, func() bool { return true }},
		{resource.EndpointType, types.Endpoint, endpoints, func() bool { return equal(before.base.Endpoints, b.Endpoints) }},
	} {
		s.versions[of.url] = version
		if before != nil && of.same() {
			s.versions[of.url] = before.versions[of.url]
		}
		s.snapshot.Resources[of.kind] = cachev3.NewResources(s.versions[of.url], of.items)
	}
	if err := s.snapshot.Consistent(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return s, nil
}

// changed returns the names of the resources of a type that are not as in another
// configuration.
func (s *served) changed(from *served, url string) []string {
	var names []string
	switch url {
	case resource.RouteType:
		for i, r := range s.base.Routes {
			if !proto.Equal(r, from.base.Routes[i]) {
				names = append(names, r.GetName())
			}
		}
	case resource.EndpointType:
		for i, e := range s.base.Endpoints {
			if !proto.Equal(e, from.base.Endpoints[i]) {
				names = append(names, e.GetClusterName())
			}
		}
	}
	return names
}

package xds

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/goccy/go-yaml"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// document is a configuration in a file: lists of resources, each as Envoy's own
// configuration writes them.
type document struct {
	Listeners []json.RawMessage `json:"listeners"`
	Routes    []json.RawMessage `json:"routes"`
	Clusters  []json.RawMessage `json:"clusters"`
	Endpoints []json.RawMessage `json:"endpoints"`
}

// ReadBase reads a configuration in YAML or JSON: the lists listeners, routes,
// clusters and endpoints, of resources as Envoy's own configuration writes them.
// ErrInvalid, with all that can't be read.
func ReadBase(text []byte) (b Base, err error) {
	content, err := yaml.YAMLToJSON(text)
	if err != nil {
		return b, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	var all document
	if err := d.Decode(&all); err != nil {
		return b, fmt.Errorf("%w: expected lists of listeners, routes, clusters and endpoints: %w", ErrInvalid, err)
	}
	var faults [4]error
	b.Listeners, faults[0] = read[listenerv3.Listener]("listeners", all.Listeners)
	b.Routes, faults[1] = read[routev3.RouteConfiguration]("routes", all.Routes)
	b.Clusters, faults[2] = read[clusterv3.Cluster]("clusters", all.Clusters)
	b.Endpoints, faults[3] = read[endpointv3.ClusterLoadAssignment]("endpoints", all.Endpoints)
	return b, errors.Join(faults[:]...)
}

// read reads the resources of one list.
func read[T any, M interface {
	*T
	proto.Message
}](list string, all []json.RawMessage) (out []M, faults error) {
	for i, text := range all {
		m := M(new(T))
		if err := protojson.Unmarshal(text, m); err != nil {
			faults = errors.Join(faults, fmt.Errorf("%s[%d]: %w: %w", list, i, ErrInvalid, err))
		}
		out = append(out, m)
	}
	return out, faults
}

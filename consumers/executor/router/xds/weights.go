package xds

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"penstock/consumers/executor/router"
	"penstock/infra/shares"
)

// slots are the weights of a configuration that stand for a split's sites; a site
// may have several localities, one for each subzone.
type slots map[string][]**wrapperspb.UInt32Value

// slots finds them in a configuration.
func (s *Split) slots(b *Base) (slots, error) {
	found := slots{}
	if s.Endpoints != "" {
		i := slices.IndexFunc(b.Endpoints, func(e *endpointv3.ClusterLoadAssignment) bool { return e.GetClusterName() == s.Endpoints })
		if i < 0 {
			return nil, fmt.Errorf("xds: endpoints %.80q: not in the configuration: %w", s.Endpoints, router.ErrOptions)
		}
		for site, zone := range s.Zones {
			for _, l := range b.Endpoints[i].GetEndpoints() {
				if l.GetLocality().GetZone() == zone && l.GetPriority() == 0 { // others stand in for these
					found[site] = append(found[site], &l.LoadBalancingWeight)
				}
			}
		}
		return found, nil
	}
	weighted := s.weighted(b)
	if weighted == nil {
		return nil, fmt.Errorf("xds: route %.80q of %.80q: expected a route to weighted clusters: %w", s.Route, s.RouteConfig, router.ErrOptions)
	}
	for site, cluster := range s.Clusters {
		for _, c := range weighted.GetClusters() {
			if c.GetName() == cluster {
				found[site] = append(found[site], &c.Weight)
			}
		}
	}
	return found, nil
}

func (s *Split) weighted(b *Base) *routev3.WeightedCluster {
	for _, config := range b.Routes {
		if config.GetName() != s.RouteConfig {
			continue
		}
		for _, host := range config.GetVirtualHosts() {
			for _, r := range host.GetRoutes() {
				if r.GetName() == s.Route {
					return r.GetRoute().GetWeightedClusters()
				}
			}
		}
	}
	return nil
}

// within checks that all the split names is in a configuration.
func (s *Split) within(b *Base) error {
	found, err := s.slots(b)
	if err != nil {
		return err
	}
	for site, name := range s.sites() {
		if len(found[site]) == 0 {
			return fmt.Errorf("xds: %s of site %.80q: not in the configuration: %w", name, site, router.ErrOptions)
		}
	}
	if s.Endpoints != "" && !slices.ContainsFunc(b.Clusters, s.weighs) {
		return fmt.Errorf("xds: cluster of endpoints %.80q: expected one that weighs its localities: %w", s.Endpoints, router.ErrOptions)
	}
	return nil
}

// weighs says whether a cluster takes the split's endpoints and minds the weights
// of their localities.
func (s *Split) weighs(c *clusterv3.Cluster) bool {
	name := cmp.Or(c.GetEdsClusterConfig().GetServiceName(), c.GetName())
	return name == s.Endpoints && (c.GetCommonLbConfig().GetLocalityWeightedLbConfig() != nil || c.GetLoadBalancingPolicy() != nil)
}

// units is what the weights of the split's sites are to sum up to. A route may say
// what all its clusters do.
func (s *Split) units(b *Base) int {
	if s.Endpoints != "" {
		return Units
	}
	weighted := s.weighted(b)
	all := int(weighted.GetTotalWeight().GetValue()) //nolint:staticcheck // Old configurations have it, and clients mind it.
	if all == 0 {
		return Units
	}
	ours := slices.Collect(maps.Values(s.Clusters))
	for _, c := range weighted.GetClusters() {
		if !slices.Contains(ours, c.GetName()) {
			all -= int(c.GetWeight().GetValue())
		}
	}
	return all
}

// set writes the weights for shares. Those of clusters and localities that stand
// for no site of the split stay. A locality without load has no weight at all: 0 is
// not valid there.
func (s *Split) set(b *Base, split map[string]float64) error {
	found, err := s.slots(b)
	if err != nil {
		return err
	}
	var at []**wrapperspb.UInt32Value
	var parts []float64
	for _, site := range slices.Sorted(maps.Keys(found)) {
		for _, slot := range found[site] {
			at, parts = append(at, slot), append(parts, split[site]/float64(len(found[site])))
		}
	}
	units, err := shares.Remainder(parts, s.units(b))
	if err != nil {
		return fmt.Errorf("from %.80q to %.80q: %w", s.Link.FromSite, s.Link.To, err)
	}
	for i, slot := range at {
		*slot = wrapperspb.UInt32(uint32(units[i]))
		if units[i] == 0 && s.Endpoints != "" {
			*slot = nil
		}
	}
	return nil
}

// shares returns what the weights come to.
func (s *Split) shares(b *Base) (map[string]float64, error) {
	found, err := s.slots(b)
	if err != nil {
		return nil, err
	}
	split, sum := map[string]float64{}, 0.0
	for site, all := range found {
		for _, slot := range all {
			split[site] += float64((*slot).GetValue())
			sum += float64((*slot).GetValue())
		}
	}
	for site := range split {
		if sum > 0 {
			split[site] /= sum
		}
	}
	return split, nil
}

package haproxy

import (
	"fmt"

	"penstock/infra/shares"
)

// mostWeight is the greatest weight of a server.
const mostWeight = 256

// weights returns the weights of a backend's servers for the shares of its sites,
// by server name. servers are those that HAProxy has.
func (b *Backend) weights(split map[string]float64, servers map[string]*server) (map[string]int, error) {
	var names []string
	var parts []float64
	most := 0.0
	sum := 0.0
	for _, site := range b.sites() {
		sum += split[site]
	}
	for _, site := range b.sites() {
		active := b.active(site, servers)
		if split[site] > 0 && len(active) == 0 {
			return nil, fmt.Errorf("backend %s: no server of site %.80q: %w", b.Name, site, shares.ErrAbsent)
		}
		for _, s := range active {
			part := split[site] / sum / float64(len(active))
			names, parts, most = append(names, s.name), append(parts, part), max(most, part)
		}
	}
	if most == 0 {
		return nil, fmt.Errorf("backend %s: no site has a share: %w", b.Name, shares.ErrShares)
	}
	given, err := shares.Remainder(parts, int(mostWeight/most))
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", b.Name, err)
	}
	weights := make(map[string]int, len(servers))
	for i, name := range names {
		weights[name] = given[i]
	}
	for _, site := range b.sites() {
		b.beside(site, servers, weights)
	}
	return weights, nil
}

// beside gives servers of a site that can't take requests now the weight of those
// that can.
func (b *Backend) beside(site string, servers map[string]*server, weights map[string]int) {
	weight := 0
	for _, s := range b.active(site, servers) {
		weight = max(weight, weights[s.name])
	}
	for _, name := range b.Servers[site] {
		if _, has := weights[name]; !has && servers[name] != nil {
			weights[name] = weight
		}
	}
}

// active returns the servers of a site that can take requests; all that there are
// if none can.
func (b *Backend) active(site string, servers map[string]*server) []*server {
	var usable, all []*server
	for _, name := range b.Servers[site] {
		s := servers[name]
		if s == nil {
			continue
		}
		all = append(all, s)
		if s.usable() {
			usable = append(usable, s)
		}
	}
	if len(usable) > 0 {
		return usable
	}
	return all
}

// shares returns what the weights of servers come to, by site; none if all are 0.
func (b *Backend) shares(servers map[string]*server) map[string]float64 {
	split, sum := map[string]float64{}, 0
	for _, site := range b.sites() {
		split[site] = 0
		for _, s := range b.active(site, servers) {
			split[site] += float64(s.weight)
			sum += s.weight
		}
	}
	if sum == 0 {
		return nil
	}
	for site := range split {
		split[site] /= float64(sum)
	}
	return split
}

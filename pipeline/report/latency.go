package report

import (
	"fmt"
	"slices"

	"penstock/consumers/decider/baselines"
	"penstock/schemas/sphere"
)

// Latency is a measured table of round trips between sites and regions, as
// [LoadLatency] reads it.
type Latency struct {
	file    string
	regions []region       // in order of their first rows
	index   map[string]int // of regions
	rows    []measured
}

// region is where users are measured from.
type region struct {
	name   string
	at     sphere.Vector
	placed bool
	line   int // of its first row
}

type measured struct {
	site   string
	region int
	ms     float64
}

// RTTs answers how long a round trip between a place and a site takes: by the
// formula of distance, or by a measured table. Answers are kept by place; it is
// not safe for concurrent use.
type RTTs struct {
	source  LatencySource
	sites   []sphere.Vector
	regions []sphere.Vector
	table   []int32 // µs by region and site, missing where the table has no row
	us      []int32 // by place and site
	formula []bool  // by place and site: the table had nothing
}

const missing int32 = -1

// LatencySource says where latency delays come from.
type LatencySource struct {
	// File of the measured table, empty for the formula alone.
	File    string `json:"file,omitempty"`
	Regions int    `json:"regions,omitempty"`
	Pairs   int    `json:"pairs,omitempty"` // of a site and a region, measured
	// Missing are pairs without a row: the formula stands in. Requests are those of
	// the report's own strategy that it stood in for.
	Missing  []string `json:"missing_pairs,omitempty"`
	Requests int64    `json:"requests_by_formula,omitempty"`
	// Foreign sites are in the table and not in the configuration.
	Foreign []string `json:"foreign_sites,omitempty"`
}

// ByFormula returns round trips by the formula of distance, sphere.RTT.
func ByFormula(sites []Site) *RTTs {
	r := &RTTs{}
	for _, s := range sites {
		r.sites = append(r.sites, sphere.FromDegrees(s.Lat, s.Lon))
	}
	return r
}

// Bind returns round trips by the table, for sites in config order. A user
// belongs to the nearest region, the first in the file of equally near ones; a
// region with a site's name is where the site is, unless its rows say otherwise.
// Pairs without a row fall back to the formula. It fails with ErrLatency for a
// region of which nobody says where it is, or if no row names a configured site.
func (l *Latency) Bind(sites []Site) (*RTTs, error) {
	r := ByFormula(sites)
	r.source.File, r.source.Regions = l.file, len(l.regions)
	index := map[string]int{}
	for i, s := range sites {
		index[s.Name] = i
	}
	for _, g := range l.regions {
		at := g.at
		if !g.placed {
			i, ok := index[g.name]
			if !ok {
				return nil, fault{
					l.file, g.line, "lat", fmt.Sprintf("nothing for region %q", g.name),
					"a latitude and longitude in one of its rows, since no site has its name",
				}
			}
			at = r.sites[i]
		}
		r.regions = append(r.regions, at)
	}
	r.fill(l, index)
	if r.source.Pairs == 0 {
		return nil, fault{l.file, 2, "site", fmt.Sprintf("none of %q", r.source.Foreign), "a site of the configuration in at least one row"}
	}
	for g := range l.regions {
		for s := range sites {
			if r.table[g*len(sites)+s] == missing {
				r.source.Missing = append(r.source.Missing, sites[s].Name+" – "+l.regions[g].name)
			}
		}
	}
	return r, nil
}

// fill takes the rows of configured sites into the table.
func (r *RTTs) fill(l *Latency, index map[string]int) {
	r.table = slices.Repeat([]int32{missing}, len(l.regions)*len(r.sites))
	for _, m := range l.rows {
		s, ok := index[m.site]
		if !ok {
			if !slices.Contains(r.source.Foreign, m.site) {
				r.source.Foreign = append(r.source.Foreign, m.site)
			}
			continue
		}
		r.table[m.region*len(r.sites)+s] = int32(float64(m.ms*1000) + 0.5)
		r.source.Pairs++
	}
}

// Source says where the delays come from.
func (r *RTTs) Source() LatencySource { return r.source }

// Between returns the round trip in µs between a place and a site; measured is
// false where the formula gives it.
func (r *RTTs) Between(at sphere.Vector, site int) (us int64, measured bool) {
	if len(r.regions) > 0 {
		if t := r.table[r.region(at)*len(r.sites)+site]; t != missing {
			return int64(t), true
		}
	}
	return int64(float64(sphere.RTT(sphere.Distance(at, r.sites[site]))*1000) + 0.5), false
}

// region returns the region nearest to a place.
func (r *RTTs) region(at sphere.Vector) int {
	best, least := 0, 0.0
	for i, g := range r.regions {
		if km := sphere.Distance(at, g); i == 0 || km < least {
			best, least = i, km
		}
	}
	return best
}

// At returns the round trip in µs between a numbered place and a site. Each is
// worked out once; a caller that resets the places calls Forget.
func (r *RTTs) At(p *baselines.Places, place int32, site int16) int64 {
	for len(r.us) <= int(place)*len(r.sites) {
		at := p.At(int32(len(r.us) / max(len(r.sites), 1)))
		for s := range r.sites {
			us, ok := r.Between(at, s)
			r.us = append(r.us, int32(us))
			r.formula = append(r.formula, !ok)
		}
	}
	return int64(r.us[int(place)*len(r.sites)+int(site)])
}

// stoodIn reports whether the formula stood in for a missing row; At has been
// asked before.
func (r *RTTs) stoodIn(place int32, site int16) bool {
	return len(r.regions) > 0 && r.formula[int(place)*len(r.sites)+int(site)]
}

// Forget drops what is kept by place.
func (r *RTTs) Forget() { r.us, r.formula = r.us[:0], r.formula[:0] }

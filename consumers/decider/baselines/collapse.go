package baselines

import (
	"cmp"
	"slices"

	"penstock/schemas/sphere"
)

// collapse is phase 3.
func (v *Volley) collapse() {
	loads := make([]int64, len(v.ledger.sites))
	for i := range v.points[:v.fixed] {
		p := &v.points[i]
		p.rank, p.site = 0, nearest(v.ledger.at, p.x)
		loads[p.site] += v.ledger.nodes[p.owner].bytes
	}
	for v.relieve(loads) {
		// It ends: nobody goes on more often than there are other sites.
		continue
	}
}

// relieve sends on what does not fit, once from each site in config order, and
// reports whether anything went.
func (v *Volley) relieve(loads []int64) bool {
	went := false
	for site, s := range v.ledger.sites {
		if s.Capacity == 0 || loads[site] <= s.Capacity {
			continue
		}
		for _, i := range v.leastAsked(int16(site)) {
			if loads[site] <= s.Capacity {
				break
			}
			p := &v.points[i]
			bytes := v.ledger.nodes[p.owner].bytes
			p.rank++
			p.site = ranked(v.ledger.at, p.x, p.rank)
			loads[site] -= bytes
			loads[p.site] += bytes
			went = true
		}
	}
	return went
}

// leastAsked returns the points at a site that could go on, least asked first.
// One without bytes would relieve nothing.
func (v *Volley) leastAsked(site int16) []int32 {
	var out []int32
	for i := range v.points[:v.fixed] {
		p := &v.points[i]
		if p.site == site && int(p.rank) < len(v.ledger.sites)-1 && v.ledger.nodes[p.owner].bytes > 0 {
			out = append(out, int32(i))
		}
	}
	slices.SortFunc(out, func(a, b int32) int {
		return cmp.Or(cmp.Compare(v.requests(a), v.requests(b)), cmp.Compare(v.points[a].owner, v.points[b].owner))
	})
	return out
}

func (v *Volley) requests(i int32) int64 { return v.ledger.nodes[v.points[i].owner].requests }

// ranked returns the site that is the rank-th nearest to x, from 0, equally near
// ones in config order.
func ranked(sites []sphere.Vector, x sphere.Vector, rank int16) int16 {
	order := make([]int16, len(sites))
	km := make([]float64, len(sites))
	for i, s := range sites {
		order[i], km[i] = int16(i), sphere.Distance(x, s)
	}
	slices.SortStableFunc(order, func(a, b int16) int { return cmp.Compare(km[a], km[b]) })
	return order[rank]
}

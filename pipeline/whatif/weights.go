package whatif

import "math"

// weights are NDW and NSW of PAPERS §1.2 of every owner to every site, with
// each user where it was last seen: row-major by id.
type weights struct {
	sites    int
	ndw, nsw []float64
}

// weigh computes them anew from the social levels of all windows so far. It is
// written down apart from the policy, so that the two can be checked against
// each other.
func (r *Recording) weigh(f *Frame) *weights {
	n := len(f.sites)
	w := &weights{sites: n, ndw: make([]float64, n*len(r.place)), nsw: make([]float64, n*len(r.place))}
	raw := make([]float64, n)
	for _, id := range f.all {
		lo := int(id) * n
		clear(raw)
		if p := r.place[id]; p != nowhere {
			for s := range n {
				raw[s] = r.geo.distance(p, s)
			}
		}
		spread(raw, w.ndw[lo:lo+n])
		clear(raw)
		for i, user := range r.soc[id].users {
			p := r.place[user]
			if p == nowhere {
				continue
			}
			for s := range n {
				raw[s] += float64(float64(r.soc[id].level[i]) * r.geo.distance(p, s))
			}
		}
		spread(raw, w.nsw[lo:lo+n])
	}
	return w
}

// spread writes where each value lies between the least and the greatest.
func spread(raw, out []float64) {
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range raw {
		least, most = min(least, v), max(most, v)
	}
	for s, v := range raw {
		out[s] = 0
		if most > least {
			out[s] = (v - least) / (most - least)
		}
	}
}

// edge is E = alpha·NDW + beta·NSW, rounded to 1e-9 as policies compare it.
func (w *weights) edge(id int32, site int16, alpha, beta float64) float64 {
	i := int(id)*w.sites + int(site)
	return math.Round((float64(alpha*w.ndw[i])+float64(beta*w.nsw[i]))*1e9) / 1e9
}

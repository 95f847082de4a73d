package split

import (
	"math"

	"penstock/schemas/control"
)

// probeParts is the resolution of probes: their shares are small.
const probeParts = 10_000

// probes adds to a table the probes that its rows need, and reports whether they
// differ enough from those ordered last.
//
// A replica, or a link between two sites, needs probes if the calls that it gets
// by the tables are fewer than MinSamples in History windows. Of the rows that
// could probe a replica the one with most calls does. Its budget is
// Config.Probes.Share of its calls, over the sites that need it: Floor of an equal
// part each, the rest by 1 ÷ delay, so that the paths that are good are known
// first and the others not never (PAPERS §4.2).
func (w *decision) probes(i int, table *control.SplitTable) (changed bool) {
	t := w.t
	if !(t.config.Probes.Share > 0) || t.config.Policy == Closest || t.config.Policy == LocalityFailover {
		return false
	}
	need := w.needs()
	for a, site := range t.config.Sites {
		for e := range t.state.edges {
			x := &t.state.edges[e]
			row := &x.rows[a]
			if x.from != i || row.parts == nil || w.thin[[2]int{e, a}] || t.config.Policy == Redirect && i != entryComponent {
				continue
			}
			order := w.probesOf(need, e, a)
			for n, share := range order {
				old := 0
				if row.probes != nil {
					old = row.probes[n]
				}
				if old > 0 && share > 0 && 2*share >= old && share <= 2*old {
					// Nearly as before: what was ordered stays as it is.
					share = old
				}
				changed = changed || share != old
				if share > 0 {
					table.Probes = append(table.Probes, control.Probe{
						FromSite: site.Name, To: t.state.components[x.to].name, Site: t.config.Sites[n].Name, Share: float64(share) / probeParts,
					})
				}
			}
		}
	}
	return changed
}

// noteProbes keeps what was ordered.
func (w *decision) noteProbes(i int, table *control.SplitTable) {
	t := w.t
	for e := range t.state.edges {
		if x := &t.state.edges[e]; x.from == i {
			for a := range x.rows {
				x.rows[a].probes = nil
			}
		}
	}
	for _, p := range table.Probes {
		e := t.state.edgeIndex[[2]int{i, t.state.index[p.To]}]
		row := &t.state.edges[e].rows[t.siteIndex[p.FromSite]]
		if row.probes == nil {
			row.probes = make([]int, len(t.config.Sites))
		}
		row.probes[t.siteIndex[p.Site]] = int(math.Round(p.Share * probeParts))
	}
}

// needs is which replicas and links get too few calls by the tables.
type needs struct {
	replica []float64 // calls in History windows, by component · sites + site
	pair    []float64 // the same by from site · sites + to site
	rate    []float64 // calls a second, by edge · sites + from site
	most    []int     // the row (edge · sites + from site) with most calls, by component
	mostOf  []int     // the same by from site
}

func (w *decision) needs() *needs {
	if w.needed != nil {
		return w.needed
	}
	t, m := w.t, len(w.t.config.Sites)
	k := len(t.state.components)
	out := &needs{
		replica: make([]float64, k*m), pair: make([]float64, m*m), rate: make([]float64, len(t.state.edges)*m),
		most: make([]int, k), mostOf: make([]int, m),
	}
	for j := range out.most {
		out.most[j] = -1
	}
	for a := range out.mostOf {
		out.mostOf[a] = -1
	}
	span := float64(t.config.History) * t.config.Window.Seconds()
	for e := range t.state.edges {
		x := &t.state.edges[e]
		for a := range x.rows {
			row := &x.rows[a]
			if row.parts == nil {
				continue
			}
			at := e*m + a
			out.rate[at] = t.rate(x.links[a]...)
			for b, p := range w.nextParts(e, a) {
				calls := out.rate[at] * span * float64(p) / float64(t.config.Resolution)
				out.replica[x.to*m+b] += calls
				out.pair[a*m+b] += calls
			}
			if o := out.most[x.to]; o < 0 || w.worth(out, at) > w.worth(out, o) {
				out.most[x.to] = at
			}
			if o := out.mostOf[a]; o < 0 || w.worth(out, at) > w.worth(out, o) {
				out.mostOf[a] = at
			}
		}
	}
	w.needed = out
	return out
}

// worth is the calls of a row, half as many again if it probes already: so the
// duty does not go to and fro between rows that are nearly alike.
func (w *decision) worth(n *needs, at int) float64 {
	m := len(w.t.config.Sites)
	if w.t.state.edges[at/m].rows[at%m].probes != nil {
		return 1.5 * n.rate[at]
	}
	return n.rate[at]
}

// nextParts is what a row will have in force.
func (w *decision) nextParts(e, a int) []int {
	for i := range w.next {
		if w.next[i].edge == e && w.next[i].site == a {
			return w.next[i].parts
		}
	}
	return w.t.state.edges[e].rows[a].parts
}

// probesOf returns the probes of a row by site, in parts of probeParts.
func (w *decision) probesOf(need *needs, e, a int) []int {
	t, m := w.t, len(w.t.config.Sites)
	x := &t.state.edges[e]
	at := e*m + a
	calls := need.rate[at] * float64(t.config.History) * t.config.Window.Seconds()
	if calls <= 0 {
		return nil
	}
	ok := t.allowed(x.to)
	lacks := make([]float64, m)
	var sum float64
	count := 0
	for n := range m {
		if !ok[n] {
			continue
		}
		// Probes are half as many again as needed, for chance; once begun they go on
		// until there are as many without them.
		begun := x.rows[a].probes != nil && x.rows[a].probes[n] > 0
		least := float64(t.config.MinSamples)
		lack := func(has float64) float64 {
			if has >= least && !begun {
				return 0
			}
			return 1.5*least - has
		}
		if need.most[x.to] == at {
			lacks[n] = max(lacks[n], lack(need.replica[x.to*m+n]))
		}
		if need.mostOf[a] == at {
			lacks[n] = max(lacks[n], lack(need.pair[a*m+n]))
		}
		if lacks[n] > 0 {
			count++
			sum += w.goodness(e, a, n)
		}
	}
	out := make([]int, m)
	for n := range m {
		if lacks[n] <= 0 {
			continue
		}
		part := t.config.Probes.Floor/float64(count) + (1-t.config.Probes.Floor)*w.goodness(e, a, n)/sum
		share := min(lacks[n]/calls, t.config.Probes.Share*part)
		out[n] = max(1, int(share*probeParts))
	}
	return out
}

// goodness is 1 ÷ delay.
func (w *decision) goodness(e, a, n int) float64 {
	x := &w.t.state.edges[e]
	return 1 / max(1, w.t.network(w.estimates, e, a, n)+w.estimates.service[x.to*len(w.t.config.Sites)+n])
}

package split

import (
	"math"

	"penstock/consumers/decider/split/solve"
)

// graph is the call graph of a window as an instance, and where its choices come
// from.
type graph struct {
	in      *solve.Instance
	node    []int   // by component, −1: nobody calls it
	choices []where // by choice of the instance
	circle  []int   // edges that close a circle
}

// where says what a choice decides: rows of edges from a site (of a source), or
// from all.
type where struct {
	edges []int
	site  int // −1: all sites
}

// callGraph is which edges are in use, which of them begin outside.
type callGraph struct {
	active []bool // by edge
	source []bool // by edge: its caller is called by nobody, or it closes a circle
	circle []int
	calls  []int64 // weighted, by edge
	into   []int64 // weighted, by component
}

// order finds the sources. A circle is cut where a walk from the outside, in the
// order in which components were first seen, meets it again: what goes round
// there counts as calls from outside, at the rate that was seen.
func (t *Policy) order() *callGraph {
	s := t.state
	g := &callGraph{
		active: make([]bool, len(s.edges)), source: make([]bool, len(s.edges)),
		calls: make([]int64, len(s.edges)), into: make([]int64, len(s.components)),
	}
	outs := make([][]int, len(s.components))
	for i := range s.edges {
		e := &s.edges[i]
		for a := range e.links {
			for b := range e.links[a] {
				g.calls[i] += t.calls(e.links[a][b])
			}
		}
		if g.active[i] = g.calls[i] > 0; g.active[i] {
			outs[e.from] = append(outs[e.from], i)
			g.into[e.to] += g.calls[i]
		}
	}
	const fresh, open, done = 0, 1, 2
	state := make([]int, len(s.components))
	var walk func(j int)
	walk = func(j int) {
		state[j] = open
		for _, i := range outs[j] {
			switch state[s.edges[i].to] {
			case fresh:
				walk(s.edges[i].to)
			case open:
				g.source[i] = true
				g.circle = append(g.circle, i)
			}
		}
		state[j] = done
	}
	for _, roots := range []bool{true, false} {
		for j := range s.components {
			if state[j] == fresh && (g.into[j] == 0) == roots {
				walk(j)
			}
		}
	}
	for i := range s.edges {
		if g.active[i] && g.into[s.edges[i].from] == 0 {
			g.source[i] = true
		}
	}
	return g
}

// build makes the instance. Calls over a link that is not allowed cost +Inf.
func (t *Policy) build(e *estimates) *graph {
	s, m := t.state, len(t.config.Sites)
	c := t.order()
	g := &graph{node: make([]int, len(s.components)), circle: c.circle}
	in := &solve.Instance{Sites: m}
	for j := range g.node {
		if g.node[j] = -1; c.into[j] == 0 {
			continue
		}
		g.node[j] = in.Components
		in.Components++
		ok := t.allowed(j)
		for n := range m {
			r := j*m + n
			service, limit := e.service[r], e.limit[r]
			if !ok[n] {
				service = math.Inf(1)
			}
			in.Service, in.Capacity = append(in.Service, service), append(in.Capacity, limit)
		}
	}
	g.in = in
	if in.Components == 0 {
		return g
	}
	if t.config.Policy == LP {
		t.curves(g)
	}
	done := make([]bool, len(s.edges))
	for i := range s.edges {
		if !c.active[i] || done[i] {
			continue
		}
		edges := t.together(c, i)
		for _, k := range edges {
			done[k] = true
		}
		t.choose(g, c, e, edges)
	}
	return g
}

// together returns the edges that are decided with edge i: those of the same
// caller to components of the same group.
func (t *Policy) together(c *callGraph, i int) []int {
	s := t.state
	out := []int{i}
	group := s.components[s.edges[i].to].group
	if group < 0 {
		return out
	}
	for k := i + 1; k < len(s.edges); k++ {
		if c.active[k] && c.source[k] == c.source[i] && s.edges[k].from == s.edges[i].from && s.components[s.edges[k].to].group == group {
			out = append(out, k)
		}
	}
	return out
}

// choose adds the choices of edges that are decided together.
func (t *Policy) choose(g *graph, c *callGraph, e *estimates, edges []int) {
	s, m := t.state, len(t.config.Sites)
	from := s.edges[edges[0]].from
	if !c.source[edges[0]] {
		ch := solve.Choice{From: g.node[from]}
		for _, i := range edges {
			cost := make([]float64, 0, m*m)
			for a := range m {
				cost = t.costs(e, i, a, cost)
			}
			ratio := float64(c.calls[i]) / float64(c.into[from])
			ch.Legs = append(ch.Legs, solve.Leg{To: g.node[s.edges[i].to], Ratio: ratio, Cost: cost})
		}
		g.in.Choices = append(g.in.Choices, ch)
		g.choices = append(g.choices, where{edges: edges, site: -1})
		return
	}
	for a := range m {
		ch := solve.Choice{From: solve.Source, Site: a}
		for _, i := range edges {
			rate := t.rate(s.edges[i].links[a]...)
			if ch.Rate == 0 {
				ch.Rate = rate
			}
			if rate == 0 || ch.Rate == 0 {
				continue
			}
			ch.Legs = append(ch.Legs, solve.Leg{To: g.node[s.edges[i].to], Ratio: rate / ch.Rate, Cost: t.costs(e, i, a, nil)})
		}
		if ch.Rate > 0 {
			g.in.Choices = append(g.in.Choices, ch)
			g.choices = append(g.choices, where{edges: edges, site: a})
		}
	}
}

// costs appends what calls of an edge from site a cost to each site: network, the
// margin of every site but the nearest, and for lp the price of egress.
func (t *Policy) costs(e *estimates, edge, a int, out []float64) []float64 {
	s, m := t.state, len(t.config.Sites)
	x := &s.edges[edge]
	ok := t.allowed(x.to)
	home := t.home(a, ok)
	row := &x.rows[a]
	margin := max(0, t.config.Margin)
	if row.present && row.parts != nil && home >= 0 && 2*row.parts[home] < t.config.Resolution {
		margin /= 2
	}
	tried := t.tried(e, x, ok)
	for b := range m {
		r := x.to*m + b
		cost := t.network(e, edge, a, b)
		switch {
		case !ok[b] || t.apart(x, a, b, ok) || tried && !e.known[r] && b != home && (row.parts == nil || row.parts[b] == 0):
			out = append(out, math.Inf(1))
			continue
		case b != home:
			// Relative to the whole way, as far as it is known from the last plan.
			way := cost + e.service[r]
			if row.last != nil {
				way = max(way, row.last[b])
			}
			cost += float64(margin * way)
		}
		out = append(out, cost+t.price(x.to, a, b))
	}
	return out
}

// tried reports whether enough is known of an edge's callee at some site: then
// sites of which it isn't must first be probed.
func (t *Policy) tried(e *estimates, x *edge, ok []bool) bool {
	m := len(t.config.Sites)
	for b := range m {
		if ok[b] && e.known[x.to*m+b] {
			return true
		}
	}
	return false
}

// apart reports whether calls of an edge from site a may not go to site b: both
// components are of one group, or whole requests stay together.
func (t *Policy) apart(x *edge, a, b int, ok []bool) bool {
	k := t.state.components
	together := k[x.from].group >= 0 && k[x.from].group == k[x.to].group
	if t.config.Policy == Redirect && x.from != entryComponent {
		together = true
	}
	return together && b != t.home(a, ok)
}

// price is the egress of one call and its answer, in µs.
func (t *Policy) price(to, a, b int) float64 {
	told := t.state.components[to].told
	if told == nil || a == b || t.config.MSPerUSD == 0 || t.config.Policy != LP {
		return 0
	}
	const gb = 1e9
	usd := float64(t.config.Egress[t.config.Sites[a].Name]*float64(told.CallBytes))/gb +
		float64(t.config.Egress[t.config.Sites[b].Name]*float64(told.AnswerBytes))/gb
	return usd * t.config.MSPerUSD * 1000
}

// curves fits the curves of all replicas in the graph.
func (t *Policy) curves(g *graph) {
	m := len(t.config.Sites)
	g.in.Curves = make([]solve.Curve, len(g.in.Service))
	for j, node := range g.node {
		if node < 0 {
			continue
		}
		for n := range m {
			r := node*m + n
			g.in.Curves[r] = t.state.replicas[j][n].capacity.curve(g.in.Service[r], t.leastSamples())
		}
	}
}

package split

import (
	"fmt"
	"math"
	"slices"

	"penstock/consumers/decider/split/solve"
)

// signature is what the last plan was made from. Another plan is made when one of
// its numbers has changed by more than Config.Change.
type signature struct {
	shape   []int64 // components, sites, choices, where calls go
	numbers []float64
}

// slight is the change of a delay (µs) that is never worth another plan.
const slight = 200.0

// same reports whether nothing has changed enough.
func (a *signature) same(b *signature, change float64) bool {
	if change < 0 || len(a.shape) != len(b.shape) || len(a.numbers) != len(b.numbers) {
		return false
	}
	for i := range a.shape {
		if a.shape[i] != b.shape[i] {
			return false
		}
	}
	for i, x := range a.numbers {
		y := b.numbers[i]
		if x == y {
			continue
		}
		if math.IsInf(x, 1) || math.IsInf(y, 1) || math.Abs(x-y) > max(float64(change*max(x, y)), slightOf(x)) {
			return false
		}
	}
	return true
}

// slightOf is slight for delays; rates and ratios are small numbers, for which it
// would hide everything.
func slightOf(x float64) float64 {
	if x < 10*slight {
		return 0
	}
	return slight
}

func (g *graph) signature() signature {
	in := g.in
	out := signature{shape: []int64{int64(in.Components), int64(in.Sites), int64(len(in.Choices))}}
	out.numbers = append(append(out.numbers, in.Service...), in.Capacity...)
	for c := range in.Choices {
		ch := &in.Choices[c]
		out.shape = append(out.shape, int64(ch.From), int64(ch.Site))
		out.numbers = append(out.numbers, ch.Rate)
		for _, l := range ch.Legs {
			out.shape = append(out.shape, int64(l.To))
			out.numbers = append(append(out.numbers, l.Ratio), l.Cost...)
		}
	}
	return out
}

// plan sets the targets of all rows.
func (w *decision) plan() {
	t := w.t
	if t.config.Policy == Closest {
		w.nearest()
		return
	}
	if t.config.Policy == LocalityFailover {
		w.byDistance()
	}
	g := t.build(w.estimates)
	for _, i := range g.circle {
		e := &t.state.edges[i]
		w.reasons.Add(CallCycle, t.scopeName(e.from), nil, "calls to %s close a circle; they are taken as calls from outside", t.scopeName(e.to))
	}
	if g.in.Components == 0 || len(g.in.Choices) == 0 {
		return
	}
	sig := g.signature()
	fresh := t.state.now-t.state.plannedAt < t.config.TTL.Microseconds()/2
	if fresh && t.state.planned.same(&sig, t.config.Change) {
		w.reasons.Count(NoChange, 1, "no delay, rate or capacity has changed enough for another plan")
		return
	}
	if err := g.in.Prepare(); err != nil {
		// The instance is built from checked numbers and circles are cut: it cannot
		// fail. If it did, the tables would stay, and the record would say so.
		w.reasons.Count(Unsolved, 1, err.Error())
		return
	}
	t.state.planned, t.state.plannedAt = sig, t.state.now
	plan := w.solve(g)
	for k, at := range g.choices {
		for _, i := range at.edges {
			w.targets(g, plan, k, i, at.site)
		}
	}
	for j, node := range g.node {
		if node >= 0 && plan.Overload[node] > 1 {
			w.reasons.Add(NoRoom, t.scopeName(j), map[string]any{"factor": round(plan.Overload[node])},
				"%.2f times as many calls as its replicas take together; all are overloaded alike", plan.Overload[node])
		}
	}
}

func (w *decision) solve(g *graph) *solve.Plan {
	if w.t.config.Policy == LP {
		plan, err := g.in.Optimal()
		if err == nil {
			if !plan.Exact {
				cost := g.in.Cost(plan)
				w.reasons.Count(Unproved, 1, fmt.Sprintf("the plan is at most %.1f %% above the least; to prove more would take too long", 100*(cost-plan.Bound)/cost))
			}
			return plan
		}
		w.reasons.Count(Unsolved, 1, "the linear programme has no result: "+err.Error()+"; greedy decides")
	}
	return g.in.Greedy()
}

// targets sets the targets of the rows of an edge that a choice decides.
func (w *decision) targets(g *graph, plan *solve.Plan, k, edge, site int) {
	t, m := w.t, len(w.t.config.Sites)
	rows := t.state.edges[edge].rows
	for a := range rows {
		if site >= 0 && a != site || rows[a].parts == nil {
			continue
		}
		flow, best := plan.Flow[k], plan.Best[k]
		if site < 0 {
			flow, best = flow[a*m:(a+1)*m], best[a:a+1]
		}
		var sum float64
		for _, x := range flow {
			sum += x
		}
		switch {
		case sum > 1e-9:
			rows[a].target = apportion(clean(flow, sum), t.config.Resolution)
		case best[0] >= 0:
			rows[a].target = only(best[0], m, t.config.Resolution)
		default:
			w.reasons.Add(NoSite, t.scopeName(t.state.edges[edge].from), map[string]any{"from_site": t.config.Sites[a].Name, "to": t.scopeName(t.state.edges[edge].to)},
				"no site may be called; the row stays as it is")
			continue
		}
		w.price(g, plan, edge, a)
	}
}

// clean leaves out what is only rounding.
func clean(flow []float64, sum float64) []float64 {
	out := make([]float64, len(flow))
	for i, x := range flow {
		if x > 1e-9*sum {
			out[i] = x
		}
	}
	return out
}

// price notes what a row's calls cost by site now, calls further on included, and
// whether its way to the target leaves something that got worse.
func (w *decision) price(g *graph, plan *solve.Plan, edge, a int) {
	t, m := w.t, len(w.t.config.Sites)
	e := &t.state.edges[edge]
	row := &e.rows[a]
	now := make([]float64, m)
	for b := range m {
		now[b] = t.network(w.estimates, edge, a, b)
		if v := plan.Value[g.node[e.to]*m+b]; !math.IsInf(v, 1) {
			now[b] += v
		}
	}
	row.judge(now, func(b int) bool {
		r := e.to*m + b
		return w.estimates.load[r] > w.estimates.limit[r]
	}, func(b int) bool { return t.pushed(w.estimates, e.to, b) })
}

// judge says whether a row's way to its target leaves a site that got worse (fast)
// or goes to one that got better (slow). The costs of the last change are what
// worse and better are relative to; while a row stands at its target they follow. A
// site that is slow under more calls than it is known to take is left slowly: it may
// be a burst, or what was moved there.
func (r *row) judge(now []float64, over, pushed func(int) bool) {
	if r.cost == nil {
		r.cost = slices.Clone(now)
	}
	r.last = now
	from, to := mostMoved(r.parts, r.target)
	if from < 0 {
		for n := range now {
			r.cost[n] += float64(0.2 * (now[n] - r.cost[n]))
		}
		return
	}
	rise, fall := now[from]-r.cost[from], r.cost[to]-now[to]
	switch least := 0.05 * now[from]; {
	case pushed(from):
		r.fast = false
	case over(from):
		r.fast = true
	case rise > least || fall > least:
		r.fast = rise > fall
	}
}

// mostMoved returns the sites that lose and win most, −1 if nothing moves.
func mostMoved(parts, target []int) (from, to int) {
	from, to = -1, -1
	least, most := 0, 0
	for n := range parts {
		if c := target[n] - parts[n]; c < least {
			least, from = c, n
		} else if c > most {
			most, to = c, n
		}
	}
	return from, to
}

// round is for evidence: four decimals are enough to read.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// failing reports whether a replica fails so often that the nearest site is left.
func (w *decision) failing(j, n int) bool {
	return w.estimates.errors[j*len(w.t.config.Sites)+n] >= w.t.config.Failing
}

// nearest sets the targets of policy closest.
func (w *decision) nearest() {
	t := w.t
	for i := range t.state.edges {
		e := &t.state.edges[i]
		ok := t.allowed(e.to)
		for a := range e.rows {
			row := &e.rows[a]
			if row.parts == nil {
				continue
			}
			at := t.home(a, ok)
			for _, n := range t.near[a] {
				if ok[n] && !w.failing(e.to, n) {
					at = n
					break
				}
			}
			if at >= 0 {
				row.target, row.fast = only(at, len(t.config.Sites), t.config.Resolution), true
			}
		}
	}
}

// byDistance makes delays into distances, for policy locality-failover: what is
// nearest has the least, and a replica that fails takes nothing if another takes
// any.
func (w *decision) byDistance() {
	t, m := w.t, len(w.t.config.Sites)
	e := w.estimates
	for j := range t.state.components {
		for n := range m {
			r := j*m + n
			e.service[r], e.known[r], e.limit[r] = 0, true, t.told(j, n)
			if w.failing(j, n) {
				e.limit[r] = 0
			}
		}
	}
}

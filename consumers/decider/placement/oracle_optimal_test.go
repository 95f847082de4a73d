package placement

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"penstock/consumers/decider"
	"penstock/schemas/control"
)

// optimalOracle is policy optimal once more: it tries every assignment of the
// owners that may be moved, on the objective as DESIGN §4.1 and Objective print
// it. Of equally good ones it takes the policy's.
type optimalOracle struct {
	*oracle
	fails  map[string]int
	failed map[string]int64
	free   map[string][]string // sites where an owner that may be moved may be
	fixed  map[string]string   // where the others are
	why    map[string]string   // and why
}

func newOptimalOracle(c Config) *optimalOracle {
	return &optimalOracle{oracle: newOracle(c), fails: map[string]int{}, failed: map[string]int64{}}
}

// sort tells owners that may be moved from the others.
func (o *optimalOracle) sort() {
	o.free, o.fixed, o.why = map[string][]string{}, map[string]string{}, map[string]string{}
	for owner := range o.owners {
		at := o.site[owner]
		m, under := o.pending[owner]
		windows := 0
		if n := o.fails[owner]; n > 0 {
			windows = min(1<<(n-1), o.c.BackOff)
		}
		var open []string
		for _, s := range o.c.Sites {
			if o.allowed(owner, s.Name) && !o.isRefused(owner, s.Name) {
				open = append(open, s.Name)
			}
		}
		switch {
		case at == "":
			o.why[owner] = "LocationUnknown"
		case under:
			o.fixed[owner], o.why[owner] = m.To, "MoveUnderWay"
		case len(open) == 0:
			o.fixed[owner], o.why[owner] = at, "NoAllowedSite"
		case o.pins[owner]:
			o.fixed[owner], o.why[owner] = at, "Pinned"
		case windows > 0 && o.now-o.failed[owner] <= int64(windows)*o.c.Window.Microseconds():
			o.fixed[owner], o.why[owner] = at, "BackingOff"
		case o.held(owner) != "":
			o.fixed[owner], o.why[owner] = at, o.held(owner)
		default:
			o.free[owner] = open
		}
	}
}

// moving is what it costs to move an owner from where it stands.
func (o *optimalOracle) moving(owner string) float64 {
	gb, obj := float64(o.stored[owner])/1e9, o.c.Objective
	cost := obj.PerGB*gb + obj.PerUSD*o.c.Egress[o.site[owner]]*gb
	if o.placed[owner] && !o.evac[o.site[owner]] {
		cost += obj.Margin
	}
	return math.Round(cost*1e9) / 1e9
}

// perByte is the weight of a byte over capacity.
func (o *optimalOracle) perByte() float64 {
	var traffic, busy float64
	for owner := range o.owners {
		if t := o.t[owner]; t > 0 {
			traffic, busy = traffic+float64(t), busy+1
		}
	}
	if traffic == 0 {
		return o.c.Objective.Overload
	}
	return o.c.Objective.Overload * busy / traffic
}

func (o *optimalOracle) weightAt(owner, site string) float64 {
	for _, w := range o.weights(owner) {
		if w.site == site {
			return w.e / 1e9
		}
	}
	return math.Inf(1)
}

// total is the objective of owners at the given sites; fixed owners included.
func (o *optimalOracle) total(at map[string]string) float64 {
	var sum float64
	load := map[string]int64{}
	for owner, site := range at {
		sum += o.weightAt(owner, site)
		load[site] += o.t[owner]
		if _, ok := o.free[owner]; ok && site != o.site[owner] {
			sum += o.moving(owner)
		}
	}
	for _, s := range o.c.Sites {
		sum += o.perByte() * float64(max(0, load[s.Name]-o.room(s.Name)))
	}
	return sum
}

// least tries every assignment.
func (o *optimalOracle) least() float64 {
	load, sum := map[string]int64{}, 0.0
	for owner, site := range o.fixed {
		load[site] += o.t[owner]
		sum += o.weightAt(owner, site)
	}
	owners, perByte := sortedKeys(o.free), o.perByte()
	costs := map[string]map[string]float64{}
	for _, owner := range owners {
		costs[owner] = map[string]float64{}
		for _, site := range o.free[owner] {
			costs[owner][site] = o.weightAt(owner, site)
			if site != o.site[owner] {
				costs[owner][site] += o.moving(owner)
			}
		}
	}
	best := math.Inf(1)
	var try func(i int, sum float64)
	try = func(i int, sum float64) {
		if sum >= best {
			return // nothing costs less than 0
		}
		if i == len(owners) {
			for _, s := range o.c.Sites {
				sum += perByte * float64(max(0, load[s.Name]-o.room(s.Name)))
			}
			best = min(best, sum)
			return
		}
		for _, site := range o.free[owners[i]] {
			load[site] += o.t[owners[i]]
			try(i+1, sum+costs[owners[i]][site])
			load[site] -= o.t[owners[i]]
		}
	}
	try(0, sum)
	return best
}

// prepare takes a window in and reports whether it is decided.
func (o *optimalOracle) prepare(in oracleInput) bool {
	o.learn(in)
	var requests int64
	for _, r := range in.traffic {
		requests += r.requests
	}
	if in.incomplete {
		return false
	}
	o.evac = map[string]bool{}
	for _, s := range in.evacuate {
		o.evac[s] = o.isSite(s)
	}
	return requests >= max(1, o.c.MinRequests) && in.mode != control.Observe
}

// check compares a decided window with the least total, takes the policy's moves
// over, and reports whether all of the plan could be compared.
func (o *optimalOracle) check(t *rapid.T, p *Policy, in oracleInput, out decider.Output) bool {
	o.sort()
	plan, at := p.LastPlan(), map[string]string{}
	for owner, site := range o.fixed {
		at[owner] = site
	}
	for owner := range o.free {
		at[owner] = o.site[owner]
	}
	stayPut := o.total(at)
	moves := movesOf(out)
	var volume int64
	for _, m := range moves {
		if !slices.Contains(o.free[m.Owner], m.To) || m.From != o.site[m.Owner] || m.To == m.From {
			t.Fatalf("%v: allowed are %v\n%s", m, o.free[m.Owner], printed(out))
		}
		at[m.Owner] = m.To
		volume += m.Bytes
	}
	total := o.total(at)
	if !near(total, plan.Total) || int(plan.Moves) != len(moves) || plan.MovedBytes != volume || int(plan.Owners) != len(at) {
		t.Fatalf("the plan %+v; the oracle has total %v, %d moves of %d B, %d owners\n%s", plan, total, len(moves), volume, len(at), printed(out))
	}
	o.checkReasons(t, out)
	whole := true
	if l := o.c.Limits; l.Moves > 0 && len(moves) > l.Moves || l.Bytes > 0 && volume > l.Bytes {
		t.Fatalf("%d moves of %d B are beyond %+v", len(moves), volume, l)
	}
	for _, r := range out.Reasons {
		if r.Code == "MoveLimit" || r.Code == "ByteLimit" || r.Code == "Frozen" {
			whole = false
		}
	}
	evacuates := slices.ContainsFunc(in.evacuate, func(s string) bool { return o.evac[s] })
	switch least := o.least(); {
	case evacuates:
		o.checkRoom(t, at, out)
		if plan.Bound > plan.Total+1e-6 || math.IsNaN(plan.Bound) && plan.Exact {
			t.Fatalf("%+v: the bound is above the total\n%s", plan, printed(out))
		}
		whole = false
	case !whole && o.mayStay() && total > stayPut+1e-6:
		t.Fatalf("%v is worse than %v without a move\n%s", total, stayPut, printed(out))
	case plan.Bound > least+1e-6:
		t.Fatalf("the bound %v is above the least total %v", plan.Bound, least)
	case whole && plan.Exact && !near(total, least), whole && total > least+plan.Gap*max(1, least)+1e-6:
		t.Fatalf("total %v, exact %v, gap %v; the least is %v\n%s", total, plan.Exact, plan.Gap, least, printed(out))
	}
	o.take(p, in, moves)
	return whole && plan.Exact
}

// near compares sums of weights that were rounded to 1e-9 each.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(a)) }

// mayStay reports whether every owner may be where it is.
func (o *optimalOracle) mayStay() bool {
	for owner, open := range o.free {
		if !slices.Contains(open, o.site[owner]) {
			return false
		}
	}
	return true
}

// checkRoom: owners from a site that is being emptied put no site over its
// capacity.
func (o *optimalOracle) checkRoom(t *rapid.T, at map[string]string, out decider.Output) {
	load := map[string]int64{}
	for owner, site := range at {
		load[site] += o.t[owner]
	}
	for owner, site := range at {
		if _, ok := o.free[owner]; ok && o.evac[o.site[owner]] && site != o.site[owner] && o.t[owner] > 0 && load[site] > o.room(site) {
			t.Fatalf("%s leaves %s for %s, which has %d B for %d B\n%s", owner, o.site[owner], site, load[site], o.room(site), printed(out))
		}
		if _, ok := o.free[owner]; ok && o.evac[site] && load[site] >= 0 && o.t[owner] == 0 && o.c.Limits == (Limits{}) && len(out.Commands) > 0 {
			t.Fatalf("%s has no traffic and stays at %s\n%s", owner, site, printed(out))
		}
	}
}

func (o *optimalOracle) checkReasons(t *rapid.T, out decider.Output) {
	want, got := map[string]int64{}, map[string]int64{}
	for owner, why := range o.why {
		if why != "LocationUnknown" || o.seen[owner] {
			want[why]++
		}
	}
	for _, r := range out.Reasons {
		switch r.Code {
		case "LocationUnknown", "MoveUnderWay", "NoAllowedSite", "Pinned", "BackingOff", "Cooldown":
			got[r.Code] += r.Count
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("reasons %v, want %v\n%s", got, want, printed(out))
	}
}

// take takes the policy's moves over as the oracle's own.
func (o *optimalOracle) take(p *Policy, in oracleInput, moves []control.Move) {
	for owner := range o.owners {
		v, _ := p.Explain(owner)
		switch v.(Explanation).Stays {
		case "MoveLimit", "ByteLimit", "Frozen", "MoveUnderWay", "Cooldown", "BackingOff", "LocationUnknown":
		default:
			o.placed[owner] = o.placed[owner] || !in.frozen
		}
	}
	for _, m := range moves {
		o.version[m.Owner] = m.Version
		delete(o.refused, m.Owner)
		if in.mode == control.Act {
			o.pending[m.Owner], o.decided[m.Owner] = m, o.now
		}
	}
}

func (o *optimalOracle) outcome(x outcome) {
	owner := x.move.Owner
	o.apply(owner, x.move.Version, x.status)
	switch x.status {
	case control.Failed, control.Expired:
		o.fails[owner], o.failed[owner] = min(o.fails[owner]+1, 8), o.now
	case control.Done:
		delete(o.fails, owner)
	}
}

func movesOf(out decider.Output) []control.Move {
	var moves []control.Move
	for _, c := range out.Commands {
		moves = append(moves, c.Placement.Moves...)
	}
	return moves
}

// drawOptimal is a configuration of policy optimal that a brute force can take.
func drawOptimal(t *rapid.T) Config {
	c := drawConfig(t)
	c.Sites = c.Sites[:min(len(c.Sites), 4)]
	known := map[string]bool{}
	for i := range c.Sites {
		known[c.Sites[i].Name] = true
	}
	for i := range c.Residency {
		c.Residency[i].Sites = slices.DeleteFunc(c.Residency[i].Sites, func(s string) bool { return !known[s] })
		if len(c.Residency[i].Sites) == 0 {
			c.Residency[i].Sites = []string{c.Sites[0].Name}
		}
	}
	c.Locations, c.Friends, c.Policy = nil, nil, Optimal
	if rapid.IntRange(0, 3).Draw(t, "limited") > 0 {
		c.Limits = Limits{}
	}
	c.Objective = Objective{
		Overload: rapid.SampledFrom([]float64{100, 1, 0.01}).Draw(t, "overload"),
		PerGB:    rapid.SampledFrom([]float64{0, 1, 1e6}).Draw(t, "per GB"),
		PerUSD:   rapid.SampledFrom([]float64{0, 10}).Draw(t, "per USD"),
		Margin:   rapid.SampledFrom([]float64{0, 0.02, 0.3}).Draw(t, "margin"),
	}
	c.Egress = map[string]float64{c.Sites[0].Name: rapid.SampledFrom([]float64{0, 1e5, 1e6}).Draw(t, "egress")}
	c.BackOff = rapid.SampledFrom([]int{1, 2, 64}).Draw(t, "back off")
	return c.withDefaults()
}

// fewOwners leaves the rows of a window that are of few owners.
func fewOwners(in oracleInput) oracleInput {
	in.traffic = slices.DeleteFunc(in.traffic, func(r trafficRow) bool {
		return len(r.owner) > 2 || r.owner[0] == 'u' && r.owner > "u0" || r.owner > "o6" && r.owner[0] == 'o'
	})
	in.rollback = noTime
	return in
}

// TestOptimalAgainstBruteForce decides random windows and compares each plan with
// the least total over all assignments.
func TestOptimalAgainstBruteForce(t *testing.T) {
	windows, compared := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawOptimal(t)
		p, o := newPolicy(t, c, rapid.IntRange(1, 4).Draw(t, "workers")), newOptimalOracle(c)
		r := rand.New(rand.NewPCG(1, 2))
		for n := 1; n <= 30; n++ {
			in := fewOwners(drawWindow(t, c, n))
			out := p.Decide(in.input(r))
			if !o.prepare(in) {
				if len(out.Commands) > 0 || p.LastPlan().Owners > 0 {
					t.Fatalf("a window that isn't decided has a plan\n%s", printed(out))
				}
				continue
			}
			windows++
			if o.check(t, p, in, out) {
				compared++
			}
			var under []control.Move
			for _, owner := range sortedKeys(o.pending) {
				under = append(under, o.pending[owner])
			}
			outcomes := drawOutcomes(t, under)
			apply(p, outcomes)
			for _, x := range outcomes {
				o.outcome(x)
			}
		}
	})
	t.Logf("%d windows, %d of them equal to the least total", windows, compared)
	if !t.Failed() && (windows < 1000 || compared < 700) {
		t.Errorf("only %d windows were decided, and %d could be compared whole", windows, compared)
	}
}

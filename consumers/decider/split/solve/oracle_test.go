package solve_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"

	"penstock/consumers/decider/split/solve"
	"penstock/consumers/decider/split/solve/instances"
)

// Greedy against the optimum on 1,000 random instances: the distribution is
// printed, the optimum is never worse, and both keep within the capacities.
func TestGreedyAgainstTheOptimumOnAThousandInstances(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1_000))
	var ratios, curved, gaps []float64
	var steps int
	for i := range 1_000 {
		s := instances.Small(r, i)
		if i%50 == 0 || os.Getenv("PENSTOCK_WHOLE") != "" {
			s.Components, s.Sites = 2+r.IntN(9), 2+r.IntN(4)
		}
		in := instances.Draw(r, s)
		greedy := in.Greedy()
		best, err := in.Optimal()
		if err != nil {
			t.Fatalf("%d, %+v: %v", i, s, err)
		}
		feasible(t, in, greedy, false)
		feasible(t, in, best, false)
		if !best.Exact {
			t.Errorf("%d, %+v: not proved after %d steps", i, s, best.Steps)
		}
		g, o := in.Cost(greedy), in.Cost(best)
		if o > g*(1+1e-6) {
			t.Errorf("%d, %+v: optimum %v, greedy %v", i, s, o, g)
		}
		if gap := (o - best.Bound) / o; math.Abs(gap) > 1e-6 {
			t.Errorf("%d, %+v: optimum %v, bound %v", i, s, o, best.Bound)
		}
		if gaps = append(gaps, (o-best.Bound)/o); s.Curved {
			curved = append(curved, g/o)
		} else {
			ratios = append(ratios, g/o)
		}
		steps += best.Steps
	}
	report := func(what string, ratios []float64) int {
		slices.Sort(ratios)
		var text []string
		for _, q := range []float64{0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1} {
			text = append(text, fmt.Sprintf("p%g %.4f", q*100, ratios[int(q*float64(len(ratios)-1))]))
		}
		same, _ := slices.BinarySearch(ratios, 1+1e-6)
		t.Logf("cost of greedy over the optimum, %s: %s; optimal in %d of %d", what, strings.Join(text, ", "), same, len(ratios))
		return same
	}
	report("delays that rise with load, which greedy does not know", curved)
	same := report("constant delays", ratios)
	t.Logf("largest gap to the bound %.1e; %d steps", slices.Max(gaps), steps)
	if same < 50 || same == len(ratios) || ratios[len(ratios)/2] > 1.2 {
		t.Errorf("greedy is optimal in %d of %d, the median ratio is %v: the instances say nothing", same, len(ratios), ratios[len(ratios)/2])
	}
}

// The same optimum by the textbook's programme, flows over links, in a solver of
// others.
func TestOptimumAgainstLinksInGonum(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	for i := range 60 {
		s := instances.Shape{Components: 2 + r.IntN(3), Sites: 2 + r.IntN(2), Tree: r.IntN(2) == 0, Slack: 1.05 + r.Float64()}
		in := instances.Draw(r, s)
		best, err := in.Optimal()
		if err != nil {
			t.Fatal(err)
		}
		want := links(t, in)
		if got := in.Cost(best); math.Abs(got-want) > 1e-5*want {
			t.Errorf("%d, %+v: got %v, the other programme says %v", i, s, got, want)
		}
	}
}

// links solves min Σ flow·cost under conservation and capacities, with a variable
// for every (choice, from site, to site) and one for what a capacity has left.
func links(t *testing.T, in *solve.Instance) float64 {
	t.Helper()
	m := in.Sites
	first := make([]int, len(in.Choices))
	vars := 0
	for c := range in.Choices {
		first[c] = vars
		if vars += m; in.Choices[c].From != solve.Source {
			vars += m*m - m
		}
	}
	slack := vars
	vars += in.Components * m
	cost := make([]float64, vars)
	var rows [][]float64
	var right []float64
	arrive := make([][]float64, in.Components*m) // by replica, as a row
	for r := range arrive {
		arrive[r] = make([]float64, vars)
	}
	for c := range in.Choices {
		l := in.Choices[c].Legs[0]
		for k, x := range l.Cost {
			cost[first[c]+k] = l.Ratio * (x + in.Service[l.To*m+k%m])
			arrive[l.To*m+k%m][first[c]+k] += l.Ratio
		}
	}
	for c := range in.Choices {
		ch := &in.Choices[c]
		if ch.From == solve.Source {
			row := make([]float64, vars)
			for p := range m {
				row[first[c]+p] = 1
			}
			rows, right = append(rows, row), append(right, ch.Rate)
			continue
		}
		for n := range m {
			row := make([]float64, vars)
			for p := range m {
				row[first[c]+n*m+p] = 1
			}
			for k, x := range arrive[ch.From*m+n] {
				row[k] -= x
			}
			rows, right = append(rows, row), append(right, 0)
		}
	}
	for r := range arrive {
		row := slices.Clone(arrive[r])
		row[slack+r] = 1
		rows, right = append(rows, row), append(right, in.Capacity[r])
	}
	a := mat.NewDense(len(rows), vars, nil)
	for i, row := range rows {
		a.SetRow(i, row)
	}
	least, _, err := lp.Simplex(cost, a, right, 1e-10, nil)
	if err != nil {
		t.Fatal(err)
	}
	return least
}

// Without capacities the best is a map per caller: on trees that of all maps
// component → site, elsewhere at least as good.
func TestWithoutCapacitiesAgainstAllMaps(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 3))
	for i := range 300 {
		s := instances.Shape{Components: 2 + r.IntN(4), Sites: 2 + r.IntN(2), Tree: i%2 == 0, Slack: 1, Missing: 0.2}
		in := instances.Draw(r, s)
		for c := range in.Capacity {
			in.Capacity[c] = math.Inf(1)
		}
		plan := in.Greedy()
		feasible(t, in, plan, false)
		best, err := in.Optimal()
		if err != nil {
			t.Fatal(err)
		}
		got, want := in.Cost(plan), allMaps(in)
		if o := in.Cost(best); math.Abs(o-got) > 1e-9*got {
			t.Errorf("%d: optimum %v, greedy without capacities %v", i, o, got)
		}
		if s.Tree && math.Abs(got-want) > 1e-9*want || got > want*(1+1e-9) {
			t.Errorf("%d, %+v: got %v, best of all maps %v", i, s, got, want)
		}
	}
}

// allMaps tries every map of components but those that sources call, which may
// differ by source.
func allMaps(in *solve.Instance) float64 {
	m, total := in.Sites, 0.0
	for c := range in.Choices {
		if ch := &in.Choices[c]; ch.From == solve.Source {
			best := math.Inf(1)
			at := make([]int, in.Components)
			var try func(j int)
			try = func(j int) {
				if j == in.Components {
					best = min(best, ofMap(in, ch, at))
					return
				}
				for n := range m {
					at[j] = n
					try(j + 1)
				}
			}
			try(0)
			total += best * ch.Rate
		}
	}
	return total
}

// ofMap is what a call of the source costs by one map. Components are numbered
// callers first.
func ofMap(in *solve.Instance, source *solve.Choice, at []int) float64 {
	m := in.Sites
	calls := make([]float64, in.Components)
	var sum float64
	go1 := func(l solve.Leg, n int, x float64) {
		p := at[l.To]
		sum += x * l.Ratio * (l.Cost[n*m+p] + in.Service[l.To*m+p])
		calls[l.To] += x * l.Ratio
	}
	go1(source.Legs[0], 0, 1)
	for j := range in.Components {
		for c := range in.Choices {
			if in.Choices[c].From == j && calls[j] > 0 {
				go1(in.Choices[c].Legs[0], at[j], calls[j])
			}
		}
	}
	return sum
}

// An instance that is too large to be proved still has a plan that is no worse
// than greedy's, and a bound.
func TestALargeInstanceHasABound(t *testing.T) {
	in := instances.Draw(rand.New(rand.NewPCG(5, 4)), instances.Shape{Components: 60, Sites: 8, Slack: 1.3})
	in.MaxWork = 20_000_000
	best, err := in.Optimal()
	if err != nil {
		t.Fatal(err)
	}
	feasible(t, in, best, false)
	g, o := in.Cost(in.Greedy()), in.Cost(best)
	t.Logf("greedy %.4g, optimum %.4g, bound %.4g, %d steps, exact %v", g, o, best.Bound, best.Steps, best.Exact)
	if o > g*(1+1e-9) || best.Bound > o*(1+1e-9) || best.Exact && best.Bound < o*(1-1e-6) {
		t.Errorf("greedy %v, optimum %v, bound %v, exact %v", g, o, best.Bound, best.Exact)
	}
}

// A replica that takes any load is never full, however full others are.
func TestAnUnlimitedReplicaIsNeverFull(t *testing.T) {
	cost := func(a, b float64) []float64 { return []float64{a, b} }
	in := &solve.Instance{
		Sites: 2, Components: 1, Service: []float64{10, 10}, Capacity: []float64{math.Inf(1), 5},
		Choices: []solve.Choice{
			{From: solve.Source, Site: 0, Rate: 20, Legs: []solve.Leg{{To: 0, Ratio: 1, Cost: cost(1, 50)}}},
			{From: solve.Source, Site: 1, Rate: 20, Legs: []solve.Leg{{To: 0, Ratio: 1, Cost: cost(50, 1)}}},
		},
	}
	if err := in.Prepare(); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*solve.Plan{"greedy": in.Greedy(), "optimal": must(in.Optimal())} {
		if math.Abs(p.Flow[0][0]-20) > 1e-6 || math.Abs(p.Flow[1][1]-5) > 1e-6 || math.Abs(p.Flow[1][0]-15) > 1e-6 || p.Overload[0] != 1 {
			t.Errorf("%s: %v %v", name, p.Flow, p.Overload)
		}
	}
}

// More calls than all replicas take are spread in proportion to what they are
// meant to take.
func TestOverloadIsSpreadByCapacity(t *testing.T) {
	in := &solve.Instance{
		Sites: 3, Components: 1, Service: []float64{10, 500, 9000}, Capacity: []float64{100, 50, 25},
		Choices: []solve.Choice{{From: solve.Source, Rate: 350, Legs: []solve.Leg{{To: 0, Ratio: 1, Cost: []float64{1, 2, 3}}}}},
	}
	if err := in.Prepare(); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*solve.Plan{"greedy": in.Greedy(), "optimal": must(in.Optimal())} {
		for n, want := range []float64{200, 100, 50} {
			if math.Abs(p.Load[n]-want) > 0.01 {
				t.Errorf("%s: site %d gets %v, expected %v", name, n, p.Load[n], want)
			}
		}
	}
}

func must(p *solve.Plan, err error) *solve.Plan {
	if err != nil {
		panic(err)
	}
	return p
}

func TestInstancesWithFaults(t *testing.T) {
	leg := []solve.Leg{{To: 0, Ratio: 1, Cost: []float64{1}}}
	good := func() *solve.Instance {
		return &solve.Instance{
			Sites: 1, Components: 2, Service: []float64{1, 1}, Capacity: []float64{1, 1},
			Choices: []solve.Choice{{From: solve.Source, Rate: 1, Legs: leg}, {From: 0, Legs: []solve.Leg{{To: 1, Ratio: 1, Cost: []float64{1}}}}},
		}
	}
	if err := good().Prepare(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*solve.Instance){
		"no sites":       func(in *solve.Instance) { in.Sites = 0 },
		"a service less": func(in *solve.Instance) { in.Service = in.Service[:1] },
		"NaN":            func(in *solve.Instance) { in.Service[0] = math.NaN() },
		"negative":       func(in *solve.Instance) { in.Capacity[1] = -1 },
		"endless rate":   func(in *solve.Instance) { in.Choices[0].Rate = math.Inf(1) },
		"no component":   func(in *solve.Instance) { in.Choices[1].From = 7 },
		"no legs":        func(in *solve.Instance) { in.Choices[1].Legs = nil },
		"ratio 0":        func(in *solve.Instance) { in.Choices[1].Legs[0].Ratio = 0 },
		"costs":          func(in *solve.Instance) { in.Choices[1].Legs[0].Cost = nil },
		"cost NaN":       func(in *solve.Instance) { in.Choices[1].Legs[0].Cost[0] = math.NaN() },
	} {
		in := good()
		spoil(in)
		if err := in.Prepare(); !errors.Is(err, solve.ErrInstance) {
			t.Errorf("%s: %v", name, err)
		}
	}
	in := good()
	in.Choices = append(in.Choices, solve.Choice{From: 1, Legs: []solve.Leg{{To: 0, Ratio: 0.5, Cost: []float64{1}}}})
	if err := in.Prepare(); !errors.Is(err, solve.ErrCycle) {
		t.Errorf("a circle: %v", err)
	}
}

func BenchmarkGreedyRoomy(b *testing.B) { benchmark(b, 8, func(in *solve.Instance) { in.Greedy() }) }

func BenchmarkOptimalRoomy(b *testing.B) {
	benchmark(b, 8, func(in *solve.Instance) {
		p := must(in.Optimal())
		b.ReportMetric(float64(p.Steps), "steps")
	})
}

func BenchmarkGreedy100x10(b *testing.B) { benchmark(b, 1.3, func(in *solve.Instance) { in.Greedy() }) }

func BenchmarkGreedyTight(b *testing.B) { benchmark(b, 1.02, func(in *solve.Instance) { in.Greedy() }) }

func BenchmarkOptimal100x10(b *testing.B) {
	benchmark(b, 1.3, func(in *solve.Instance) {
		p, err := in.Optimal()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(p.Steps), "steps")
	})
}

func benchmark(b *testing.B, slack float64, f func(*solve.Instance)) {
	in := instances.Draw(rand.New(rand.NewPCG(5, 4)), instances.Shape{Components: 100, Sites: 10, Slack: slack})
	b.ReportAllocs()
	for b.Loop() {
		f(in)
	}
}

package solve

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

const (
	// defaultWork is about a second. What it counts depends on the instance alone, so
	// that a result does not depend on a machine.
	defaultWork = 1_000_000_000
	// tolerance of a reduced cost, as a share of what it is compared with.
	tolerance = 1e-9
	// shake sets the ends of pieces apart by so little, each by its own amount,
	// that no two are met at once: the simplex method cannot go round in a circle.
	shake = 1e-8
)

// column is one way for all calls of a source: a basic variable.
type column struct {
	choice int // the source
	cost   float64
	load   []float64
	best   [][]int
	flow   float64 // calls of the source a second
}

// programme is the restricted master problem in the form that it has here: the
// loads of all replicas follow from the basic columns, replica r is either inside
// a piece of its cost, where its price is the slope of that piece, or tight at an
// end of a piece, where its price is a dual variable. So the basis has one
// column per source and one per tight replica, however many replicas there are.
type programme struct {
	in      *Instance
	pieces  []pieces
	ways    *ways
	sources []int       // choices
	row     map[int]int // row of a source
	basic   []column
	tight   []int     // replicas
	at      []int     // by replica: its piece, or the end (≥ 1) at which it is tight
	isTight []bool    // by replica
	load    []float64 // by replica
	price   []float64 // by replica: µs for one more call
	dual    []float64 // by source: µs of its dearest basic column
	matrix  square
	scale   float64
}

// Optimal returns the plan of least Cost: service as curves in pieces, capacities
// as in Greedy, and a call over a capacity at Penalty. It is a linear programme
// over all combinations of replicas, solved by the simplex method with columns
// from dynamic programming. Bound proves it: Exact says that nothing is below.
//
// The work grows with the third power of the replicas that are full. Where it is
// beyond a second the better of what was reached and of Greedy is returned, with
// the bound that was reached and without Exact. The error wraps ErrUnsolved:
// there is no plan.
func (in *Instance) Optimal() (*Plan, error) {
	plan := in.newPlan()
	capacity := in.scaled(plan)
	free := newWays(in, in.Service)
	free.solve()
	plan.Value, plan.Best = slices.Clone(free.value), free.copyBest()
	p := in.programme(capacity)
	p.begin(free, plan)
	plan.Bound = p.least()
	for work := 0; work < cmp.Or(in.MaxWork, defaultWork); work += p.work() {
		if err := p.solve(); err != nil {
			return nil, err
		}
		p.pricing()
		plan.Bound = max(plan.Bound, p.bound())
		e := p.enter()
		if plan.Exact = e.kind == nothing; plan.Exact {
			break
		}
		plan.Steps++
		if err := p.step(&e); err != nil {
			return nil, err
		}
	}
	p.finish(plan)
	if plan.Exact {
		return plan, nil
	}
	if greedy := in.Greedy(); in.Cost(greedy) < in.Cost(plan) {
		greedy.Bound, greedy.Steps = plan.Bound, plan.Steps
		return greedy, nil
	}
	return plan, nil
}

// work is about how many multiplications a step takes.
func (p *programme) work() int {
	n := len(p.basic)
	return n*n*n/3 + 4*n*len(p.load) + len(p.in.Choices)*p.in.Sites*p.in.Sites
}

func (in *Instance) programme(capacity []float64) *programme {
	p := &programme{
		in: in, pieces: in.pieces(capacity), row: map[int]int{}, at: make([]int, len(in.Service)), isTight: make([]bool, len(in.Service)),
		load: make([]float64, len(in.Service)), price: make([]float64, len(in.Service)), scale: 1,
	}
	for r := range p.pieces {
		for k := 1; k < len(p.pieces[r].ends); k++ {
			// A fraction that looks random and is the same everywhere.
			f := math.Mod(float64(r*7919+k*104729+1)*0.6180339887498949, 1)
			p.pieces[r].ends[k] *= 1 - shake*(0.5+f)
		}
	}
	p.ways = newWays(in, p.price)
	return p
}

// begin makes the first basis: every source on its best way of low load.
func (p *programme) begin(free *ways, plan *Plan) {
	for c := range p.in.Choices {
		ch := &p.in.Choices[c]
		if ch.From != Source || ch.Rate == 0 {
			continue
		}
		if free.best[c][0] < 0 {
			plan.Unplaced[c] = ch.Rate
			continue
		}
		p.row[c] = len(p.sources)
		p.sources = append(p.sources, c)
		p.basic = append(p.basic, p.column(free, c))
		p.scale = max(p.scale, free.source(c))
	}
	p.dual = make([]float64, len(p.sources))
	for i := range p.basic {
		p.basic[i].flow = p.in.Choices[p.sources[i]].Rate
	}
	p.loads()
	for r, x := range p.load {
		p.at[r] = p.pieces[r].of(x)
	}
}

// column makes the column of source c on the best ways.
func (p *programme) column(w *ways, c int) column {
	rates := make([]float64, len(p.in.Choices))
	rates[c] = 1
	out := column{choice: c, load: slices.Clone(w.spread(rates)), best: w.copyBest()}
	links := func(c, n int, x float64) {
		for _, l := range p.in.Choices[c].Legs {
			out.cost += float64(float64(x*l.Ratio) * l.Cost[n*p.in.Sites+w.best[c][n]])
		}
	}
	links(c, 0, 1)
	for j := range p.in.Components {
		for n := range p.in.Sites {
			x := out.load[j*p.in.Sites+n]
			if x == 0 {
				continue
			}
			for _, d := range p.in.outs[j] {
				links(d, n, x)
			}
		}
	}
	return out
}

// loads adds up the loads of the basic columns.
func (p *programme) loads() {
	clear(p.load)
	for i := range p.basic {
		for r, x := range p.basic[i].load {
			if x != 0 {
				p.load[r] += float64(x * p.basic[i].flow)
			}
		}
	}
}

// solve computes the flows and prices of the basis.
func (p *programme) solve() error {
	n := len(p.basic)
	s := len(p.sources)
	p.matrix.reset(n)
	right := make([]float64, n)
	for i, c := range p.sources {
		right[i] = p.in.Choices[c].Rate
	}
	for i, r := range p.tight {
		right[s+i] = p.pieces[r].ends[p.at[r]]
	}
	cost := make([]float64, n)
	for i := range p.basic {
		col := &p.basic[i]
		p.matrix.set(p.row[col.choice], i, 1)
		for k, r := range p.tight {
			p.matrix.set(s+k, i, col.load[r])
		}
		cost[i] = col.cost
		for r, x := range col.load {
			if x != 0 && !p.isTight[r] {
				cost[i] += float64(x * p.pieces[r].slope[p.at[r]])
			}
		}
	}
	if !p.matrix.factor() {
		return fmt.Errorf("a basis of %d columns is singular: %w", n, ErrUnsolved)
	}
	p.matrix.solve(right)
	for i := range p.basic {
		p.basic[i].flow = max(right[i], 0)
	}
	p.loads()
	p.matrix.solveTransposed(cost)
	copy(p.dual, cost[:s])
	for r := range p.price {
		if !p.isTight[r] {
			p.price[r] = p.pieces[r].slope[p.at[r]]
		}
	}
	for k, r := range p.tight {
		p.price[r] = -cost[s+k]
	}
	return nil
}

// pricing brings the best ways up to date with the prices.
func (p *programme) pricing() {
	p.ways.touch()
	p.ways.solve()
}

// finish puts the basis into the plan.
func (p *programme) finish(plan *Plan) {
	in := p.in
	rates := make([]float64, len(in.Choices))
	for i := range p.basic {
		col := &p.basic[i]
		if col.flow <= 0 {
			continue
		}
		p.ways.best = col.best
		clear(rates)
		rates[col.choice] = col.flow
		p.ways.spread(rates)
		p.ways.add(plan, rates, 1)
	}
	p.ways = newWays(in, p.price)
	p.ways.solve()
	for c := range plan.Best {
		for n, b := range p.ways.best[c] {
			if b >= 0 {
				plan.Best[c][n] = b
			}
		}
	}
}

// least is the bound without capacities: all calls as cheap as the first piece of
// every replica.
func (p *programme) least() float64 {
	first := make([]float64, len(p.pieces))
	for r := range first {
		first[r] = p.pieces[r].slope[0]
	}
	w := newWays(p.in, first)
	w.solve()
	var sum float64
	for _, c := range p.sources {
		sum += float64(p.in.Choices[c].Rate * w.source(c))
	}
	return sum
}

// bound is a proven lower bound: by duality no plan is below what all calls cost
// at the prices of now, less what the prices could earn at most.
func (p *programme) bound() float64 {
	in := p.in
	var sum float64
	for _, c := range p.sources {
		sum += float64(in.Choices[c].Rate * p.ways.source(c))
	}
	for r := range p.load {
		demand := in.load[r/in.Sites]
		earn := max(0, float64(p.price[r]*demand)-p.pieces[r].at(demand))
		for _, x := range p.pieces[r].ends {
			if x < demand {
				earn = max(earn, float64(p.price[r]*x)-p.pieces[r].at(x))
			}
		}
		sum -= earn
	}
	return sum
}

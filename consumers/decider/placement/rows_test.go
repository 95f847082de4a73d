package placement

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestARoughRowIsAsWrongAsItSays compares rows from kept distances with exact
// ones: within the error that they come with, which isn't far too wide either.
func TestARoughRowIsAsWrongAsItSays(t *testing.T) {
	const owners = 1500
	p, err := New(hardConfig(owners, Optimal))
	if err != nil {
		t.Fatal(err)
	}
	p.Decide(benchWindow(owners, 1, rand.New(rand.NewPCG(7, 8))))
	m, w, row := p.newMatcher(), newWeights(benchSites), make([]int64, benchSites)
	rough, worst := 0, 0.0
	for id := range int32(p.state.names.len()) {
		steps := uint8(0)
		if !p.weighRoughly(id, m, row, &steps) {
			continue
		}
		rough++
		p.weigh(id, w)
		for j, v := range row {
			wrong := math.Abs(float64(v-w.sum[j])) / (float64(steps) * errorStep)
			if worst = max(worst, wrong); wrong > 1 {
				t.Fatalf("owner %d, site %d: %d is wrong by more than %d steps of %d; exactly it is %d", id, j, v, steps, errorStep, w.sum[j])
			}
		}
	}
	t.Logf("%d rows of %d are rough; at worst %.2f of what they say", rough, owners, worst)
	if rough < owners/2 || worst < 0.1 {
		t.Errorf("%d rows of %d are rough; at worst %.2f of what they say", rough, owners, worst)
	}
}

// TestLimitsTakeTheBestByRoughWeightsToo: where few of many moves are let
// through, those chosen by rough gains are about as good as by exact ones.
func TestLimitsTakeTheBestByRoughWeightsToo(t *testing.T) {
	const owners = 1500
	c := hardConfig(owners, Optimal)
	c.Limits = Limits{Moves: 100}
	for i := range c.Sites {
		c.Sites[i].Capacity *= 100
	}
	weight := func(cells int) (all, plan float64) {
		p, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		p.cells = cells
		in := benchWindow(owners, 1, rand.New(rand.NewPCG(7, 8)))
		in.Operator.Frozen = true
		p.Decide(in)
		all = p.LastPlan().Weight
		in.Operator.Frozen, in.Tables = false, benchWindow(owners, 1, rand.New(rand.NewPCG(7, 8))).Tables
		in.Window.End = in.Window.End.Add(c.Window)
		if n := len(movesOf(p.Decide(in))); n != c.Limits.Moves {
			t.Errorf("%d moves, want %d", n, c.Limits.Moves)
		}
		return all, p.LastPlan().Weight
	}
	before, exact := weight(smallCells)
	_, rough := weight(1)
	t.Logf("weight %v, after 100 moves %v, %v by rough weights", before, exact, rough)
	if exact > before-50 || rough > exact+0.01*(before-exact) {
		t.Errorf("weight %v, after 100 moves %v, %v by rough weights", before, exact, rough)
	}
}

// TestOwnersOfWhomNothingIsKnownStay: no site is better than another for owners
// without a place, however large the instance is.
func TestOwnersOfWhomNothingIsKnownStay(t *testing.T) {
	const owners = 3000
	for _, cells := range []int{1, 1 << 20} {
		c := hardConfig(owners, Optimal)
		for i := range c.Sites {
			c.Sites[i].Capacity *= 100
		}
		p, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		p.cells = cells
		in := benchWindow(owners, 1, rand.New(rand.NewPCG(7, 8)))
		delete(in.Tables, "places")
		if out := p.Decide(in); len(out.Commands) > 0 {
			t.Errorf("with %d cells in memory %d commands move somebody: %v", cells, len(out.Commands), out.Reasons)
		}
	}
}

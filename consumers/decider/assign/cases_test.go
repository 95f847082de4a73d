package assign

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// matrix is a table of rows.
func matrix(overload float64, load, room []int64, rows ...[]int64) table {
	return table{costs: slices.Concat(rows...), load: load, room: room, overload: overload}
}

const no = Forbidden

func TestHardCases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		table table
		cost  int64
		site  []uint16 // nil if there are several
	}{
		{"nothing", matrix(1, nil, []int64{5}), 0, []uint16{}},
		{"one site, room", matrix(10, []int64{2, 3}, []int64{5}, []int64{7}, []int64{8}), 15, []uint16{0, 0}},
		{"one site, too little", matrix(10, []int64{2, 3}, []int64{4}, []int64{7}, []int64{8}), 25, []uint16{0, 0}},
		{"all forbidden", matrix(10, []int64{2, 3}, []int64{4, 4}, []int64{no, no}, []int64{no, no}), 0, []uint16{NoSite, NoSite}},
		{"one forbidden everywhere", matrix(10, []int64{9, 3}, []int64{4, 4}, []int64{no, no}, []int64{1, 0}), 0, []uint16{NoSite, 1}},
		{"a room below 0 is as 0", matrix(10, []int64{2, 3}, []int64{-50, -50}, []int64{1, 2}, []int64{4, 3}), 54, []uint16{0, 1}},
		{"no load takes the least cost", matrix(10, []int64{0, 3}, []int64{0, 3}, []int64{1, 2}, []int64{0, 5}), 6, []uint16{0, 1}},
		{"overload for nothing", matrix(0, []int64{5, 5}, []int64{0, 0}, []int64{1, 2}, []int64{4, 3}), 4, []uint16{0, 1}},
		{"ties go by the order of sites", matrix(10, []int64{1, 1}, []int64{9, 9}, []int64{4, 4}, []int64{4, 4}), 8, []uint16{0, 0}},
		{
			"one huge item goes where the least of it is over",
			matrix(10, []int64{1000, 1, 1}, []int64{10, 900, 5}, []int64{0, 50, 0}, []int64{9, 0, 9}, []int64{9, 0, 9}), 1068,
			[]uint16{1, 0, 0},
		},
		{
			"a knapsack: 6 and 5 fill what the 10 of most worth would not",
			matrix(1e6, []int64{10, 6, 5}, []int64{11, 100}, []int64{0, 10}, []int64{0, 7}, []int64{0, 6}), 10,
			[]uint16{1, 0, 0},
		},
		{
			"a partition without a byte to spare",
			matrix(1e6, []int64{17, 13, 11, 7, 5, 3}, []int64{28, 28},
				[]int64{0, 0}, []int64{0, 0}, []int64{0, 0}, []int64{0, 0}, []int64{0, 0}, []int64{0, 0}), 0, nil,
		},
		{
			"an item is pushed on by another",
			matrix(100, []int64{4, 4, 4}, []int64{4, 4, 4}, []int64{0, 5, no}, []int64{0, no, no}, []int64{no, 0, 3}), 8,
			[]uint16{1, 0, 2},
		},
		{"half a unit of overload counts as one", matrix(0.5, []int64{1}, []int64{0}, []int64{3}), 4, []uint16{0}},
	} {
		s := Solve(c.table.problem(1), Options{})
		check(t, c.table, s, nil)
		if s.Cost != c.cost || !s.Exact || c.site != nil && !slices.Equal(s.Site, c.site) {
			t.Errorf("%s: %v for %d (exact %v), expected %v for %d", c.name, s.Site, s.Cost, s.Exact, c.site, c.cost)
		}
		l := Solve(c.table.problem(1), Options{Cells: 1})
		check(t, c.table, l, nil)
		if l.Bound > c.cost || l.Cost < c.cost {
			t.Errorf("%s, by prices: bound %d, cost %d, optimum %d", c.name, l.Bound, l.Cost, c.cost)
		}
	}
}

// TestLoadsBeyondAllMeasure has more bytes than 64 bits count, and an overload
// that no cost can hold.
func TestLoadsBeyondAllMeasure(t *testing.T) {
	t.Parallel()
	for _, overload := range []float64{1e-9, 1e5, 1e300, math.Inf(1)} {
		c := table{load: make([]int64, 2000), room: []int64{math.MaxInt64, 1 << 61, -1 << 62}, overload: overload}
		for i := range c.load {
			c.load[i] = math.MaxInt64 / 100 * (1 + int64(i)%3)
			c.costs = append(c.costs, int64(i)*1e9, 3e12-int64(i)*1e9, no)
		}
		for _, cells := range []int{0, 1} {
			s := Solve(c.problem(1), Options{Cells: cells})
			c.overload = min(overload, maxOverload)
			check(t, c, s, nil)
			for j, v := range s.Over {
				if v < 0 {
					t.Errorf("%d bytes over at site %d", v, j)
				}
			}
			if s.Bound < 0 || overload < 1 && s.Gap() > 0.2 {
				t.Errorf("bound %d of cost %d", s.Bound, s.Cost)
			}
		}
	}
}

// TestAnyNumberOfWorkers has one answer, by either way.
func TestAnyNumberOfWorkers(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{Nodes: 2}, {Cells: 1, Sample: 600, Rounds: 2, Goal: 1e-12}} {
		var first string
		for workers := range 9 {
			s := Solve(hard(block+300, 6, workers), o)
			text := fmt.Sprintf("%v", *s)
			if first == "" {
				first = text
			}
			if text != first {
				t.Fatalf("%d workers have another answer than none, with %+v", workers, o)
			}
		}
	}
}

// TestWarmStart begins where the window before ended: the answer is as good, and
// found in fewer steps.
func TestWarmStart(t *testing.T) {
	t.Parallel()
	p := hard(3000, 8, 1)
	cold := Solve(p, Options{Nodes: -1})
	warm := Solve(p, Options{Nodes: -1, Prices: cold.Prices})
	if warm.Gap() > 0.01 || math.Abs(float64(warm.Bound-cold.Bound)) > 1e-6*float64(cold.Bound) {
		t.Errorf("bound %d and gap %g, cold %d and %g", warm.Bound, warm.Gap(), cold.Bound, cold.Gap())
	}
	c := newCore(p.clean().Room, p.Overload)
	row := make([]int64, p.Sites)
	for i, w := range p.Load {
		p.Rows(0, i, i+1, row)
		for j, v := range row {
			c.site, c.cost = append(c.site, uint16(j)), append(c.cost, v)
		}
		c.add(int32(i), w)
	}
	f, _ := c.relax()
	f.solve(make([]float64, p.Sites))
	steps := f.steps
	f.solve(cold.Prices)
	if f.steps > steps/10 {
		t.Errorf("%d steps with prices, %d without", f.steps, steps)
	}
}

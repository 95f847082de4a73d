package assign

import (
	"math"
	"math/big"
	"math/rand/v2"

	"pgregory.net/rapid"
)

// table is a problem whose costs are written down.
type table struct {
	costs    []int64
	load     []int64
	room     []int64
	overload float64
}

func (t table) problem(workers int) *Problem {
	m := len(t.room)
	return &Problem{
		Sites: m, Load: t.load, Room: t.room, Overload: t.overload, Workers: workers,
		Rows: func(_, lo, hi int, out []int64) { copy(out, t.costs[lo*m:hi*m]) },
	}
}

// value is the objective from its definition, in numbers without limits.
func (t table) value(site []uint16) *big.Int {
	m := len(t.room)
	used := make([]*big.Int, m)
	for j := range used {
		used[j] = new(big.Int)
	}
	sum := new(big.Rat)
	for i, j := range site {
		if j == NoSite {
			continue
		}
		used[j].Add(used[j], big.NewInt(t.load[i]))
		sum.Add(sum, new(big.Rat).SetInt64(t.costs[i*m+int(j)]))
	}
	for j, u := range used {
		if u.Sub(u, big.NewInt(max(t.room[j], 0))); u.Sign() > 0 {
			price := new(big.Rat).SetFloat64(t.overload)
			sum.Add(sum, price.Mul(price, new(big.Rat).SetInt(u)))
		}
	}
	up, rest := new(big.Int).QuoRem(sum.Num(), sum.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		up.Add(up, big.NewInt(1))
	}
	return up
}

// optimum tries all assignments. What is clearly worse than the best so far isn't
// computed to the last unit.
func (t table) optimum() *big.Int {
	m := len(t.room)
	site := make([]uint16, len(t.load))
	left := make([]int64, m)
	for j, v := range t.room {
		left[j] = max(v, 0)
	}
	var best *big.Int
	near := math.Inf(1)
	var try func(i int, sum int64)
	try = func(i int, sum int64) {
		if i == len(site) {
			rough := float64(sum)
			for _, v := range left {
				rough += t.overload * float64(max(-v, 0))
			}
			if rough > near*(1+1e-9)+2 {
				return
			}
			if v := t.value(site); best == nil || v.Cmp(best) < 0 {
				best, near = v, rough
			}
			return
		}
		some := false
		for j := range m {
			if v := t.costs[i*m+j]; v != Forbidden {
				site[i], some = uint16(j), true
				left[j] -= t.load[i]
				try(i+1, sum+v)
				left[j] += t.load[i]
			}
		}
		if !some {
			site[i] = NoSite
			try(i+1, sum)
		}
	}
	try(0, 0)
	return best
}

// randomTable is a small problem of one of several kinds: with ties, with equal
// loads, with knapsack-like loads, with rooms that don't exist.
func randomTable(r *rand.Rand) table {
	n, m := 1+r.IntN(7), 1+r.IntN(4)
	if r.IntN(20) == 0 {
		n = 8
	}
	t := table{costs: make([]int64, n*m), load: make([]int64, n), room: make([]int64, m)}
	costs := []int64{3, 1000, 1e9, 1e10}[r.IntN(4)]
	forbidden := []int{0, 0, 3, 6}[r.IntN(4)]
	for k := range t.costs {
		t.costs[k] = r.Int64N(costs)
		if r.IntN(10) < forbidden {
			t.costs[k] = Forbidden
		}
	}
	loads, same := []int64{2, 10, 1000, 1e6, 1e13}[r.IntN(5)], r.IntN(3) == 0
	one := 1 + r.Int64N(loads)
	var total int64
	for i := range t.load {
		t.load[i] = r.Int64N(loads + 1)
		if same {
			t.load[i] = one
		}
		total += t.load[i]
	}
	for j := range t.room {
		t.room[j] = r.Int64N(2*total/int64(m)+2) - total/int64(4*m)
	}
	t.overload = []float64{0.001, 0.3, 7, 1e5, float64(costs), 1e11}[r.IntN(6)] * []float64{1, 1, r.Float64()}[r.IntN(3)]
	return t
}

// check holds a solution against the definition, and against the optimum if that
// is known.
func check(tb rapid.TB, t table, s *Solution, optimum *big.Int) {
	tb.Helper()
	m := len(t.room)
	for i, j := range s.Site {
		some := false
		for k := range m {
			some = some || t.costs[i*m+k] != Forbidden
		}
		if some != (j != NoSite) || some && t.costs[i*m+int(j)] == Forbidden {
			tb.Fatalf("item %d is at %d, of %v", i, j, t.costs[i*m:(i+1)*m])
		}
	}
	value := t.value(s.Site)
	if value.IsInt64() && value.Int64() != s.Cost || !value.IsInt64() && s.Cost != math.MaxInt64 {
		tb.Fatalf("cost %d, by definition %v (%+v, %+v)", s.Cost, value, t, s)
	}
	cost, weight, over := t.problem(1).Evaluate(s.Site)
	if cost != s.Cost || weight != s.Weight {
		tb.Fatalf("evaluated as %d and %d, not %d and %d", cost, weight, s.Cost, s.Weight)
	}
	for j := range over {
		if over[j] != s.Over[j] {
			tb.Fatalf("over %v, evaluated %v", s.Over, over)
		}
	}
	if s.Bound > s.Cost || s.Cost < math.MaxInt64 && s.Exact != (s.Bound == s.Cost) {
		tb.Fatalf("bound %d of cost %d, exact %v", s.Bound, s.Cost, s.Exact)
	}
	for _, v := range s.Prices {
		if !(v >= 0 && v <= t.overload) {
			tb.Fatalf("price %g with overload %g", v, t.overload)
		}
	}
	if optimum == nil {
		return
	}
	if s.Exact && value.Cmp(optimum) != 0 {
		tb.Fatalf("said to be exact: %v, optimum %v: %+v %+v", value, optimum, t, s)
	}
	if !optimum.IsInt64() {
		return
	}
	best := optimum.Int64()
	if s.Bound > best || best > s.Cost {
		tb.Fatalf("bound %d, optimum %d, cost %d, exact %v: %+v", s.Bound, best, s.Cost, s.Exact, t)
	}
}

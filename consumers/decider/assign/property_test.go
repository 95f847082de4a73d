package assign

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawTable is a small problem of any kind.
func drawTable(t *rapid.T) table {
	return randomTable(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "instance"), 1)))
}

// drawOptions are any that leave Solve its guarantees, which is all.
func drawOptions(t *rapid.T, c table) Options {
	o := Options{
		Cells:  rapid.SampledFrom([]int{0, 1}).Draw(t, "cells"),
		Nodes:  rapid.SampledFrom([]int{-1, 1, 3, 300}).Draw(t, "nodes"),
		Sample: rapid.SampledFrom([]int{0, 1, 4}).Draw(t, "sample"),
		Rounds: rapid.IntRange(0, 4).Draw(t, "rounds"),
		Goal:   rapid.SampledFrom([]float64{0, 1e-12, 1}).Draw(t, "goal"),
	}
	if rapid.Bool().Draw(t, "warm") {
		for range c.room {
			o.Prices = append(o.Prices, c.overload*rapid.Float64Range(-0.5, 1.5).Draw(t, "price"))
		}
	}
	return o
}

func TestAnyOptionsKeepTheBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawTable(t)
		check(t, c, Solve(c.problem(2), drawOptions(t, c)), c.optimum())
	})
}

func TestRoomIsWorthItsPriceAtMost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawTable(t)
		before := Solve(c.problem(1), Options{Nodes: 300})
		j := rapid.IntRange(0, len(c.room)-1).Draw(t, "site")
		c.room = slices.Clone(c.room)
		c.room[j] += rapid.Int64Range(0, 1000).Draw(t, "more")
		after := Solve(c.problem(1), Options{Nodes: 300})
		if after.Bound > before.Cost {
			t.Fatalf("with more room at least %d, before %d", after.Bound, before.Cost)
		}
		if before.Exact && after.Exact && c.value(after.Site).Cmp(c.value(before.Site)) > 0 {
			t.Fatalf("with more room %d, before %d", after.Cost, before.Cost)
		}
	})
}

func TestOrderOfSitesDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawTable(t)
		m := len(c.room)
		order := make([]int, m)
		for j := range order {
			order[j] = j
		}
		to := rapid.Permutation(order).Draw(t, "order")
		d := table{costs: make([]int64, len(c.costs)), load: c.load, room: make([]int64, m), overload: c.overload}
		for j, k := range to {
			d.room[k] = c.room[j]
			for i := range c.load {
				d.costs[i*m+k] = c.costs[i*m+j]
			}
		}
		a, b := Solve(c.problem(1), Options{Nodes: 300}), Solve(d.problem(1), Options{Nodes: 300})
		if a.Exact && b.Exact && c.value(a.Site).Cmp(d.value(b.Site)) != 0 {
			t.Fatalf("%d, and %d with sites in order %v", a.Cost, b.Cost, to)
		}
	})
}

// TestEqualLoadsAreExact holds the flow by whole items against the bound alone:
// sizes that no brute force could try.
func TestEqualLoadsAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "instance"), 2))
		n, m := 1+r.IntN(300), 1+r.IntN(12)
		load := 1 + r.Int64N(5000)
		c := table{costs: make([]int64, n*m), load: slices.Repeat([]int64{load}, n), room: make([]int64, m)}
		for k := range c.costs {
			if c.costs[k] = r.Int64N(1e9); r.IntN(8) == 0 {
				c.costs[k] = Forbidden
			}
		}
		for j := range c.room {
			c.room[j] = r.Int64N(2*load*int64(n)/int64(m) + 1)
		}
		c.overload = float64(r.Int64N(1e9)) / float64(load) * r.Float64()
		s := Solve(c.problem(1), Options{Nodes: -1})
		check(t, c, s, nil)
		if !s.Exact {
			t.Fatalf("%d items of %d bytes: cost %d, bound %d", n, load, s.Cost, s.Bound)
		}
	})
}

// wideBig is a wide number in numbers without limits.
func wideBig(w wide) *big.Int {
	v := new(big.Int).Lsh(big.NewInt(w.hi), 64)
	return v.Add(v, new(big.Int).SetUint64(w.lo))
}

func TestWideAgainstBig(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		x, y := big.NewInt(a), big.NewInt(b)
		same := func(what string, got wide, want *big.Int) {
			if wideBig(got).Cmp(want) != 0 {
				t.Fatalf("%s of %d and %d: %v, expected %v", what, a, b, wideBig(got), want)
			}
		}
		same("sum", wideOf(a).plus(wideOf(b)), new(big.Int).Add(x, y))
		same("difference", wideOf(a).minus(wideOf(b)), new(big.Int).Sub(x, y))
		if got := wideOf(a).less(wideOf(b)); got != (a < b) {
			t.Fatalf("%d < %d: %v", a, b, got)
		}
		p, q := a&(1<<62-1), b&(1<<62-1)
		square := new(big.Int).Mul(big.NewInt(p), big.NewInt(q))
		same("product", product(p, q), square)
		s := rapid.UintRange(0, 126).Draw(t, "shift")
		down := new(big.Int).Rsh(wideBig(product(p, q).minus(wideOf(a))), s)
		same("shift down", product(p, q).minus(wideOf(a)).down(s), down)
		price := rapid.Float64Range(0, 1e12).Draw(t, "price")
		exact := new(big.Rat).Mul(new(big.Rat).SetFloat64(price), new(big.Rat).SetInt64(p))
		up, rest := new(big.Int).QuoRem(exact.Num(), exact.Denom(), new(big.Int))
		if rest.Sign() > 0 {
			up.Add(up, big.NewInt(1))
		}
		same("price", priceUp(price, p), up)
		if got := wideOf(a).int64(); got != a {
			t.Fatalf("%d became %d", a, got)
		}
	})
}

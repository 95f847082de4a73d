package split

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Shares add up to the whole exactly, 0 stays 0, what is more than 0 gets a part,
// each is within one part of its exact share unless parts were taken for such
// small ones, and permuting sites changes none by more than one (P33).
func TestApportion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "sites")
		whole := rapid.SampledFrom([]int{10, 100, 256, 10_000}).Draw(t, "whole")
		weights := make([]float64, n)
		var sum float64
		positive := 0
		for i := range weights {
			weights[i] = max(0, rapid.Float64Range(-1, 10).Draw(t, "weight"))
			if sum += weights[i]; weights[i] > 0 {
				positive++
			}
		}
		got := apportion(weights, whole)
		total, small := 0, 0
		for i, x := range got {
			total += x
			if (weights[i] > 0) != (x > 0) && sum > 0 && positive <= whole {
				t.Fatalf("weight %v got %d of %v", weights[i], x, got)
			}
			if sum > 0 && weights[i] > 0 && weights[i]/sum*float64(whole) < 1 {
				small++
			}
		}
		if total != whole {
			t.Fatalf("%v of %v: %d of %d", got, weights, total, whole)
		}
		if sum == 0 || positive > whole {
			return
		}
		for i, x := range got {
			if exact := weights[i] / sum * float64(whole); float64(x) > exact+1.001 || float64(x) < exact-1.001-float64(small) {
				t.Fatalf("%v of %v: %d is far from %v", got, weights, x, exact)
			}
		}
		perm := rapid.Permutation(indices(n)).Draw(t, "order")
		mixed := make([]float64, n)
		for i, p := range perm {
			mixed[i] = weights[p]
		}
		for i, x := range apportion(mixed, whole) {
			if d := x - got[perm[i]]; d < -1 || d > 1 {
				t.Fatalf("%v and %v differ by more than one part", got, apportion(mixed, whole))
			}
		}
	})
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func drawParts(t *rapid.T, n, whole int, name string) []int {
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = max(0, rapid.Float64Range(-1, 1).Draw(t, name))
	}
	return apportion(weights, whole)
}

// A step keeps the sum, never goes past the target, comes nearer to it, moves no
// more than it may, and respects cooldowns; a larger step comes at least as near.
func TestDampingIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const whole, minute = 10_000, 60_000_000
		n := rapid.IntRange(2, 8).Draw(t, "sites")
		parts, target := drawParts(t, n, whole, "part"), drawParts(t, n, whole, "target")
		up, down := make([]int64, n), make([]int64, n)
		for i := range up {
			up[i], down[i] = int64(rapid.IntRange(-300, 0).Draw(t, "up"))*1e6, int64(rapid.IntRange(-300, 0).Draw(t, "down"))*1e6
		}
		d := damping{
			whole: whole, share: rapid.Float64Range(0.01, 1).Draw(t, "share"), up: rapid.IntRange(1, whole).Draw(t, "step"), band: 200, cooldown: minute,
		}
		d.down = rapid.IntRange(d.up, whole).Draw(t, "down step")
		fast := rapid.Bool().Draw(t, "fast")
		next, why := d.step(parts, target, up, down, fast)
		sum := 0
		for i := range next {
			sum += next[i]
			lo, hi := min(parts[i], target[i]), max(parts[i], target[i])
			if next[i] < lo || next[i] > hi {
				t.Fatalf("%v to %v: %v goes past", parts, target, next)
			}
			if next[i] > parts[i] && -down[i] < minute || next[i] < parts[i] && -up[i] < minute {
				t.Fatalf("%v to %v: %v moves inside the cooldown", parts, target, next)
			}
		}
		most := d.up
		if fast {
			most = d.down
		}
		moved := distance(parts, next)
		if sum != whole || moved > most {
			t.Fatalf("%v to %v: %v, %d parts, %d moved, %d allowed", parts, target, next, sum, moved, most)
		}
		switch why {
		case free, limited:
			if moved == 0 {
				t.Fatalf("%v to %v: nothing moved and nothing held it", parts, target)
			}
		case atTarget, inBand:
			if moved != 0 || distance(parts, target) > d.band {
				t.Fatalf("%v to %v: %v", parts, target, next)
			}
		}
		larger := d
		larger.up, larger.down, larger.share = min(whole, 2*d.up), min(whole, 2*d.down), min(1, 2*d.share)
		far, _ := larger.step(parts, target, up, down, fast)
		if distance(far, target) > distance(next, target) {
			t.Fatalf("%v to %v: a larger step leaves more", parts, target)
		}
	})
}

// Without cooldowns a row reaches its target in a bounded number of steps.
func TestDampingArrives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const whole = 10_000
		n := rapid.IntRange(2, 6).Draw(t, "sites")
		parts, target := drawParts(t, n, whole, "part"), drawParts(t, n, whole, "target")
		never := slices.Repeat([]int64{noTime}, n)
		d := damping{whole: whole, share: 0.5, up: 2000, down: 5000, band: 200}
		steps := 0
		for {
			next, why := d.step(parts, target, never, never, rapid.Bool().Draw(t, "fast"))
			if why == atTarget || why == inBand {
				break
			}
			if parts = next; steps > 8 {
				t.Fatalf("%d steps and not at %v: %v", steps, target, parts)
			}
			steps++
		}
	})
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true},
		{"*", "a/b", true},
		{"eu-*", "eu-west", true},
		{"eu-*", "us-eu-", false},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{"*db*", "userdb2", true},
		{"*a*b", "aab", true},
		{"*a*b", "aba", false},
		{"", "", true},
		{"", "a", false},
		{"db", "db", true},
	} {
		if got := matches(c.pattern, c.name); got != c.want {
			t.Errorf("%q, %q: got %v", c.pattern, c.name, got)
		}
	}
}

func TestCapacityTellsOverloadFromSlowness(t *testing.T) {
	// Overload: the delay rises with the load and falls with it.
	c := newCapacity()
	for _, load := range []float64{50, 50, 60, 70, 80} {
		c.learn(load, 10_000, 100, 30)
	}
	c.learn(120, 80_000, 100, 30)
	if !math.IsInf(c.thresh, 1) {
		t.Errorf("one slow window is overload: %v", c.thresh)
	}
	c.learn(120, 80_000, 100, 30)
	if !(c.thresh > 80 && c.thresh < 100) {
		t.Errorf("after overload at 120, fine at 80: %v", c.thresh)
	}
	cut := c.thresh
	c.learn(60, 10_000, 100, 30)
	if c.thresh != cut {
		t.Errorf("60 of %v says nothing about it: %v", cut, c.thresh)
	}
	c.learn(0.9*cut, 10_500, 100, 30)
	if !(c.thresh > cut) {
		t.Errorf("nine tenths are fine: %v", c.thresh)
	}
	// A slow-down: less load is just as slow.
	c = newCapacity()
	for range 5 {
		c.learn(50, 10_000, 100, 30)
	}
	before := c.thresh
	for _, load := range []float64{50, 25, 5, 5, 5} {
		c.learn(load, 310_000, 100, 30)
	}
	if c.thresh != before {
		t.Errorf("a slow-down took capacity: %v", c.thresh)
	}
}

func TestCurvesAreOfLoadAndNotOfChance(t *testing.T) {
	c := newCapacity()
	for i := range 20 {
		load := float64(20 + 5*(i%10))
		c.learn(load, 5000+2*load*load, 100, 30)
	}
	f := c.curve(5000+2*c.points[0].load*c.points[0].load, 6)
	if f.Power != 2 || f.Factor < 1.9 || f.Factor > 2.1 || f.Base < 4900 || f.Base > 5100 {
		t.Errorf("of 5000 + 2·load²: %+v", f)
	}
	c = newCapacity()
	for i := range 20 {
		c.learn(float64(20+5*(i%10)), 5000+float64(500*(i*7%3)), 100, 30)
	}
	if f := c.curve(5500, 6); f.Power != 0 {
		t.Errorf("of chance: %+v", f)
	}
	c = newCapacity()
	for i := range 20 {
		c.learn(float64(20+5*(i%10)), 9000-float64(50*(i%10)), 100, 30)
	}
	if f := c.curve(9000, 6); f.Power != 0 {
		t.Errorf("faster under load: %+v", f)
	}
}

package split

import (
	"math"

	"penstock/consumers/decider/split/solve"
)

// powers are the shapes of a curve: delay = base + factor · load^power (SLATE,
// PAPERS §4.4).
var powers = [...]int{1, 2, 4}

// curve fits delay against load to the last windows by least squares, weighted by
// samples and halved every ten windows, for each power, and takes the one with
// the least error. Factors below 0 are none: a replica that is faster under load
// has only been lucky. So load × delay is convex. Before a fit tells more than the
// mean, there is no curve. The curve is shifted to give the delay that is known
// now at the load of now.
func (c *capacity) curve(service float64, least int64) solve.Curve {
	if math.IsInf(service, 1) || len(c.points) < 4 {
		return solve.Curve{}
	}
	var best solve.Curve
	flat := c.residual(solve.Curve{Base: c.level(), Power: 1}, least)
	lowest := 0.5 * flat
	for _, power := range powers {
		f, ok := c.fit(power, least)
		if !ok {
			continue
		}
		if e := c.residual(f, least); e < lowest {
			lowest, best = e, f
		}
	}
	if best.Power == 0 {
		return best
	}
	best.Base = max(0, service-float64(best.Factor*power(c.points[0].load, best.Power)))
	return best
}

func power(x float64, n int) float64 {
	out := 1.0
	for range n {
		out *= x
	}
	return out
}

// weight of point i.
func (c *capacity) weight(i int, least int64) float64 {
	if c.points[i].count < least {
		return 0
	}
	return float64(c.points[i].count) * math.Ldexp(1, -i/10)
}

// level is the weighted mean delay.
func (c *capacity) level() float64 {
	var sum, weights float64
	for i, p := range c.points {
		w := c.weight(i, 1)
		sum += float64(w * p.delay)
		weights += w
	}
	return sum / weights
}

// fit is weighted least squares of delay against load^power.
func (c *capacity) fit(n int, least int64) (solve.Curve, bool) {
	var w, x, y float64
	for i, p := range c.points {
		k := c.weight(i, least)
		w += k
		x += float64(k * power(p.load, n))
		y += float64(k * p.delay)
	}
	if w == 0 {
		return solve.Curve{}, false
	}
	x, y = x/w, y/w
	var xx, xy float64
	for i, p := range c.points {
		k, d := c.weight(i, least), power(p.load, n)-x
		xx += float64(k * d * d)
		xy += float64(float64(k*d) * (p.delay - y))
	}
	if xx <= 0 || xy <= 0 {
		return solve.Curve{}, false
	}
	f := solve.Curve{Factor: xy / xx, Power: n}
	if f.Base = y - float64(f.Factor*x); f.Base < 0 {
		f.Base = 0
	}
	return f, true
}

// residual is the weighted sum of squares of what a curve leaves.
func (c *capacity) residual(f solve.Curve, least int64) float64 {
	var sum float64
	for i, p := range c.points {
		d := p.delay - f.Base - float64(f.Factor*power(p.load, f.Power))
		sum += float64(float64(c.weight(i, least)*d) * d)
	}
	return sum
}

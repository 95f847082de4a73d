package split

import (
	"math"
	"slices"
)

// capacity estimates how many calls a second a replica takes (PAPERS §4.2).
//
// The paper's rule keeps Thresh, the load that was fine, and DelayAtThresh; a delay
// well above DelayAtThresh takes Thresh down, one that is fine at Thresh takes it
// up. By itself that takes any slow-down for overload: the less load a slow
// replica gets, the less capacity it would have. And it takes the rise that every
// queue has below its capacity for overload, if the load goes up and down. So here
//
//   - DelayAtThresh is of loads near the greatest that was fine, its greatest
//     delays first; a low load says nothing about it;
//   - slow is three times DelayAtThresh, or what is beyond the chance of windows, and a
//     millisecond more: a queue is up to that slow without being near its end;
//   - slow counts as overload only if it came with load: if the replica has nearly
//     as much as when it was last fine, and if clearly less load in the last
//     windows was not just as slow; for two windows in a row, or at ten times
//     DelayAtThresh. Then Thresh is four fifths of the load;
//   - if less load turns out to be just as slow, the load was not the reason, and
//     Thresh gets back what was taken from it. DelayAtThresh relaxes towards the
//     delay, a tenth of the way a window (a hundredth while the load is there), so that a
//     lasting slow-down is normal in the end;
//   - until there were as many calls as a delay needs to be known, all is fine: a
//     first window that is cut short says nothing of the load of the next;
//   - Thresh rises by 5 % a window while nine tenths of it are fine: no plan sends
//     more than Thresh, so it would else never be reached again.
type capacity struct {
	thresh float64 // calls a second; +Inf: nothing has shown a limit yet
	delay  float64 // DelayAtThresh, µs; 0: not known
	fine   float64 // greatest load seen fine, falls by 1 % a window
	before float64 // Thresh before it was last taken down while fine; 0: it was not
	slow   int     // windows in a row that were slow
	points []point // the last windows with samples, newest first
}

// point is a window of a replica: what curves are fitted to.
type point struct {
	load  float64 // calls a second
	delay float64 // µs, mean
	count int64
}

const (
	// maxPoints is how many windows a curve goes by.
	maxPoints = 30
	// fineShare is the share of Thresh that has to be fine for Thresh to rise, and
	// of the greatest fine load from which a delay counts for DelayAtThresh.
	fineShare = 0.9
)

func newCapacity() capacity { return capacity{thresh: math.Inf(1)} }

// slowFrom is the delay from which the replica is slow.
func (c *capacity) slowFrom() float64 {
	return max(3, math.Exp(3*c.spread(1)))*c.delay + 1000
}

// spread is by how much mean delays of windows differ by chance: the deviation of
// their logarithm, by the median of the changes from one to the next, so that a
// change of level does not count. 0 if there are too few windows to tell.
func (c *capacity) spread(least int64) float64 {
	var room [maxPoints]float64
	all := room[:0]
	for i := 1; i < len(c.points); i++ {
		a, b := c.points[i-1], c.points[i]
		if a.count >= least && b.count >= least && a.delay > 0 && b.delay > 0 {
			all = append(all, math.Abs(math.Log(a.delay/b.delay)))
		}
	}
	if len(all) < 5 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2] / 0.954
}

// provenBy is how many windows that were not slow it takes to know a load.
const provenBy = 6

// proven is the load that the replica is known to take: the third greatest of the
// windows that were not slow. 0 if there are too few.
func (c *capacity) proven() float64 {
	var top [3]float64
	n, slow := 0, c.slowFrom()
	for _, p := range c.points {
		if p.delay > slow {
			continue
		}
		n++
		for i, x := range top {
			if p.load > x {
				copy(top[i+1:], top[i:])
				top[i] = p.load
				break
			}
		}
	}
	if n < provenBy {
		return 0
	}
	return top[2]
}

// samples are those of the windows that are remembered.
func (c *capacity) samples() (n int64) {
	for _, p := range c.points {
		n += p.count
	}
	return n
}

// learn takes a window in.
func (c *capacity) learn(load, delay float64, count, least int64) {
	switch slow := c.delay > 0 && delay > c.slowFrom(); {
	case c.samples() < least:
		c.delay, c.fine = max(c.delay, delay), max(c.fine, load)
	case slow && load > 1.05*c.thresh:
		// It is known to be over, and the load has not come down yet: another cut
		// would be for the same thing. What is overload now must not become normal
		// while it lasts.
		c.delay += 0.01 * (delay - c.delay)
		c.slow++
	case slow && load >= 0.7*min(c.thresh, c.fine) && c.slowBelow(load) == 0:
		c.slow++
		if c.slow < 2 && delay < 10*c.delay {
			break
		}
		if c.before == 0 {
			c.before = c.thresh
		}
		c.thresh = 0.8 * min(c.thresh, load)
	case slow:
		c.slow++
		if c.before > 0 && c.slowBelow(1.25*c.fine) >= 2 {
			c.thresh, c.before = c.before, 0
		}
		if c.slowBelow(load) > 0 || load < 0.5*c.fine {
			c.delay += 0.1 * (delay - c.delay)
		}
	default:
		c.before, c.slow = 0, 0
		if load >= fineShare*c.thresh {
			c.thresh *= 1.05
		}
		c.fine = max(load, 0.99*c.fine)
		if load >= fineShare*c.fine {
			c.delay = max(delay, c.delay+0.02*(delay-c.delay))
		}
	}
	c.points = append([]point{{load, delay, count}}, c.points[:min(len(c.points), maxPoints-1)]...)
}

// slowBelow counts the windows of the last six in which clearly less load was as
// slow: if there are any, it is not the load.
func (c *capacity) slowBelow(load float64) int {
	n, slow := 0, c.slowFrom()
	for _, p := range c.points[:min(len(c.points), 6)] {
		if p.load < 0.8*load && p.delay > slow {
			n++
		}
	}
	return n
}

package split

import "math"

// capacity estimates how many calls a second a replica takes (PAPERS §4.2).
//
// The paper's rule keeps Thresh, the load that was fine, and DelayAtThresh. A
// delay above 1.1 × DelayAtThresh takes Thresh down to 0.95 of the load; a delay
// that is fine at Thresh takes it up by 5 %. By itself that takes any slow-down
// for overload: the less load a slow replica gets, the less capacity it would
// have. So a delay counts as overload only if it came with load: if the replica
// has as much as it had when it was last fine, and if less load in the last
// windows was not just as slow. Else DelayAtThresh relaxes towards the delay, a
// tenth of the way a window, and Thresh stays.
type capacity struct {
	thresh float64 // calls a second; +Inf: nothing has shown a limit yet
	delay  float64 // DelayAtThresh, µs; 0: not known
	fine   float64 // greatest load seen fine, falls by 1 % a window
	points []point // the last windows with samples, newest first
}

// point is a window of a replica: what curves are fitted to.
type point struct {
	load  float64 // calls a second
	delay float64 // µs, mean
	count int64
}

// maxPoints is how many windows a curve goes by.
const maxPoints = 30

func newCapacity() capacity { return capacity{thresh: math.Inf(1)} }

// learn takes a window in.
func (c *capacity) learn(load, delay float64, count int64) {
	slow := c.delay > 0 && delay > 1.1*c.delay
	switch {
	case c.delay == 0:
		c.delay, c.fine = delay, load
	case slow && load >= 0.9*min(c.thresh, c.fine) && !c.slowBelow(load):
		c.thresh = 0.95 * min(c.thresh, load)
		c.delay += 0.02 * (delay - c.delay)
	case slow:
		c.delay += 0.1 * (delay - c.delay)
	default:
		if load >= 0.95*c.thresh {
			c.thresh = max(c.thresh, 1.05*load)
			c.delay = max(c.delay, delay)
		}
		c.fine = max(load, 0.99*c.fine)
		c.delay += 0.02 * (delay - c.delay)
	}
	c.points = append([]point{{load, delay, count}}, c.points[:min(len(c.points), maxPoints-1)]...)
}

// slowBelow reports whether clearly less load was as slow in the last windows:
// then it is not the load.
func (c *capacity) slowBelow(load float64) bool {
	for _, p := range c.points[:min(len(c.points), 6)] {
		if p.load < 0.8*load && p.delay > 1.1*c.delay {
			return true
		}
	}
	return false
}

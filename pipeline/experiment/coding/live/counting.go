package live

import (
	"sync"

	"penstock/consumers/executor/coder/codes"
	"penstock/consumers/executor/coder/queue"
)

// counting is a chooser whose choices are counted for a time.
type counting struct {
	*codes.Chooser

	mu   sync.Mutex
	on   bool
	k, n [kMax*rMax + 1]int64 // requests by their k, and by their n
}

var _ queue.Chooser = (*counting)(nil)

// Choose implements queue.Chooser.
func (c *counting) Choose(op queue.Op, idle int) queue.Code {
	code := c.Chooser.Choose(op, idle)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.on && op == queue.Read {
		c.k[code.K]++
		c.n[code.N]++
	}
	return code
}

// begin counts from now on, from 0.
func (c *counting) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on = true
	clear(c.k[:])
	clear(c.n[:])
}

// end stops that, and says how many requests there were, what share of them had each k
// from 1 on, and the mean n.
func (c *counting) end() (requests float64, shares []float64, chunks float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on = false
	var all, sum int64
	for n, count := range c.n {
		all += count
		sum += int64(n) * count
	}
	for k := 1; k <= kMax; k++ {
		shares = append(shares, float64(c.k[k])/float64(max(all, 1)))
	}
	return float64(all), shares, float64(sum) / float64(max(all, 1))
}

package assign

import "math"

// Forbidden is the cost of an item at a site where it may not be.
const Forbidden = math.MaxInt64

// NoSite is where an item is that may be nowhere.
const NoSite = math.MaxUint16

// maxOverload keeps prices times bytes within 128 bits.
const maxOverload = 1 << 60

// Problem is what is to be assigned. Solve and Evaluate read it only.
type Problem struct {
	// Sites is how many there are, 1 to 65,535.
	Sites int
	// Load has the bytes a window of each item, at least 0.
	Load []int64
	// Room has what each site can take of these items. Below 0 is as 0: what is
	// there already is over by itself, and only what these items add is counted.
	Room []int64
	// Overload is what a byte beyond Room costs; below 0 is as 0, above 2^60 as 2^60.
	Overload float64
	// Rows writes the costs of items lo to hi-1, a row of Sites costs each, at
	// least 0 or Forbidden (one unit of weight = 1e9). It has the same answer
	// whenever it is asked, and is called by several workers at once.
	Rows func(worker, lo, hi int, out []int64)
	// Workers is how many call Rows at once, numbered from 0; less than 1 is as 1.
	Workers int
}

// Options are budgets. The zero value has defaults that fit a decision a window.
type Options struct {
	// Cells is how many costs (items times sites) may be held in memory: a problem
	// with more is solved by prices of a sample. Defaults to 2^21.
	Cells int
	// Nodes is how many nodes branch and bound may look at, below 0 none. Defaults
	// to about a second's worth by the size of what is undecided. It is a number
	// and not a time, so that all machines have the same answer.
	Nodes int
	// Sample is about how many items prices are found with. Defaults to 2^16, or
	// as many as have 2^21 costs.
	Sample int
	// Rounds is how many times all rows may be read. The second one and those
	// after it are for a gap above Goal. Defaults to 2.
	Rounds int
	// Goal is the gap that is good enough for no further round. Defaults to 0.01.
	Goal float64
	// Prices are where the search begins: Solution.Prices of the window before.
	Prices []float64
}

// Solution is an assignment and what is known about it.
type Solution struct {
	// Site is where each item goes, NoSite if no site may have it.
	Site []uint16
	// Cost is Weight and what Over costs, rounded up to a whole unit. Like Weight
	// and Bound it saturates at the greatest number there is.
	Cost int64
	// Weight is the sum of the items' costs.
	Weight int64
	// Over has the bytes at each site beyond its room.
	Over []int64
	// Bound is a cost that no assignment is below. It never exceeds Cost.
	Bound int64
	// Exact is true if no assignment costs less. It is told of the whole numbers of
	// 128 bits, before they saturate.
	Exact bool
	// Prices are what a byte of room is worth at each site, 0 to Overload.
	Prices []float64
	// Method tells how it was found: MethodLeast, MethodFlow, MethodBranch or
	// MethodPrices.
	Method string
	// Nodes is how many nodes branch and bound looked at, Rounds how often all rows
	// were read.
	Nodes, Rounds int
}

// The methods.
const (
	MethodLeast  = "least"  // each item's least cost; no site is over
	MethodFlow   = "flow"   // minimum-cost flow, and its split items rounded
	MethodBranch = "branch" // and then branch and bound
	MethodPrices = "prices" // prices of a sample, and repair
)

// Gap is how far Cost may be above the optimum, as a share of the bound. It is 0
// for exact ones.
func (s *Solution) Gap() float64 {
	return (float64(s.Cost) - float64(s.Bound)) / max(math.Abs(float64(s.Bound)), 1)
}

// Solve finds an assignment of little cost and a bound on the least. It has the
// same answer for any number of workers, on any machine.
func Solve(p *Problem, o Options) *Solution {
	q := p.clean()
	total := q.total()
	if !total.less(wideOf(1 << 61)) {
		return q.coarse(total, o)
	}
	o = o.defaults(p)
	if len(q.Load)*q.Sites <= o.Cells {
		return q.small(o)
	}
	return q.large(o, total.int64())
}

func (o Options) defaults(p *Problem) Options {
	const cells = 1 << 21
	if o.Cells <= 0 {
		o.Cells = cells
	}
	if o.Sample <= 0 {
		o.Sample = max(min(1<<16, cells/max(p.Sites, 1)), 1<<10)
	}
	if o.Rounds <= 0 {
		o.Rounds = 2
	}
	if o.Goal <= 0 {
		o.Goal = 0.01
	}
	switch {
	case o.Nodes == 0:
		o.Nodes = -1
	case o.Nodes < 0:
		o.Nodes = 0
	}
	return o
}

// clean is the problem with rooms and overload within their limits.
func (p *Problem) clean() *Problem {
	q := *p
	q.Room = make([]int64, p.Sites)
	for j := range q.Room {
		q.Room[j] = max(p.Room[j], 0)
	}
	q.Overload = min(max(p.Overload, 0), maxOverload)
	if p.Overload != p.Overload {
		q.Overload = 0
	}
	q.Workers = max(1, p.Workers)
	return &q
}

// total is the load of all items.
func (p *Problem) total() wide {
	var sum wide
	for _, w := range p.Load {
		sum = sum.plus(wideOf(w))
	}
	return sum
}

// close enters what the bound says of a cost: both whole, before they saturate.
func (s *Solution) close(value, bound wide) *Solution {
	s.Exact = !bound.less(value)
	s.Bound = bound.least(value).int64()
	return s
}

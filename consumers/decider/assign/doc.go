// Package assign finds the assignment of items to sites that costs least under
// soft capacities: exactly where it fits, and otherwise one close to it with a
// bound on how close (DESIGN §4.1, policy optimal; the items are owners).
//
// # The problem
//
// Each item has a load in bytes and a cost at each site, or may not be there. A
// site has room for so many bytes; what is beyond it costs overload a byte. To be
// minimised is
//
//	Σ cost(i, site of i) + overload · Σ max(0, load at j − room of j)
//
// rounded up to whole units. An item is not split. The bound is Lagrange's: for
// any prices p of a byte of room within [0, overload], no assignment costs less
// than
//
//	Σ min over j (cost(i, j) + p(j)·load(i)) − Σ p(j)·room(j)
//
// and an item that is more than a room, or than what items that are held there
// leave of it, counts with overload for that part instead of p, which bounds
// better and is as true (core.go).
//
// # How
//
// Small problems, of up to Options.Cells costs, are held in memory. Where each
// item's least cost fits, that is the optimum. Else the relaxation with split
// items, a transportation problem, is solved exactly by shortest augmenting paths
// on the graph of the sites (flow.go). If all loads are equal, flows are of whole
// items and the answer is exact. Else the few split items are rounded, items are
// moved and exchanged (round.go), slots that cost more than the gap are struck
// out, and branch and bound looks at what is left, least bound first, with the
// same relaxation at each node (branch.go).
//
// Large ones are never held. A sample's relaxation gives prices (sample.go), one
// pass over all rows in parallel gives each item its best site at these, and the
// bound (large.go). Then the items with the least to lose are read again and
// assigned anew as a small problem, so that no site is over that need not be
// (pick.go). A second round, with the prices from that, is for a gap above
// Options.Goal.
//
// Items without a preference would all go to one site, whatever the price. So
// sites that differ by less than a jitter, far below what the gap is measured in,
// are drawn by lot, from a hash of the item's index. Small problems need none:
// their ties go by the order of sites, and where that is not the optimum, by the
// flow.
//
// # What is certain
//
// Cost is never below the optimum nor Bound above it, whatever the options. Exact
// is only said if both meet. The same problem has the same solution for any number
// of workers and on any machine: budgets are counted in nodes and items, not in
// time; sums that workers share are of whole numbers; no product is fused.
//
// # Numbers
//
// Costs, loads and overload are added up in 128 bits (wide.go), so that ten
// million costs of 1e10 and any overload of up to 2^60 a byte are counted to the
// unit. What is reported in 64 bits saturates; Exact is decided before. Beyond
// 2^61 bytes of load in all, loads are rounded down to units of so many bytes that
// they fit, and rooms up: the bound holds, and the cost is counted in bytes again.
// The bound of a small problem is in whole numbers; that of a large one in float64,
// a 2^50th part lower for each item, which is far more than rounding can lift.
//
// # Scale
//
// A large problem takes 8 bytes an item beside Load and Solution.Site's 2 and no
// more than some tens of megabytes: for the sample and for the up to 262,144
// candidates. A small one takes about 60 bytes a cost. The flow looks at all pairs
// of sites in each step, which is little up to some hundred.
//
// # Failures
//
// There are none to return: rooms and overload that make no sense are taken as
// the nearest that do, and prices to begin with may be any. Costs below 0 are
// against the contract; then the bound of a large problem is not certain. An item
// without a site gets NoSite and counts for nothing.
package assign

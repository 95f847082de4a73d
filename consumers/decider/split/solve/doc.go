// Package solve shares out the calls of a call graph over the sites at which its
// components run, so that the delay of all requests together is small (PAPERS
// §4.2) or least.
//
// A graph has components, each with replicas at some sites; sources, that is
// calls that begin outside the graph, with a rate; and choices: a component at a
// site sends the calls that each of its own calls makes to one site or, in
// shares, to several. What a call costs is the cost of its link plus the service
// at the replica plus what the replica's own choices cost. Costs are in µs, rates
// and capacities in calls a second.
//
// Since a call's cost depends on the site it arrives at and on nothing before,
// the best site for every (choice, site) follows from dynamic programming over
// the components in reverse topological order, in O(choices · sites²). On chains
// and trees that is the best of all maps component → site; on a graph in which a
// component has two callers it is at least as good, because each caller may use
// another replica.
//
// [Instance.Greedy] is the paper's: fill the best combination until a replica is
// full, close that one, go on with the next best. [Instance.Optimal] is exact: a
// linear programme over all combinations, whose columns come from the same
// dynamic programming, with convex delay-against-load curves in pieces. Greedy is
// optimal while each fill has one bottleneck, and not in general.
//
// More calls than capacity: the capacities of a component that is asked for more
// than its replicas take together are raised by one factor, so that all are
// overloaded alike, in proportion to what they are meant to take.
//
// States: none is kept between calls. Failures: [ErrInstance] for numbers that
// are none, ErrCycle for a graph that is no order, ErrUnsolved from Optimal when
// its numbers leave it without a basis; then it has no plan and Greedy has.
package solve

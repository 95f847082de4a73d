// Package clairvoyant bounds from below what any switch could make of a run, even one that
// knows all requests and all their times beforehand.
//
// The relaxation: one station of the servers is looked at alone, the CPU, and that of all
// servers of all zones is one machine that works as fast as all of them
// together, may leave any request for another and come back, and may work on one request
// with all its speed (pooled, preemptive, divisible). A request's penalty is spread evenly
// over its work there: each piece costs what the whole would if it ended at the beginning
// of the slot of time in which the piece is done. Since no piece is done later than the
// whole, this costs no more than the request's penalty, p·max(0, C − D). What comes behind
// the station, at its fastest, is taken from the time that the request has.
//
// What is left is a transport of work into slots of bounded capacity (the time-indexed
// relaxation of weighted tardiness), a linear program. Any prices v ≥ 0 of the slots give a
// bound by duality,
//
//	Σ_i min_t (p_i·max(0, t − D_i) + c_i·v_t)  −  Σ_t (free_t·v_t + bought_t·max(0, v_t − κ))
//
// with c_i the work of i, t from its coming on, and capacity that is free, or bought at κ
// for each unit of work: servers may be on for any part of any time, for their cost by
// the work of the fastest. Prices are sought by subgradient steps, beginning with what a
// machine that works by the least-cost index loses by waiting; whatever they are, the bound
// is one.
//
// Nothing is kept between calls, and there are no failures: no jobs have the bound 0.
package clairvoyant
